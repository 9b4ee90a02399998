"""Gathers what bench/run_gpu.sh left in a folder into OUT/results.json, and the ratios against the targets into
OUT/table.txt. Parts that are missing are rows that are missing.

Usage: python3 bench/collect.py FOLDER OUT
       python3 bench/collect.py RESULTS.json TABLE.txt      the table again, of results that were gathered before
"""
import datetime
import json
import os
import pathlib
import statistics
import sys


def read_json(path):
    try:
        return json.loads(path.read_text())
    except (OSError, ValueError):
        return None


def read_lines(path):
    rows = []
    for line in path.read_text().splitlines():
        try:
            rows.append(json.loads(line))
        except ValueError:
            pass
    return rows


def middle(rows):
    """One row of several rounds: each figure's median over the rounds."""
    out = {"rounds": len(rows)}
    for kind in ("submit_us", "per_iteration_us", "latency_us"):
        out[kind] = {q: round(statistics.median(r[kind][q] for r in rows), 3) for q in ("p10", "median", "p90")}
    return out


def gather(folder):
    doc = {"commit": os.environ.get("GK_COMMIT", "unknown"), "date": datetime.date.today().isoformat(), "gk": {},
           "hand": [], "peers": []}
    machine = folder / "machine.txt"
    doc["machine"] = machine.read_text().splitlines() if machine.exists() else []
    benches, hand = {}, {}
    for path in sorted(folder.glob("gk.*.json")):
        got = read_json(path)
        if not got:
            continue
        doc["device"] = got["device"]
        for row in got["benches"]:
            benches.setdefault(row["name"], []).append(row)
    doc["gk"] = {name: middle(rows) for name, rows in benches.items()}
    for path in sorted(folder.glob("hand.*.jsonl")):
        for row in read_lines(path):
            hand.setdefault((row["work"], row["system"].split(", block")[0]), []).append(row)
    for (work, system), rows in hand.items():
        doc["hand"].append({"work": work, "system": system, "nodes": rows[0]["nodes"],
                            "relative_error": rows[0]["relative_error"], **middle(rows)})
    for path in sorted(folder.glob("peers.*.jsonl")):
        doc["peers"] += read_lines(path)
    doc["gk_bench"] = read_json(folder / "gk_bench.json")
    doc["compile_time"] = read_json(folder / "compile_time.json")
    return doc


class Table:
    def __init__(self):
        self.lines, self.rows = [], []

    def row(self, target, what, value, limit, unit="x", note=""):
        met = None if limit is None else value <= limit
        self.rows.append({"target": target, "what": what, "value": round(value, 4), "limit": limit, "unit": unit,
                          "met": met, "note": note})
        mark = {None: "", True: "ok", False: "MISSED"}[met]
        bound = "" if limit is None else f"<= {limit:g}"
        self.lines.append(f"{target:<4}{what:<58}{value:>11.3f} {unit:<4}{bound:>10}  {mark:<7}{note}")


def small_works(t, doc):
    gk = lambda name: doc["gk"].get(name, {}).get("per_iteration_us", {}).get("median")
    hand = lambda work, starts: [(r["per_iteration_us"]["median"], r["system"]) for r in doc["hand"]
                                 if r["work"] == work and r["system"].startswith(starts)]
    peers = lambda work: [(r["per_iter_us"], r["system"]) for r in doc["peers"]
                          if r.get("work") == work and "per_iter_us" in r]
    for target, work, peer_limit, hand_limit in (("P1", "mlp", 0.5, None), ("P2", "rk4", 0.6, 1.15),
                                                 ("P2", "lorenz", 0.6, 1.15)):
        ours = gk(f"{work} launch")
        if ours is None:
            continue
        t.row(target, f"{work}: a launch, per iteration", ours, 10 if work == "mlp" else None, "us")
        if hand(work, "hand"):
            best, system = min(hand(work, "hand"))
            t.row(target, f"{work}: to the best hand-written", ours / best, hand_limit, "x", f"{system}: {best:.2f} us")
        if hand(work, "cublasLt"):
            best, system = min(hand(work, "cublasLt"))
            t.row(target, f"{work}: to cuBLASLt", ours / best, 1.0, "x", f"{system}: {best:.2f} us")
        if peers(work):
            best, system = min(peers(work))
            t.row(target, f"{work}: to the best peer", ours / best, peer_limit, "x", f"{system}: {best:.2f} us")
        for other in ("with upload", "eager", "capture"):
            name = f"{work} launch {other}" if other == "with upload" else f"{work} {other}"
            if gk(name) is not None:
                t.row(target, f"{name}, per iteration", gk(name), None, "us")
    for name in ("rk4 fuse off launch", "lorenz fuse off launch", "ten kernels eager",
                 "ten kernels capture and instantiate", "ten kernels launch", "chain launch", "chain fuse off launch",
                 "cg, convergence test on the device", "cg, residual read back every turn",
                 "cg, residual read back every 16 turns"):
        if gk(name) is not None:
            t.row("", f"{name}, per iteration", gk(name), None, "us")


