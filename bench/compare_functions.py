"""The host device's elementwise functions against NumPy's, a million elements each: compare_functions.py GKRUN [busy]
Prints a line a function: microseconds of both (medians), and NumPy's over gk's. gk uses all cores, NumPy one.
With `busy`, for a machine that others use too, both have one core; of three runs the one with the least time that a
tenth of the launches stayed below counts, and half of gk's time, as if it had two cores."""
import json
import os
import subprocess
import sys
import tempfile
import time

import numpy as np

ELEMENTS = 1_000_000
RANGES = {
    "exp": (-4, 4), "exp2": (-4, 4), "expm1": (-4, 4), "log": (0.01, 40), "log2": (0.01, 40), "log10": (0.01, 40),
    "log1p": (0, 40), "sin": (-4, 4), "cos": (-4, 4), "tan": (-4, 4), "tanh": (-4, 4), "sinh": (-4, 4),
    "cosh": (-4, 4), "asin": (-1, 1), "acos": (-1, 1), "atan": (-4, 4), "asinh": (-4, 4), "acosh": (1, 9),
    "atanh": (-0.9, 0.9), "cbrt": (-9, 9),
}
NUMPY = {"asin": "arcsin", "acos": "arccos", "atan": "arctan", "asinh": "arcsinh", "acosh": "arccosh", "atanh": "arctanh"}


def program(dtype):
    return "".join(
        f"let x_{f} = linspace({a}, {b}, {ELEMENTS}, dtype={dtype})\nvar y_{f} = x_{f} * 0\n"
        f"let e_{f} = capture {{ y_{f} .= {f}(x_{f}) }} |> instantiate\nbench \"{f}\" {{ launch e_{f} }}\n"
        for f, (a, b) in RANGES.items())


def numpy_us(f, dtype, busy):
    x = np.linspace(*RANGES[f], ELEMENTS, dtype={"f32": "float32", "f64": "float64"}[dtype])
    y, taken, function = np.empty_like(x), [], getattr(np, NUMPY.get(f, f))
    for _ in range(63 if busy else 21):
        start = time.perf_counter()
        function(x, out=y)
        taken.append(time.perf_counter() - start)
    return sorted(taken)[2 if busy else 10] * 1e6


def gk_us(program, gkrun, busy):
    with tempfile.NamedTemporaryFile("w", suffix=".gk") as file:
        file.write(program)
        file.flush()
        out = subprocess.run([gkrun, "--device", "host", "--no-cache", "--bench", "--json", file.name],
                             capture_output=True, text=True, check=True).stdout
    benches = json.loads(out)["benches"]
    if busy:
        return {b["name"]: b["latency_us"]["p10"] / 2 for b in benches}
    return {b["name"]: b["per_iteration_us"]["median"] for b in benches}


def main():
    busy = sys.argv[2:] == ["busy"]
    if busy:
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    for dtype in ("f32", "f64"):
        runs = [gk_us(program(dtype), sys.argv[1], busy) for _ in range(3 if busy else 1)]
        for f in RANGES:
            ours, theirs = min(run[f] for run in runs), numpy_us(f, dtype, busy)
            print(f"{dtype} {f:6} gk {ours:6.0f} us   numpy {theirs:6.0f} us   {theirs / ours:.2f}")


if __name__ == "__main__":
    main()
