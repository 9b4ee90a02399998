"""Builtins that are written in gk mean what NumPy's functions of the same name mean.

One program computes every row below on arrays of several shapes and dtypes and saves what it gets; NumPy computes
the same in f64. Exact for integers and for what only moves elements; else within the dtype's rounding.
"""

import os
import subprocess
import sys
import tempfile
import warnings

import numpy as np

GKRUN = os.environ["GKRUN"]
DEVICES = os.environ.get("GK_DEVICES", "host interp").split()
SHAPES = [(1,), (7,), (64,), (1, 1), (3, 5), (5, 3), (2, 3, 4), (1, 4, 1)]
DTYPES = {"f32": np.float32, "f64": np.float64, "i64": np.int64, "i32": np.int32}


def softmax(x, axis=-1):
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


def logsumexp(x, axis=None, keepdims=False):
    return np.log(np.exp(x).sum(axis=axis, keepdims=keepdims))


def erf(x):
    import math
    return np.vectorize(math.erf)(x)


# gk, NumPy on f64, the least rank, whether integers too, whether it is exact
ROWS = [
    ("reciprocal(x + 0.5)", lambda x: 1 / (x + 0.5), 1, False, False),
    ("degrees(x)", np.degrees, 1, False, False),
    ("radians(x)", np.radians, 1, False, False),
    ("hypot(x, x * 2 + 1)", lambda x: np.hypot(x, x * 2 + 1), 1, False, False),
    ("logaddexp(x, x * 0.5)", lambda x: np.logaddexp(x, x * 0.5), 1, False, False),
    ("sigmoid(x)", lambda x: 1 / (1 + np.exp(-x)), 1, False, False),
    ("relu(x)", lambda x: np.maximum(x, 0), 1, True, True),
    ("silu(x)", lambda x: x / (1 + np.exp(-x)), 1, False, False),
    ("gelu(x)", lambda x: x * (1 + erf(x / np.sqrt(2))) / 2, 1, False, False),
    ("softplus(x)", lambda x: np.logaddexp(x, 0), 1, False, False),
    ("isclose(x, x + 1e-9)", lambda x: np.isclose(x, x + 1e-9), 1, False, True),
    ("isclose(x, 1)", lambda x: np.isclose(x, 1), 1, True, True),
    ("allclose(x, x)", lambda x: np.array(np.allclose(x, x)), 1, True, True),
    ("var(x)", np.var, 1, True, False),
    ("var(x, axis=-1, correction=1)", lambda x: np.var(x, axis=-1, ddof=1), 1, False, False),
    ("var(x, 0, keepdims=true)", lambda x: np.var(x, axis=0, keepdims=True), 1, True, False),
    ("std(x)", np.std, 1, True, False),
    ("std(x, axis=(0, 1))", lambda x: np.std(x, axis=(0, 1)), 2, False, False),
    ("logsumexp(x, axis=0)", lambda x: logsumexp(x, 0), 1, False, False),
    ("logsumexp(x, keepdims=true)", lambda x: logsumexp(x, None, True), 1, False, False),
    ("softmax(x)", softmax, 1, False, False),
    ("softmax(x, axis=0)", lambda x: softmax(x, 0), 1, False, False),
    ("vector_norm(x)", lambda x: np.sqrt((x * x).sum()), 1, True, False),
    ("vector_norm(x, -1, ord=1)", lambda x: np.linalg.norm(x, 1, axis=-1), 1, True, False),
    ("vector_norm(x, 0, ord=inf)", lambda x: np.linalg.norm(x, np.inf, axis=0), 1, True, False),
    ("vector_norm(x, 0, ord=-inf)", lambda x: np.linalg.norm(x, -np.inf, axis=0), 1, True, False),
    ("vector_norm(x, 0, ord=0)", lambda x: np.linalg.norm(x, 0, axis=0), 1, True, False),
    ("vector_norm(x, 0, ord=3)", lambda x: np.linalg.norm(x, 3, axis=0), 1, True, False),
    ("ptp(x)", np.ptp, 1, True, True),
    ("ptp(x, axis=0)", lambda x: np.ptp(x, axis=0), 1, True, True),
    ("nansum(h, axis=0)", lambda x: np.nansum(holes(x), axis=0), 1, False, False),
    ("nanmean(h)", lambda x: np.nanmean(holes(x)), 1, False, False),
    ("nanmean(h, axis=-1)", lambda x: np.nanmean(holes(x), axis=-1), 1, False, False),
    ("nanmax(h, axis=0)", lambda x: np.nanmax(holes(x), axis=0), 1, False, True),
    ("nanmin(h)", lambda x: np.nanmin(holes(x)), 1, False, True),
    ("permute_dims(x, (1, 0))", lambda x: np.transpose(x, (1, 0)), 22, True, True),
    ("swapaxes(x, 0, -1)", lambda x: np.swapaxes(x, 0, -1), 1, True, True),
    ("moveaxis(x, 0, -1)", lambda x: np.moveaxis(x, 0, -1), 1, True, True),
    ("moveaxis(x, -1, 0)", lambda x: np.moveaxis(x, -1, 0), 1, True, True),
    ("expand_dims(x, 1)", lambda x: np.expand_dims(x, 1), 1, True, True),
    ("expand_dims(x, -1)", lambda x: np.expand_dims(x, -1), 1, True, True),
    ("squeeze(x)", np.squeeze, 1, True, True),
    ("cumprod(x, axis=-1)", lambda x: np.cumprod(x, axis=-1), 1, False, False),
    ("cumprod(x, axis=0)", lambda x: np.cumprod(x, axis=0), 1, False, False),
    ("cumsum(x, axis=0)", lambda x: np.cumsum(x, axis=0), 1, True, False),
    ("flip(x)", np.flip, 1, True, True),
    ("flip(x, axis=-1)", lambda x: np.flip(x, axis=-1), 1, True, True),
    ("flip(x, axis=(0, 1))", lambda x: np.flip(x, axis=(0, 1)), 2, True, True),
    ("roll(x, 2, axis=-1)", lambda x: np.roll(x, 2, axis=-1), 1, True, True),
    ("roll(x, -11, axis=0)", lambda x: np.roll(x, -11, axis=0), 1, True, True),
    ("diff(x)", np.diff, 1, True, False),
    ("diff(x, 2, axis=0)", lambda x: np.diff(x, 2, axis=0), 1, True, False),
    ("repeat(x, 3, axis=0)", lambda x: np.repeat(x, 3, axis=0), 1, True, True),
    ("repeat(x, 2, axis=-1)", lambda x: np.repeat(x, 2, axis=-1), 1, True, True),
    ("outer(x, x)", lambda x: np.outer(x, x), 1, True, False),
    ("vecdot(x, x)", lambda x: (x * x).sum(-1), 1, True, False),
    ("kron(x, x)", lambda x: np.kron(x, x), 22, True, False),
    ("tril(x)", np.tril, 2, True, True),
    ("tril(x, 1)", lambda x: np.tril(x, 1), 2, True, True),
    ("triu(x, -1)", lambda x: np.triu(x, -1), 2, True, True),
    ("diagonal(x)", np.diagonal, 22, True, True),
    ("diagonal(x, 1)", lambda x: np.diagonal(x, 1), 22, True, True),
    ("diagonal(x, -2)", lambda x: np.diagonal(x, -2), 22, True, True),
    ("trace(x)", np.trace, 22, True, False),
    ("cross(c, reshape(c[::-1], shape(c)))", lambda x: np.cross(threes(x), threes(x)[::-1]), 1, True, False),
    ("meshgrid(v, v * 2)[0]", lambda x: np.meshgrid(x.ravel(), x.ravel() * 2)[0], 1, True, True),
    ("meshgrid(v, v * 2)[1]", lambda x: np.meshgrid(x.ravel(), x.ravel() * 2)[1], 1, True, True),
]


