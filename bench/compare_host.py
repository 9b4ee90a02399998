"""Runs bench/host.gk with gkrun and the same works in NumPy, in turns on the same cores, and writes the ratios.

Usage: python3 bench/compare_host.py GKRUN [--rounds R] [--out FILE]     (default FILE: bench/results/host-CPU.json)
The commit is taken from GK_COMMIT, else from git.
"""
import argparse
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
TARGETS = {"rk4": 5, "lorenz": 5, "tanh chain": 3}  # times NumPy's speed; 1 for the rest


def run(command):
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)


def cpu_name():
    with open("/proc/cpuinfo") as info:
        for line in info:
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return "unknown"


def commit():
    if os.environ.get("GK_COMMIT"):
        return os.environ["GK_COMMIT"]
    got = subprocess.run(["git", "-C", str(HERE), "rev-parse", "HEAD"], capture_output=True, text=True)
    return got.stdout.strip() or "unknown"


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("gkrun")
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--out")
    given = options.parse_args()
    ours, theirs, about, device = {}, {}, {}, {}
    for _ in range(given.rounds):
        got = run([given.gkrun, "--device", "host", "--bench", "--json", str(HERE / "host.gk")])
        device = got["device"]
        for row in got["benches"]:
            ours.setdefault(row["name"], []).append(row["per_iteration_us"]["median"])
        about = run([sys.executable, str(HERE / "numpy_host.py")])
        for row in about.pop("rows"):
            if "blas_kernel" in row:
                about["blas"] = f"{row['blas_kernel']}, {row['blas_threads']} threads"
            theirs.setdefault(row["name"], []).append(row["per_iteration_us"]["median"])
    rows = []
    for name, times in ours.items():
        mine, other = statistics.median(times), statistics.median(theirs[name])
        target = TARGETS.get(name, 1)
        rows.append({"work": name, "gk_us": mine, "gk_rounds_us": times, "numpy_us": other,
                     "numpy_rounds_us": theirs[name], "times_numpy": other / mine, "target": target,
                     "met": other / mine >= target})
        print(f"{name:<12} gk {mine:10.1f} us   NumPy {other:10.1f} us   {other / mine:6.2f} x   (target {target} x)")
    name = cpu_name()
    slug = re.sub(r"[^a-z0-9]+", "-", re.sub(r"\((r|tm)\)", "", name.lower())).strip("-")
    out = pathlib.Path(given.out) if given.out else HERE / "results" / f"host-{slug}.json"
    out.parent.mkdir(parents=True, exist_ok=True)
    document = {"what": "P10: host device against NumPy", "cpu": name, "commit": commit(), "gk_device": device,
                "reference": about, "rows": rows}
    out.write_text(json.dumps(document, indent=1) + "\n")
    print(f"written: {out}")


if __name__ == "__main__":
    main()
