"""The works of bench/host.gk in NumPy, under the same names, on the same number of cores.

Written as a careful user would: results into arrays made beforehand, no temporaries that `out=` avoids. NumPy's
elementwise loops use one core whatever is asked. Its matrix products use OpenBLAS, which may not know a new CPU and
then takes a kernel of long ago: the script runs itself with each kernel that the CPU can run and with one thread and
all of them, and keeps the fastest. Prints one JSON document.
Usage: python3 numpy_host.py [--seconds S]
"""
import argparse
import json
import os
import platform
import subprocess
import sys
import time

BATCHES = 11


def quantiles(values):
    values = sorted(values)
    at = lambda q: values[int(q * (len(values) - 1) + 0.5)]
    return {"p10": at(0.1), "median": at(0.5), "p90": at(0.9)}


def measure(work, seconds):
    for _ in range(3):
        work()
    start = time.perf_counter()
    work()
    once = max(time.perf_counter() - start, 1e-7)
    batch = max(1, min(20000, int(seconds / BATCHES / once)))
    per = []
    for _ in range(BATCHES):
        start = time.perf_counter()
        for _ in range(batch):
            work()
        per.append((time.perf_counter() - start) / batch * 1e6)
    return quantiles(per)


def works():
    import numpy as np

    rng = np.random.default_rng(1)
    normal = lambda *shape: rng.standard_normal(shape, dtype=np.float32)
    f = np.float32
    n = 2**22
    p, q, o, t = normal(n), normal(n), np.zeros(n, f), np.zeros(n, f)

    def axpy():
        np.multiply(p, f(2.5), out=t)
        np.add(t, q, out=o)

    def tanh_chain():
        np.multiply(p, p, out=t)
        np.multiply(t, f(0.044715), out=t)
        np.add(t, f(1), out=t)
        np.multiply(p, f(0.79788), out=o)
        np.multiply(o, t, out=t)
        np.tanh(t, out=t)
        np.multiply(t, q, out=t)
        np.add(t, p, out=o)

    def total():
        return p.sum()

    m = normal(2048, 1024)
    w = np.zeros_like(m)

    def softmax():
        np.subtract(m, m.max(axis=1, keepdims=True), out=w)
        np.exp(w, out=w)
        np.divide(w, w.sum(axis=1, keepdims=True), out=w)

    def rk4(s, slope, h):
        along = lambda c, k: [a + c * b for a, b in zip(s, k)]
        k1 = slope(s)
        k2 = slope(along(h / 2, k1))
        k3 = slope(along(h / 2, k2))
        k4 = slope(along(h, k3))
        return along(h / 6, [a + 2 * b + 2 * c + d for a, b, c, d in zip(k1, k2, k3, k4)])

    def steps(s, slope):
        h = f(0.01)
        for _ in range(10):
            s = rk4(s, slope, h)
        return s

    u = rng.random(4096, dtype=f)
    xyz = [normal(4096) for _ in range(3)]
    sigma, rho, beta = f(10), f(28), f(8 / 3)
    logistic = lambda s: [s[0] * (1 - s[0])]
    lorenz = lambda s: [sigma * (s[1] - s[0]), s[0] * (rho - s[2]) - s[1], s[0] * s[1] - beta * s[2]]

    layers = [(normal(256, 256) / f(16), normal(256)) for _ in range(4)]
    hs = [normal(16, 256)] + [np.zeros((16, 256), f) for _ in range(4)]

    def mlp():
        for i, (weights, bias) in enumerate(layers):
            out = hs[i + 1]
            np.matmul(hs[i], weights, out=out)
            np.add(out, bias, out=out)
            np.maximum(out, f(0), out=out)

    pos = np.abs(p) + f(0.1)
    p64, pos64, o64 = p.astype(np.float64), pos.astype(np.float64), np.zeros(n)
    functions = {}
    for name in ("exp", "log", "sin", "cos", "tanh"):
        call = getattr(np, name)
        functions[f"{name} f32"] = lambda call=call, x=pos if name == "log" else p: call(x, out=o)
        functions[f"{name} f64"] = lambda call=call, x=pos64 if name == "log" else p64: call(x, out=o64)
    image, grey = normal(1500, 1500, 3), np.zeros((1500, 1500), f)
    bins = rng.integers(0, 64, n, dtype=np.int32)

    return functions | {
        "pow f32": lambda: np.power(pos, p, out=o),
        "pow f64": lambda: np.power(pos64, p64, out=o64),
        "sum of 3": lambda: np.sum(image, axis=2, out=grey),
        "max of 3": lambda: np.max(image, axis=2, out=grey),
        "roll": lambda: np.concatenate([p[1:], p[:1]], out=o),
        "histogram": lambda: np.bincount(bins, minlength=64),
        "axpy": axpy,
        "tanh chain": tanh_chain,
        "sum": total,
        "softmax": softmax,
        "rk4": lambda: steps([u], logistic),
        "lorenz": lambda: steps(xyz, lorenz),
        "mlp": mlp,
    }