def holes(x):
    flat = x.astype(np.float64).ravel().copy()
    flat[1::3] = np.nan
    return flat.reshape(x.shape)


def threes(x):
    return np.resize(x, (4, 3))


def fits(row, shape):
    return len(shape) == row[2] - 20 if row[2] > 20 else len(shape) >= row[2]


def cases():
    rng = np.random.default_rng(7)
    for k, shape in enumerate(SHAPES):
        for name, dtype in DTYPES.items():
            whole = np.issubdtype(dtype, np.integer)
            x = rng.integers(-9, 10, shape).astype(dtype) if whole else rng.normal(0, 2, shape).astype(dtype)
            yield f"x{k}{name}", name, x


def program(folder):
    lines, expected = [], []
    for key, name, x in cases():
        np.savez(os.path.join(folder, key + ".npz"), x=x, h=holes(x).astype(np.float32 if name == "f32" else np.float64),
                 c=threes(x), v=x.ravel())
        names = {"x", "h", "c", "v"}
        lines += [f'let {key} = load("{key}.npz")']
        for i, row in enumerate(ROWS):
            text, numpy_says, _, integers, exact = row
            if not fits(row, x.shape) or (not integers and name[0] == "i"):
                continue
            words = []
            word = ""
            for c in text + " ":
                if c.isalnum() or c == "_":
                    word += c
                    continue
                words.append(f"{key}.{word}" if word in names else word)
                words.append(c)
                word = ""
            result = f"r{len(expected)}"
            lines.append(f'save("{result}.npy", {"".join(words).strip()})')
            expected.append((result, text, name, x, numpy_says, exact))
    with open(os.path.join(folder, "p.gk"), "w") as f:
        f.write("\n".join(lines) + "\n")
    return expected


def main():
    wrong = 0
    for device in DEVICES:
        with tempfile.TemporaryDirectory() as folder:
            expected = program(folder)
            run = subprocess.run([GKRUN, "--device", device, "p.gk"], cwd=folder, capture_output=True, text=True)
            if run.returncode != 0:
                print(device, run.stderr[:2000])
                return 1
            for result, text, dtype, x, numpy_says, exact in expected:
                got = np.load(os.path.join(folder, result + ".npy"))
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    want = np.asarray(numpy_says(x if exact and "nan" not in text else x.astype(np.float64)))
                bound = 0 if exact else 1e-12 if dtype == "f64" else 3e-5
                same = got.shape == want.shape and np.allclose(got, want, rtol=bound, atol=bound, equal_nan=True)
                if not same:
                    wrong += 1
                    if wrong <= 20:
                        print(f"{device}: {text} of {dtype}{list(x.shape)}: {got.tolist()} and not {want.tolist()}")
            print(f"{device}: {len(expected)} results")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