def driver_rows(t, doc):
    rows = (doc["gk_bench"] or {}).get("rows", [])
    differences = []
    for r in rows:
        label = f"{r['work']} ({r['kernels']}): {r.get('what', '')}"
        if r["target"] == "P6":
            limit = 2 if "fuse off" in r["work"] else 0
            for mode in ("graph", "eager"):
                t.row("P6", f"{r['work']}: buffers beside input and output, {mode}",
                      r[f"{mode}_extra_bytes"] / r["buffer_bytes"], limit, "")
            continue
        if "raw_us" not in r:
            t.row(r["target"], label, r["gk_us"]["median"], None, "us", "no raw driver")
            continue
        gk, raw = r["gk_us"]["median"], r["raw_us"]["median"]
        note = f"{gk:.3f} us against {raw:.3f}"
        what, target = r.get("what", ""), r["target"]
        if target == "P2" and "fuse off" in r["work"] and what == "per iteration":
            t.row(target, label, gk / raw, 1.05, "x", note)
        elif target == "P3" and what.startswith("launch"):
            t.row(target, label + ", above raw", gk - raw, 0.05, "us", note)
        elif target == "P3" and what.startswith("eager"):
            t.row(target, label, gk / raw, 1.2, "x", note)
        elif target == "P3" and what.startswith("capture"):
            t.row(target, label, gk / raw, 1.3, "x", note)
        elif target == "P4" and what == "launch, device idle":
            differences.append((r["kernels"], gk - raw))
            t.row(target, label + ", above raw", gk - raw, round(0.02 * raw + 0.05, 3), "us", note)
        elif target == "P5":
            t.row(target, label, gk, round(1.2 * raw + 0.3, 3), "us", note)
        else:
            t.row(target, label, gk / raw, None, "x", note)
    if len(differences) > 1:
        (n0, d0), (n1, d1) = differences[0], differences[-1]
        t.row("P4", "slope of our own part, an array", (d1 - d0) / (n1 - n0) * 1e3, 0.1, "ns")


def compile_rows(t, doc):
    c = doc["compile_time"]
    if not c:
        return
    t.row("P9", "mlp: text to code, cold", c["mlp_cold"]["compile_ms"], 150, "ms",
          f"whole process {c['mlp_cold']['wall_ms']:.0f} ms, {c['mlp_cold']['kernels']:.0f} kernels")
    t.row("P9", "mlp: from the disk cache", c["mlp_from_disk_cache"]["compile_ms"], 5, "ms",
          f"whole process {c['mlp_from_disk_cache']['wall_ms']:.0f} ms; with no work {c['no_work']['wall_ms']:.0f} ms")
    t.row("P9", "print(1 + 1) on host, whole process", c["print_on_host_wall_ms"]["median"], 60, "ms")


def heading(doc):
    """Where and when the figures were taken, for the head of the table."""
    device = doc.get("device", {})
    parts = [device.get("name", "unknown device"), "driver " + device.get("driver", "unknown")]
    parts += [line.split(":", 1)[1].strip() for line in doc["machine"] if line.startswith("model name")]
    parts.append("commit " + doc["commit"])
    parts += ["date " + doc["date"]] if "date" in doc else []
    return "# " + "; ".join(parts)


def main():
    source, out = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    again = source.suffix == ".json"
    doc = read_json(source) if again else gather(source)
    table = Table()
    small_works(table, doc)
    driver_rows(table, doc)
    compile_rows(table, doc)
    if not again:
        doc["table"] = table.rows
        (out / "results.json").write_text(json.dumps(doc, indent=1) + "\n")
    (out if again else out / "table.txt").write_text("\n".join([heading(doc)] + table.lines) + "\n")


if __name__ == "__main__":
    main()
