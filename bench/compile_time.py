"""What compiling costs: bench/compile.gk with an empty cache folder and with the one that run left, and the whole
process of `gkrun -e 'print(1 + 1)' --device host`. Prints one JSON document.

Usage: python3 bench/compile_time.py GKRUN [--device D] [--rounds R]
"""
import argparse
import json
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent


def timed(command):
    start = time.perf_counter()
    got = subprocess.run(command, check=True, capture_output=True, text=True)
    return (time.perf_counter() - start) * 1e3, got


def with_stats(gkrun, device, cache, program):
    command = [gkrun, "--cache-dir", cache, "--stats=json"] + (["--device", device] if device else []) + program
    wall, got = timed(command)
    stats = json.loads(got.stderr[got.stderr.index("{"):])
    return {"wall_ms": wall, "compile_ms": stats["compile_ms"], "compiles": stats["compiles"],
            "kernels": stats["kernels"], "disk_cache_hits": stats["disk_cache_hits"]}


def summary(rows):
    return {key: statistics.median(r[key] for r in rows) for key in rows[0]} | {"rounds": len(rows)}


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("gkrun")
    options.add_argument("--device", default="")
    options.add_argument("--rounds", type=int, default=5)
    given = options.parse_args()
    program = [str(HERE / "compile.gk")]
    cold, warm, nothing = [], [], []
    for _ in range(given.rounds):
        cache = tempfile.mkdtemp(prefix="gk-cache-")
        try:
            cold.append(with_stats(given.gkrun, given.device, cache, program))
            warm.append(with_stats(given.gkrun, given.device, cache, program))
            nothing.append(with_stats(given.gkrun, given.device, cache, ["-e", "let x = 1"]))
        finally:
            shutil.rmtree(cache, ignore_errors=True)
    small = [timed([given.gkrun, "-e", "print(1 + 1)", "--device", "host"])[0] for _ in range(20)]
    json.dump({"mlp_cold": summary(cold), "mlp_from_disk_cache": summary(warm), "no_work": summary(nothing),
               "print_on_host_wall_ms": {"median": statistics.median(small), "min": min(small), "max": max(small)}},
              sys.stdout, indent=1)
    print()


if __name__ == "__main__":
    main()
