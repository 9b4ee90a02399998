// Rows of `--explain` for devices, memory, graphs, run time, files and usage: E05xx to E11xx. Data, no logic.
#include "compiler/syntax/explain.h"

namespace gk::syntax {
namespace {

constexpr Explanation kRows[] = {
    // ---- E05xx: devices ----
    {"E0501", "no such device",
     "The device asked for is not there: a number past the last GPU, or cuda on a machine without one. "
     "`gkrun "
     "--list-devices` shows what can be used; without --device the first GPU is taken, else the host.",
     "gkrun --device cuda:4 model.gk", "gkrun --device host model.gk"},
    {"E0502", "the GPU driver is missing or too old",
     "The CUDA driver library is loaded when a GPU is asked for. It is not installed, or older than the "
     "minimum that "
     "the message names. Nothing else needs installing: no toolkit is used at run time.",
     "gkrun --device cuda model.gk", "gkrun --device host model.gk"},
    {"E0503", "a call to the device failed",
     "The driver returned an error that is none of the program's making, with the driver's own name for it. "
     "A fault "
     "of an earlier launch may show only here; --sync waits after every step and gives the true line.",
     "gkrun model.gk", "gkrun --sync model.gk"},

    {"E0504", "the compiled code cannot be loaded",
     "The code is for another kind of device, lacks the kernel that a step names, or asks for more registers "
     "or shared memory than the "
     "device has. "
     "An own kernel may need a smaller block.",
     "launch(threads=1024) big_kernel(mut z, x)", "launch(threads=256) big_kernel(mut z, x)"},
    {"E0505", "the device has no assembler",
     "Machine code was asked for on a device that takes none (the interpreter, the trace of one). Choose a "
     "device that "
     "runs compiled code.",
     "gkrun --device interp --emit ptx model.gk", "gkrun --device cuda --emit ptx model.gk"},
    {"E0506", "an object of one device was given to another",
     "Streams, events, buffers and executables belong to the device that made them. A program meets this "
     "only through "
     "the embedding API, where each context has one device.",
     "gkrun model.gk  # through two contexts with different devices", "gkrun --device cuda:0 model.gk"},
    {"E0507", "a library is missing",
     "A step was planned for a library (cuBLASLt) that could not be loaded. The generated matrix product "
     "does not need "
     "it; the message names the files that were tried.",
     "gkrun --device cuda model.gk", "gkrun --device host model.gk"},
    {"E0508", "a graph node is not there or of another kind",
     "An update through the embedding API named a node that the graph does not have, or one that is a copy "
     "or a "
     "library call where a kernel is needed.",
     "gkrun model.gk", "gkrun --emit graph model.gk  # lists the nodes"},
    {"E0509", "a program was compiled for another kind of device",
     "Compiled programs hold code for one kind of device. Compile again for the one that runs it.",
     "gkrun --device host model.gk  # with code made for cuda", "gkrun --device cuda model.gk"},

    {"E0510", "a handle of another context",
     "A stream, graph or context of the host program's belongs to another CUDA context or device than the "
     "engine. Open the engine in the context that the program uses, or make the stream in the engine's.",
     "// C++\ngk::Engine engine{{.device = \"cuda:1\"}};\ngk::Context ctx{engine, {.stream = "
     "stream_of_device_0}};",
     "// C++\ngk::Engine engine{{.device = \"cuda:0\"}};\ngk::Context ctx{engine, {.stream = "
     "stream_of_device_0}};"},
    {"E0512", "a call of the embedding interface makes no sense",
     "A null pointer where something is needed, memory that is not aligned to its elements, a negative "
     "number of launches, a launch shape for what is no kernel, a device that cannot be embedded. The "
     "message says which. Nothing has changed.",
     "// C++\ngk::Tensor x = gk::Tensor::wrap(ctx, nullptr, gk::f32, {16});",
     "// C++\ngk::Tensor x = gk::Tensor::wrap(ctx, pointer, gk::f32, {16});"},
    {"E0513", "a DLPack array cannot be taken",
     "It lies on another device, is read-only, has strides with gaps, elements that gk has no dtype for, or "
     "a version that is not understood. It still belongs to the caller.",
     "// C++\ngk::Tensor x = gk::Tensor::from_dlpack(ctx, transposed);",
     "// C++\ngk::Tensor x = gk::Tensor::from_dlpack(ctx, contiguous_copy);"},
    {"E0514", "used in a child by fork()",
     "fork() copies a process without its threads, and a GPU's driver does not follow it. Engines, contexts, "
     "arrays, "
     "graphs and sessions that were opened before are of no use in the child, and every call on them is this "
     "error; "
     "dropping them does nothing. What the child opens itself works on the host device.",
     "// C++\ngk::Engine e;\nif (fork() == 0) gk::Context c{e};",
     "// C++\nif (fork() == 0) { gk::Engine e; gk::Context c{e}; }"},

    // ---- E06xx: memory ----
    {"E0601", "out of memory",
     "The device, or the limit set with --memory-limit, has no room for the array or the graph's arena, even "
     "after "
     "all that can be given back was. The message gives the size, what is in use and the peak. Arrays that a "
     "graph "
     "uses stay alive as long as the graph.",
     "gkrun --memory-limit 100MiB model.gk", "gkrun --memory-limit 2GiB model.gk"},
    {"E0602", "a size in bytes overflows",
     "The number of elements is representable, their size in bytes is not, or is over what the device can "
     "address.",
     "let z = zeros(f64[2**61])", "let z = zeros(f64[2**20])"},

    // ---- E07xx: graphs and captures ----
    {"E0701", "an order between two graph nodes is missing",
     "Both nodes use the same array and at least one writes it, so their order matters; the written `after` "
     "leaves it "
     "open. Add the earlier node to `after`, or leave `after` out and let the order follow from what is read "
     "and "
     "written.",
     "graph g {\n  node a { x .= sin(x) }\n  node b { y .= x + 1 }\n  node c after (a) { z .= y }\n}",
     "graph g {\n  node a { x .= sin(x) }\n  node b { y .= x + 1 }\n  node c after (a, b) { z .= y }\n}"},
    {"E0702", "a capture rebinds an outer name",
     "A replay repeats device work; it cannot make a name of the program mean another array. Inside capture, "
     "node and "
     "update, write into the array with `.=`.",
     "var y = zeros(f32[4])\nlet g = capture { y = y + 1 }",
     "var y = zeros(f32[4])\nlet g = capture { y .= y + 1 }"},
    {"E0703", "a capture reads back or prints",
     "print, item, save and downloads to pageable memory wait for the device, and inside a capture nothing "
     "has run "
     "yet. Do it after the launch, or write into a pinned array.",
     "let g = capture { y .= x * 2; print(y) }", "let g = capture { y .= x * 2 }\nlaunch g\nprint(y)"},
    {"E0704", "unknown node",
     "The graph has no node of this name; `after` may name only nodes further up. The nodes it has are "
     "listed.",
     "graph g { node a { x .= 1 }; node b after (c) { y .= x } }",
     "graph g { node a { x .= 1 }; node b after (a) { y .= x } }"},
    {"E0705", "an update is refused",
     "An update retargets one node: one operation of the same kind on the same device, and the declared "
     "order must "
     "still hold for the arrays it now uses. Nothing has changed.",
     "update e.c { z .= x; w .= y }", "update e.c { z2 .= x }"},
    {"E0706", "a rebind is refused",
     "Rebinding replaces an array everywhere in an executable, so the new one needs the same dtype, shape "
     "and "
     "alignment, must not overlap another array of the graph that is written, and the old one has to be in "
     "use. "
     "Nothing has changed.",
     "var x2 = zeros(f64[4])\nupdate e { x -> x2 }", "var x2 = zeros(f32[4])\nupdate e { x -> x2 }"},
    {"E0707", "this is not a graph or an executable",
     "launch takes a graph, an executable or a kernel call; instantiate takes a graph; update takes an "
     "executable.",
     "let y = sin(x)\nlaunch y", "let g = capture { y .= sin(x) }\nlaunch g"},

    {"E0708", "a capture meets a blocking release",
     "Giving all memory back to the driver waits for the device, which a capture in progress would not "
     "survive, and the other way round: whichever comes second is refused at once. Nothing has changed; try "
     "again when the other is done.",
     "// C++\nctx.capture([&] { engine.reclaim(); });",
     "// C++\ngk::Graph g = ctx.capture([&] { y = f(x); });\nengine.reclaim();"},
    {"E0709", "the topology of two graphs differs",
     "An executable takes over the nodes of another graph only where that has the same operations in the "
     "same order. The message says where they part. The executable is as it was: instantiate the new graph "
     "instead.",
     "// C++\ne.update(graph_with_one_more_node);",
     "// C++\ngk::Exec e2 = graph_with_one_more_node.instantiate();"},
    {"E0710", "another thread is using this",
     "Contexts, graphs and executables are used by one thread at a time. A call from a second thread while "
     "another is inside is refused, and changes nothing. Give each thread a context of its own, or lock "
     "around the calls.",
     "// C++\nstd::thread t([&] { f(x); });\nf(x);",
     "// C++\nstd::thread t([&] { gk::Context mine{engine}; mine.compile(\"m\", "
     "text).fn<gk::Tensor(gk::Tensor)>(\"f\")(x); });"},
    {"E0711", "the stream is being captured by somebody else",
     "The context's stream, one of the host program's, is being captured by that program. Record with gk, by "
     "capture() on that stream or record_into() a graph, or end the other capture first.",
     "// C++\ncudaStreamBeginCapture(s, cudaStreamCaptureModeRelaxed);\nf(x);",
     "// C++\ngk::Graph g = ctx.capture([&] { f(x); });"},
    {"E0712", "a stream breaks a rule of captures",
     "A stream given to record on has to be a non-blocking one, of the engine's context, idle, and not "
     "capturing already. The message says which rule is broken.",
     "// C++\nctx.capture(work, {.stream = default_stream});",
     "// C++\ncudaStreamCreateWithFlags(&s, cudaStreamNonBlocking);\nctx.capture(work, {.stream = s});"},
    {"E0713", "too late: the capture has ended",
     "A thread wanted to take part in a capture, or to submit into it, after its end. What it submitted did "
     "not run. Threads that take part must be done before the captured function returns.",
     "// C++\ngk::CaptureToken token;\nctx.capture([&] { token = ctx.capture_token(); });\ngk::Context "
     "worker{token};",
     "// C++\nctx.capture([&] {\n  std::thread t([token = ctx.capture_token()] { gk::Context worker{token}; "
     "});\n  t.join();\n});"},
    {"E0714", "threads still take part at the end of a capture",
     "The captured function returned while contexts of other threads were still part of the capture. It was "
     "ended and discarded. Join the threads, or close their contexts, before the end.",
     "// C++\nctx.capture([&] { std::thread(work, ctx.capture_token()).detach(); });",
     "// C++\nctx.capture([&] { std::thread t(work, ctx.capture_token()); t.join(); });"},
    {"E0715", "something outside broke a capture",
     "A call that the driver forbids while a stream is captured was made meanwhile, by a library or by the "
     "host program; the message names the first call that failed. The capture was discarded and the stream "
     "is usable again.",
     "// C++\nctx.capture([&] { cudaDeviceSynchronize(); });",
     "// C++\nctx.capture([&] { library_call(ctx.stream()); });\ncudaDeviceSynchronize();"},
    {"E0716", "used after it was closed",
     "The executable, graph, context or array was closed or freed by the program, or the handle is empty. "
     "Handles cost nothing to keep: drop them instead of closing, where the moment does not matter.",
     "// C++\ne.close();\ne.launch(ctx);", "// C++\ne.launch(ctx);\ne.close();"},
    {"E0717", "an object of another engine or graph",
     "Arrays, contexts, graphs and executables belong to one engine, nodes to one graph. To share memory "
     "between two engines on a device, wrap its address with a context of the other.",
     "// C++\nf_of_engine_a(x_of_engine_b);",
     "// C++\ngk::Tensor x = gk::Tensor::wrap(ctx_a, x_of_engine_b.data(), gk::f32, "
     "{16});\nf_of_engine_a(x);"},
    {"E0718", "a capture inside a capture",
     "A context records one graph at a time. The outer capture goes on unharmed.",
     "// C++\nctx.capture([&] { ctx.capture([&] { f(x); }); });",
     "// C++\ngk::Graph inner = ctx.capture([&] { f(x); });\ngk::Graph outer = ctx.capture([&] { g(x); });"},
    {"E0719", "a body on a device condition cannot do this",
     "Inside a capture, an if or while on a value of the device becomes part of the graph: the device "
     "decides "
     "at "
     "each launch whether and how often the body runs. So the body cannot jump out of itself (break, "
     "continue, "
     "return), and the arrays and numbers that it rebinds keep their dtype and shape. Outside a capture the "
     "condition "
     "is read back, and none of this holds.",
     "let e = capture { var y = x\n  while sum(y) < 9 { y = concat([y, x]) } }",
     "let e = capture { var y = x\n  while sum(y) < 9 { y = y + x } }"},
    {"E0720", "a name was changed after a graph had captured it",
     "A warning. A graph goes on with the arrays and numbers that names stood for when it was captured; a "
     "name that is given another value does not reach it. An array that is written in place (.=) does, and "
     "so "
     "does "
     "an array of rank 0 in place of a number. update e { x -> y } gives an executable another array.",
     "var dt = 0.5\nlet e = capture { x .+= dt } |> instantiate\ndt = 0.25\nlaunch e",
     "var dt: f32[] = 0.5\nlet e = capture { x .+= dt } |> instantiate\ndt .= 0.25\nlaunch e"},

    // ---- E08xx: run time ----
    {"E0801", "an index was out of range at run time",
     "The first fault is kept and raised at the next synchronisation: line, axis, index and extent are those "
     "of that "
     "access. A load out of range gave 0 and a store was skipped, so nothing else was damaged. --unchecked "
     "turns the "
     "check off for kernels' own indexing.",
     "kernel shift(mut z: f32[n], x: f32[n]) over i in n { z[i] = x[i + 1] }",
     "kernel shift(mut z: f32[n], x: f32[n]) over i in n { if i + 1 < n { z[i] = x[i + 1] } }"},
    {"E0802", "integer division by zero",
     "// and % of integers have no result for a divisor of zero. Floats follow IEEE 754 and give inf or nan "
     "instead.",
     "let q = a // b", "let q = a // maximum(b, 1)"},
    {"E0803", "an assertion failed",
     "The condition of an assert was false. For ~= the largest difference is shown with its place and the "
     "tolerance; "
     "the default tolerance follows the dtype.",
     "assert 1.0 ~= 1.1", "assert 1.0 ~= 1.1, rtol=0.2"},
    {"E0804", "an expected error did not occur",
     "The block of expect_error has to fail with exactly this code. It succeeded, or failed with another, "
     "which is "
     "shown.",
     "expect_error E0301 { let a = zeros(f32[2]) + zeros(f32[2]) }",
     "expect_error E0301 { let a = zeros(f32[2]) + zeros(f32[3]) }"},
    {"E0805", "a NaN was found",
     "With --nan-check every array of floats is searched when it has been written, in graphs too, and the "
     "first NaN "
     "is reported with the line of what computed it: 0/0, inf - inf, the square root or logarithm of a "
     "negative "
     "number. Arrays that may hold NaN are named: --nan-check=x,y.",
     "let y = sqrt(x)", "let y = sqrt(maximum(x, 0))"},
    {"E0806", "interrupted",
     "Ctrl-C, or the host program, asked the run to stop. What was computed so far is valid up to the last "
     "finished "
     "statement; a session goes on.",
     "while true { x .= x + 1 }", "for i in 0..1000 { x .= x + 1 }"},

    // ---- E09xx: the compiler itself ----
    {"E0901", "an error in the compiler",
     "A check inside the compiler failed. The program is not to blame. Please report it with the text of the "
     "message "
     "and the smallest program that shows it.",
     "gkrun model.gk", "gkrun --emit ir model.gk  # attach this to the report"},
    {"E0902", "code generation failed",
     "LLVM, or the driver's assembler, refused the code made for a kernel. This is an error of the compiler "
     "unless the "
     "GPU is older than the oldest supported one. Please report it with the output of --emit=llvm or "
     "--emit=ptx.",
     "gkrun --device cuda model.gk", "gkrun --device host model.gk"},

    // ---- E10xx: files ----
    {"E1001", "a file cannot be opened or read",
     "The path does not exist, or may not be read. Paths given to load and save are relative to the working "
     "directory, those of import to the importing file.",
     "let x = load(\"missing.npy\")", "let x = load(\"data/x.npy\")"},
    {"E1002", "a file is not what its name says",
     "load reads .npy and .npz in NumPy's formats 1 to 3. The file has another beginning, is cut short, or "
     "its header "
     "does not match its size.",
     "let x = load(\"notes.txt\")", "let x = load(\"x.npy\")"},
    {"E1003", "a file holds a dtype or layout that is not supported",
     "Arrays of bool, integers and floats of up to 64 bits, in native or swapped byte order, can be read; "
     "objects, "
     "strings, structured and complex dtypes cannot. Convert with NumPy first.",
     "let x = load(\"objects.npy\")", "let x = load(\"floats.npy\")"},
    {"E1004", "a file cannot be written",
     "The directory does not exist, may not be written, or the disk is full. A file is written under another "
     "name "
     "first and renamed, so the old one is kept.",
     "save(\"no/such/dir/x.npy\", x)", "save(\"x.npy\", x)"},
    {"E1005", "the cache folder is not safe to use",
     "A warning: the run goes on, and compiles what it needs. Code that was compiled by an earlier run is "
     "machine "
     "code, which would be run unseen. So it is kept only in a folder of the user's own that nobody else can "
     "write, below folders that nobody else can exchange; docs/cache.md says more.",
     "gkrun --cache-dir /tmp/everybodys model.gk", "gkrun --cache-dir ~/.cache/gk model.gk"},

    // ---- E11xx: usage ----
    {"E1101", "the command line is not understood",
     "An option is unknown, lacks its value, or two exclude each other. `gkrun --help` lists them all.",
     "gkrun --devise host model.gk", "gkrun --device host model.gk"},
};

}  // namespace

std::span<const Explanation> machine_explanations() { return kRows; }

}  // namespace gk::syntax
