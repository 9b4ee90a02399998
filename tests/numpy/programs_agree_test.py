"""The four programs and digits give the same numbers on every device, eagerly and as a replayed graph.

Runs examples/*.gk and examples/digits/digits.gk through $GKRUN on interp, host and (where one answers) cuda, each
device with graphs and step by step (--eager), and compares what they print and save: bit for bit between eager and
graph of one device; between devices bit for bit where every operation is exact, else within rtol. With a file name
as argument, writes a transcript there. GK_SLOW=1 adds what takes the interpreter minutes.
"""

import os
import subprocess
import sys
import tempfile

import numpy as np

SOURCE = os.environ.get("GK_SOURCE_DIR", os.getcwd())
GKRUN = os.environ["GKRUN"]
SLOW = os.environ.get("GK_SLOW") == "1"

# name, arguments, whether all operations are exact, devices that take minutes, what to save at the end
DIGITS = os.path.join(SOURCE, "examples", "digits", "digits.npz")
PROGRAMS = [
    ("mlp", [], False, (), ""),
    ("lorenz", [], True, ("interp",), "".join(f'save("{v}.npy", s.{v})\n' for v in "xyz")),
    ("branches", [], False, (), 'save("z.npy", z)\nsave("z2.npy", z2)\n'),
    ("allocating", [], True, ("interp",), 'save("out.npy", out)\n'),
    ("digits/digits", [DIGITS], True, (), 'save("found.npy", found)\n'),
]


def has_cuda():
    text = subprocess.run([GKRUN, "--list-devices"], capture_output=True, text=True).stdout
    return "cuda:" in text


def run(program, arguments, device, eager, ending):
    """Standard output and the arrays saved, from a folder of its own."""
    with tempfile.TemporaryDirectory() as folder:
        command = [GKRUN, "--device", device] + (["--eager"] if eager else []) + ["--test"]
        with open(os.path.join(SOURCE, "examples", program + ".gk")) as f:
            text = f.read() + "\n" + ending
        with open(os.path.join(folder, "program.gk"), "w") as f:
            f.write(text)
        command += ["program.gk"] + arguments
        done = subprocess.run(command, capture_output=True, text=True, cwd=folder)
        if done.returncode != 0:
            raise SystemExit(f"{program} on {device}: status {done.returncode}\n{done.stderr}")
        saved = {f: np.load(os.path.join(folder, f)) for f in sorted(os.listdir(folder)) if f.endswith(".npy")}
        return done.stdout, saved


def same(a, b):
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


def main():
    transcript = []
    devices = ["interp", "host"] + (["cuda"] if has_cuda() else [])
    failures = 0
    for program, arguments, exact, slow, ending in PROGRAMS:
        if arguments and not os.path.exists(arguments[0]):
            print(f"{program}: skipped, {arguments[0]} is missing (examples/digits/train.py makes it)")
            continue
        reference = None
        for device in devices:
            if device in slow and not SLOW:
                continue
            forms = [False] if device == "interp" else [False, True]
            first = None
            for eager in forms:
                out, saved = run(program, arguments, device, eager, ending)
                label = f"{program} on {device}{', step by step' if eager else ', graph' if len(forms) > 1 else ''}"
                transcript.append(f"$ {label}\n{out}")
                for name, array in saved.items():
                    transcript.append(f"  {name}: {array.dtype}{list(array.shape)}, mean {array.mean():.9g}\n")
                if first is not None:
                    if out != first[0] or any(not same(saved[k], first[1][k]) for k in saved):
                        print(f"FAILED {label}: differs from the graph")
                        failures += 1
                first = (out, saved)
                if reference is not None:
                    equal = out == reference[0]
                    for k in saved:
                        if exact:
                            equal = equal and same(saved[k], reference[1][k])
                        else:
                            equal = equal and np.allclose(saved[k], reference[1][k], rtol=1e-5, atol=1e-6)
                    if not equal:
                        print(f"FAILED {label}: differs from {reference[2]}")
                        failures += 1
                else:
                    reference = (out, saved, label)
        print(f"{program}: agrees on {', '.join(d for d in devices if d not in slow or SLOW)}")
    if len(sys.argv) > 1:
        with open(sys.argv[1], "w") as f:
            f.write("".join(transcript))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
