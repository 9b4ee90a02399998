"""A product of matrices in a process whose address space is limited: it is computed, or it is an error; it never waits
for memory that will not come. Finds gkrun in $GKRUN.
"""
import os
import resource
import subprocess
import sys
import tempfile

GKRUN = os.environ["GKRUN"]
PROGRAM = "let x = ones(f32[200, 200])\nprint((x @ x)[0, 0], (f64(x) @ f64(x))[9, 9])\n"


def run(path, mebibytes):
    def limit():
        if mebibytes:
            resource.setrlimit(resource.RLIMIT_AS, (mebibytes << 20, mebibytes << 20))

    command = [GKRUN, "--device", "host", "--no-cache", path]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, preexec_fn=limit)
    return done.returncode, done.stdout, done.stderr


def main():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "product.gk")
        with open(path, "w") as f:
            f.write(PROGRAM)
        status, printed, told = run(path, None)
        assert status == 0 and printed == "200.0 200.0\n", (status, printed, told)
        refused = 0
        for mebibytes in (3000, 1500, 1000, 800, 700, 600, 500, 450, 400, 350, 300):
            status, printed, told = run(path, mebibytes)
            if status == 0:
                assert printed == "200.0 200.0\n", (mebibytes, printed)
            elif "E0601" in told:
                refused += 1
            # Below, the program itself does not fit: whatever ends it, it has ended.
            print(mebibytes, "MiB:", "computed" if status == 0 else (told.strip().split("\n") or [""])[0])
        print("refused:", refused)


if __name__ == "__main__":
    sys.exit(main())
