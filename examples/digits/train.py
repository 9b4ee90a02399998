#!/usr/bin/env python3
"""Trains a small classifier on scikit-learn's handwritten digits and writes it for digits.gk.

    python3 train.py            # needs scikit-learn (Debian: python3-sklearn); writes digits.npz here

digits.npz holds: images f32[1797, 64] in 0..1, labels i64[1797], w0 f32[64, 64], b0 f32[64], w1 f32[64, 10],
b1 f32[10] (weights as [in, out]) and predictions i64[1797], what scikit-learn itself answers.
"""
import pathlib
import warnings

import numpy as np
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.neural_network import MLPClassifier

digits = load_digits()
images = (digits.data / 16).astype(np.float32)
labels = digits.target.astype(np.int64)
# Two thirds train; the rest shows that it learned rather than remembered.
train = np.arange(len(images)) % 3 != 0

model = MLPClassifier(hidden_layer_sizes=(64,), activation="relu", max_iter=60, random_state=1)
with warnings.catch_warnings():
    warnings.simplefilter("ignore", ConvergenceWarning)  # 60 rounds are enough here
    model.fit(images[train], labels[train])
print(f"accuracy: {model.score(images[train], labels[train]):.4f} trained on, "
      f"{model.score(images[~train], labels[~train]):.4f} held out")

target = pathlib.Path(__file__).with_name("digits.npz")
np.savez(
    target,
    images=images,
    labels=labels,
    w0=model.coefs_[0].astype(np.float32),
    b0=model.intercepts_[0].astype(np.float32),
    w1=model.coefs_[1].astype(np.float32),
    b1=model.intercepts_[1].astype(np.float32),
    predictions=model.predict(images).astype(np.int64),
)
print(f"wrote {target}")
