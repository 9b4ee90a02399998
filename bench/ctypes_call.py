"""What an eager call through the C interface costs from Python, by ctypes: microseconds a call, the median of batches.
Usage: ctypes_call.py LIBGK [DEVICE]
"""

import ctypes
import statistics
import sys
import time

PROGRAM = b"""
fn step(mut x: f32[n], v: f32[n]) { x .= x + 0.5 * v }
fn scaled(x: f32[n], a: f32) = x * a
"""


class Options(ctypes.Structure):
    _fields_ = [
        ("device", ctypes.c_char_p),
        ("memory_limit_bytes", ctypes.c_int64),
        ("cache_dir", ctypes.c_char_p),
        ("no_cache", ctypes.c_bool),
        ("host_threads", ctypes.c_int),
        ("native_context", ctypes.c_void_p),
        ("nan_check", ctypes.c_bool),
        ("nan_exempt", ctypes.c_char_p),
    ]


def main():
    lib = ctypes.CDLL(sys.argv[1])
    device = (sys.argv[2] if len(sys.argv) > 2 else "host").encode()
    pointer, integer = ctypes.c_void_p, ctypes.c_int
    lib.gk_values_new.restype = pointer
    lib.gk_error_message.restype = ctypes.c_char_p
    lib.gk_error_message.argtypes = [pointer]
    for name, arguments in {
        "gk_values_add_tensor": [pointer, pointer],
        "gk_values_add_f32": [pointer, ctypes.c_float],
        "gk_values_free": [pointer],
    }.items():
        getattr(lib, name).argtypes = arguments
        getattr(lib, name).restype = None

    def function(name, *arguments):
        f = getattr(lib, name)
        f.argtypes, f.restype = list(arguments), pointer
        return f

    def check(error):
        if error:
            raise RuntimeError(lib.gk_error_message(error).decode())

    engine, context, module = pointer(), pointer(), pointer()
    options = Options(device=device, no_cache=True)
    check(function("gk_engine_open", pointer, pointer)(ctypes.byref(options), ctypes.byref(engine)))
    check(function("gk_context_open", pointer, pointer)(engine, ctypes.byref(context)))
    compile_text = function("gk_compile", pointer, ctypes.c_char_p, ctypes.c_char_p, pointer)
    check(compile_text(context, b"step.gk", PROGRAM, ctypes.byref(module)))
    find = function("gk_module_function", pointer, ctypes.c_char_p, pointer)
    step, scaled = pointer(), pointer()
    check(find(module, b"step", ctypes.byref(step)))
    check(find(module, b"scaled", ctypes.byref(scaled)))
    full = function("gk_tensor_full", pointer, integer, integer, pointer, ctypes.c_double, pointer)
    shape = (ctypes.c_int64 * 1)(16)
    x, v = pointer(), pointer()
    f32 = 11
    for t in (x, v):
        check(full(context, f32, 1, shape, 1e-3, ctypes.byref(t)))
    call = function("gk_call", pointer, pointer, pointer, pointer)
    call_tensors = function("gk_call_tensors", pointer, pointer, integer, pointer)
    synchronize = function("gk_context_synchronize", pointer)

    def arguments_of(*add):
        values = lib.gk_values_new()
        for what, value in add:
            what(values, value)
        return values

    tensor, number = lib.gk_values_add_tensor, lib.gk_values_add_f32
    kept = arguments_of((tensor, x), (tensor, v))

    def again():
        check(call(step, kept, None, None))

    def anew():
        values = lib.gk_values_new()
        tensor(values, x)
        tensor(values, v)
        check(call(step, values, None, None))
        lib.gk_values_free(values)

    pair = pointer * 2

    def arrays():
        check(call_tensors(step, pair(x, v), 2, None))

    def with_result():
        values = lib.gk_values_new()
        tensor(values, x)
        number(values, 0.5)
        results = pointer()
        check(call(scaled, values, None, ctypes.byref(results)))
        lib.gk_values_free(values)
        lib.gk_values_free(results)

    for name, work in {"with kept arguments": again, "with new arguments": anew, "of two arrays": arrays, "with a result": with_result}.items():
        for _ in range(1000):
            work()
        batches = []
        for _ in range(21):
            check(synchronize(context))
            start = time.perf_counter()
            for _ in range(1000):
                work()
            batches.append((time.perf_counter() - start) * 1000)
        check(synchronize(context))
        print(f"{device.decode()}: a call {name}: {statistics.median(batches):.2f} us")


main()
