"""Replaces keras.datasets.mnist in the image: pods reach no server that has MNIST."""
import pathlib
import tempfile

import numpy as np

from digits import write_digits


def load_data(path="mnist.npz"):
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch, "mnist")
        write_digits(folder)

        def read(name, header):
            return np.frombuffer((folder / name).read_bytes(), np.uint8, offset=header)

        return tuple((read(f"{split}-images-idx3-ubyte", 16).reshape(-1, 28, 28), read(f"{split}-labels-idx1-ubyte", 8))
                     for split in ("train", "t10k"))
