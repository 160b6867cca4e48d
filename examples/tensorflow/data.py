"""A small classification problem, the same on every task: points around a centre for each class."""
import numpy as np

FEATURES, CLASSES = 20, 4


def points(split, count):
    """Returns `count` points, float32 [count, FEATURES], and their classes, int64 [count]."""
    centres = np.random.default_rng(1).normal(size=(CLASSES, FEATURES))
    random = np.random.default_rng({"train": 2, "test": 3}[split])
    classes = random.integers(CLASSES, size=count)
    return (centres[classes] + random.normal(size=(count, FEATURES))).astype(np.float32), classes
