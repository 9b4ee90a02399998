"""Programs of the shapes that once took long or much memory to compile or to run for the first time, with one gkrun
or two, before and after a change, in turns on one machine. Prints a table: seconds and peak memory of whole processes,
medians, and the ratio. Nothing is asserted; what runs into the time limit is shown as such.

Usage: python3 bench/compile_shapes.py --gkrun PATH [--before PATH] [--only RE] [--rounds R] [--timeout S] [--interrupt] [--json]
"""
import argparse
import json
import os
import pathlib
import re
import resource
import signal
import statistics
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent


def lines(count, form):
    return "".join(form.format(i=i) for i in range(count))


def calls(depth):
    """A function that calls the next one twice, so often."""
    text = "fn h0(x) = x * 2 + 1\n"
    for d in range(1, depth + 1):
        text += f"fn h{d}(x) = h{d - 1}(x) + h{d - 1}(x + 1)\n"
    return text


# name: (what it is, program, options)
SHAPES = {
    "dead_lets": ("thirty dead `let`s of 4 MB in a captured fn",
                  "captured fn f(x: f32[n]) {\n" + lines(30, "  let t{i} = x * {i}.5 + 1\n") + "  x + 1\n}\n"
                  "let x = ones(f32[2**20])\nfor _ in 0..3 { let y = f(x) }\nprint(sum(f(x)))\n", []),
    "steered": ("a captured fn steered by a host number, 4,000 values",
                "captured fn f(x: f32[n], k) { var y = x\n  for _ in 0..k % 3 { y = y + 1 }\n  y * k }\n"
                "var x = ones(f32[64])\nfor k in 0..4000 { x .= f(x, k) / (k + 1) }\nprint(x[0])\n", []),
    "two_names": ("200 turns over two arrays",
                  "var x = linspace(0, 1, 1000), v = zeros(f32[1000])\n"
                  "for _ in 0..200 { v .-= 0.1 * sin(x); x .+= 0.1 * v }\nprint(sum(x))\n", []),
    "recurrence": ("an integer recurrence of 60 turns in a function, then a sum",
                   "fn f(x: i64[n]) { var a = x, b = x + 1\n"
                   "  for i in 0..60 { let c = (a * 3 + b * b + i) % 1000003; a = b; b = c }\n  sum(b) }\n"
                   "print(f(arange(100000)))\n", []),
    "nested": ("400 sines from two nested loops in a capture",
               "var x = linspace(0, 1, 1000)\n"
               "let e = capture { for _ in 0..20 { for _ in 0..20 { x .= sin(x) } } } |> instantiate\n"
               "launch e\nprint(sum(x))\n", []),
    "nodes_500": ("a graph of 500 nodes, each with its own literal",
                  lines(500, "var x{i} = zeros(f32[64])\n") + "graph g {\n" +
                  lines(500, "  node n{i} {{ x{i} .= x{i} + {i}.5 }}\n") + "}\nlaunch g\nprint(x7[0])\n", []),
    "builtins": ("10,000 uses of builtins, dtypes and extents, checked",
                 lines(500, "fn g{i}(x: f32[n]) {{ let y = zeros(f32[n]) + sin(x) + cos(x) * exp(x) / n\n"
                            "  let z = full(f32[n], n) + sqrt(y) + abs(y) + log(z0(y)); sum(z) }}\n") +
                 "fn z0(x) = maximum(x, 1)\nprint(1)\n", ["--check"]),
    "short_axis": ("sum over an axis of 3",
                   "let d = ones(f32[1500, 1500, 3])\nfor _ in 0..20 { let s = sum(d, axis=2) }\nprint(1)\n", []),
    "graph_300": ("a graph of 300 nodes in line", "var x = zeros(f32[64])\ngraph g {\n" +
                  lines(300, "  node n{i} {{ x .= x + 1 }}\n") + "}\nlaunch g\nprint(x[0])\n", []),
    "graph_3000": ("a graph of 3,000 nodes in line", "var x = zeros(f32[64])\ngraph g {\n" +
                   lines(3000, "  node n{i} {{ x .= x + 1 }}\n") + "}\nlaunch g\nprint(x[0])\n", []),
    "literals": ("1,000 statements that differ in a literal",
                 "var x = zeros(f32[64])\n" + lines(1000, "x .= x * 0.5 + {i}.5\n") + "print(x[0])\n", []),
    "calls_16": ("a function that calls the next twice, depth 16",
                 calls(16) + "print(h16(3))\n", []),
    "calls_arrays": ("the same with arrays, depth 12", calls(12) + "print(sum(h12(ones(f32[8]))))\n", []),
    "errors": ("100,000 errors in a file", lines(100000, "let y{i} = foo{i}\n"), []),
    "strings": ("a string joined 40,000 times",
                "var s = \"\"\nfor i in 0..40000 { s = s + \"abcdefghij\" }\nprint(len(s))\n", []),
    "captures": ("10,000 bare captures", "var x = zeros(f32[64])\nfor i in 0..10000 { let g = capture { x .+= 1 } }\n"
                 "print(x[0])\n", []),
    "shapes": ("3,000 shapes", "for n in 1..3000 { let x = ones(f32[n]) * 2 + 1 }\nprint(1)\n", []),
    "literal_1e6": ("a literal of a million integers",
                    lambda: "let x = [" + ", ".join(str(i * 7 % 1000) for i in range(10**6)) + "]\nprint(sum(x))\n", []),
    "line_10mb": ("a line of 10 MB",
                  lambda: "let x = [" + ", ".join(f"{i % 97}.25" for i in range(10**7 // 7)) + "]\nprint(sum(x))\n", []),
    "statements": ("10,000 statements", "var x = zeros(f32[64])\n" + lines(10000, "let y{i} = x * 3 + {i}\n") +
                   "print(y9999[0])\n", []),
    "turns_400": ("400 turns of a sine in a function",
                  "fn f(mut x: f32[n], k) { for i in 0..k { x .= sin(x) } }\nvar x = linspace(0, 1, 1000)\n"
                  "f(mut x, 400)\nprint(sum(x))\n", []),
}


def run(gkrun, program, options, timeout):
    """Seconds, MB at most, and how it ended."""
    command = [gkrun, "--device", "host", "--no-cache", *options, program]
    start = time.perf_counter()
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                             preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (16 << 30, 16 << 30)))
    ended = "ok"
    while True:
        pid, status, usage = os.wait4(child.pid, os.WNOHANG)
        if pid:
            break
        if time.perf_counter() - start > timeout:
            child.kill()
            ended = "time limit"
            pid, status, usage = os.wait4(child.pid, 0)
            break
        time.sleep(0.002)
    seconds = time.perf_counter() - start
    child.returncode = os.waitstatus_to_exitcode(status)
    if ended == "ok" and child.returncode != 0:
        ended = f"status {child.returncode}"
    return seconds, usage.ru_maxrss / 1024, ended


def interrupt(gkrun, program, options, timeout, moments=8):
    """The longest that gkrun took to end after Ctrl-C, in ms, over moments spread over its run."""
    total, _, _ = run(gkrun, program, options, timeout)
    worst = 0.0
    for i in range(1, moments + 1):
        child = subprocess.Popen([gkrun, "--device", "host", "--no-cache", *options, program],
                                 stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(total * i / (moments + 1))
        start = time.perf_counter()
        if child.poll() is None:
            child.send_signal(signal.SIGINT)
        child.wait()
        worst = max(worst, (time.perf_counter() - start) * 1e3)
    return worst


def cold(gkrun, timeout):
    """Every example and test program once, without a cache: the median of their times in ms."""
    root = HERE.parent
    programs = sorted((root / "examples").rglob("*.gk")) + sorted((root / "tests" / "scripts").rglob("*.gk"))
    times = []
    for program in programs:
        seconds, _, ended = run(gkrun, str(program), [], timeout)
        if ended != "time limit":
            times.append(seconds * 1e3)
    return {"programs": len(programs), "median_ms": statistics.median(times), "mean_ms": statistics.mean(times),
            "over_300_ms": sum(t > 300 for t in times), "over_1_s": sum(t > 1000 for t in times)}


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--gkrun", required=True)
    options.add_argument("--before")
    options.add_argument("--only", default="")
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--timeout", type=float, default=60)
    options.add_argument("--interrupt", action="store_true", help="how soon Ctrl-C is heard, instead of times")
    options.add_argument("--json", action="store_true")
    given = options.parse_args()
    binaries = {"before": given.before, "after": given.gkrun} if given.before else {"after": given.gkrun}
    results = {}
    with tempfile.TemporaryDirectory(prefix="gk-shapes-") as folder:
        for name, (what, text, extra) in SHAPES.items():
            if not re.search(given.only, name):
                continue
            program = pathlib.Path(folder) / f"{name}.gk"
            program.write_text(text() if callable(text) else text)
            if given.interrupt:
                results[name] = {b: interrupt(path, str(program), extra, given.timeout) for b, path in binaries.items()}
                print(f"{name:14} " + "  ".join(f"{b} {ms:6.0f} ms" for b, ms in results[name].items()), flush=True)
                continue
            rows = {b: [] for b in binaries}
            for _ in range(given.rounds):
                for b, path in binaries.items():
                    if rows[b] and rows[b][-1][2] == "time limit":
                        continue
                    rows[b].append(run(path, str(program), extra, given.timeout))
            row = {"what": what}
            for b, got in rows.items():
                row[b] = {"s": statistics.median(r[0] for r in got), "mb": max(r[1] for r in got), "ended": got[-1][2]}
            results[name] = row
            if not given.json:
                shown = "  ".join(f"{b} {row[b]['s']:7.2f} s {row[b]['mb']:6.0f} MB"
                                  f"{'' if row[b]['ended'] == 'ok' else ' (' + row[b]['ended'] + ')'}" for b in binaries)
                ratio = f"  x {row['before']['s'] / row['after']['s']:.1f}" if given.before else ""
                print(f"{name:14} {shown}{ratio}  # {what}", flush=True)
        if re.search(given.only, "cold_runs") and not given.interrupt:
            results["cold_runs"] = {b: cold(path, given.timeout) for b, path in binaries.items()}
            if not given.json:
                for b, got in results["cold_runs"].items():
                    print(f"cold runs of examples and test programs, {b}: {got}", flush=True)
    if given.json:
        json.dump(results, sys.stdout, indent=1)
        print()


if __name__ == "__main__":
    main()