def blas_kernel():
    """The OpenBLAS kernel in use, where the library says it; Debian's NumPy names only "blas"."""
    import ctypes

    with open("/proc/self/maps") as maps:
        paths = {line.split()[-1] for line in maps if "openblas" in line and ".so" in line}
    for path in sorted(paths):
        for prefix in ("", "scipy_"):
            for suffix in ("", "64_"):
                name = getattr(ctypes.CDLL(path), f"{prefix}openblas_get_corename{suffix}", None)
                if name:
                    name.restype = ctypes.c_char_p
                    return name().decode()
    return "unknown"


def child(seconds, only):
    import numpy

    rows = {name: measure(work, seconds) for name, work in works().items() if not only or name in only}
    json.dump({"rows": rows, "numpy": numpy.__version__, "blas_kernel": blas_kernel()}, sys.stdout)


def blas_settings(cores):
    """Environments to try: OpenBLAS's own choice first, then every kernel that the CPU has the instructions for."""
    with open("/proc/cpuinfo") as info:
        flags = next((set(line.split()) for line in info if line.startswith("flags")), set())
    kernels = [None]
    kernels += ["Haswell"] if "avx2" in flags else []
    kernels += ["SkylakeX"] if "avx512dq" in flags else []
    for kernel in kernels:
        for threads in sorted({1, cores}):
            env = {"OPENBLAS_NUM_THREADS": str(threads)}
            if kernel:
                env["OPENBLAS_CORETYPE"] = kernel
            yield env


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--seconds", type=float, default=0.5, help="time for each work and setting")
    options.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    options.add_argument("--only", action="append", help=argparse.SUPPRESS)
    given = options.parse_args()
    if given.child:
        return child(given.seconds, given.only)
    cores = len(os.sched_getaffinity(0))
    best, about = {}, {}
    for env in blas_settings(cores):
        command = [sys.executable, __file__, "--child", "--seconds", str(given.seconds)]
        if best:
            command += ["--only", "mlp"]  # what the setting matters to
        environment = {k: v for k, v in os.environ.items() if k != "OPENBLAS_CORETYPE"}
        environment.update(env)
        got = json.loads(subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE).stdout)
        about["numpy"] = got["numpy"]
        for name, row in got["rows"].items():
            if name not in best or row["median"] < best[name]["per_iteration_us"]["median"]:
                best[name] = {"name": name, "per_iteration_us": row}
                if name == "mlp":
                    best[name].update(blas_kernel=got["blas_kernel"], blas_threads=int(env["OPENBLAS_NUM_THREADS"]))
    about.update(python=platform.python_version(), cores=cores, rows=list(best.values()))
    json.dump(about, sys.stdout, indent=1)
    print()


if __name__ == "__main__":
    main()
