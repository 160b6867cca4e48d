"""Writes a model as TorchScript: its program and its first values, in one file that is trained without Python.

usage: make_model.py PATH
"""
import pathlib
import sys

import torch
from torch import nn


class Net(nn.Module):
    """Images [batch, 1, 28, 28] to a logit for each of ten digits."""

    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(16, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2),
        )
        self.dropout = nn.Dropout(0.25)
        self.classifier = nn.Linear(32 * 7 * 7, 10)

    def forward(self, images):
        return self.classifier(self.dropout(self.features(images).flatten(1)))


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    path = pathlib.Path(sys.argv[1])
    path.parent.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(0)
    torch.jit.script(Net()).save(str(path))
    print(f"wrote {path}")


main()
