#!/usr/bin/env python3
"""The delay of training by a checkpoint of 400 MB, beside the time of writing it.

usage: bench/checkpoint.py [--bin build/release/bin] [--repeat 4] [--features 393216]

Build first: cmake --build build/release --target muster-trainer bench_blocking_write

One process trains an MLP whose first layer has 400 MB (SGD, so nothing else is saved) with a checkpoint every 8 steps.
The stall is by how much the 4 steps after a checkpoint, in which it is written, take longer than the 4 steps before
the next; the median of all checkpoints counts. The peer writes the same bytes with the same writer (hashes, fsync) and
waits for it.
"""
import argparse
import json
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
STEPS = 64
EVERY = 8


def stalls(arguments, folder):
    """Returns the delay by each checkpoint, in seconds."""
    config = {"model": "mlp", "data": {"format": "synthetic", "kind": "tabular", "features": arguments.features,
                                       "examples": 64},
              "optimizer": {"type": "sgd", "learning_rate": 1e-9}, "batch_size": 16, "steps": STEPS,
              "log_every_steps": 1, "nan_guard": "off", "checkpoint": {"every_steps": EVERY, "keep": 1}}
    (folder / "train.json").write_text(json.dumps(config))
    process = subprocess.Popen([arguments.bin / "muster-trainer"], text=True, stdout=subprocess.PIPE,
                               env=dict(os.environ, MUSTER_TRAIN_CONFIG=str(folder / "train.json"), OMP_NUM_THREADS="1",
                                        MUSTER_MODEL_DIR=str(folder / "model"), MUSTER_EVALUATORS="1"))
    times = {}
    for line in process.stdout:
        if match := re.match(r"step (\d+)/", line):
            times[int(match[1])] = time.perf_counter()
    assert process.wait(60) == 0
    half = EVERY // 2
    return [(times[step + half] - times[step]) - (times[step + EVERY] - times[step + half])
            for step in range(EVERY, STEPS - EVERY, EVERY)]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bin", type=pathlib.Path, default=ROOT / "build/release/bin")
    parser.add_argument("--repeat", type=int, default=4)
    parser.add_argument("--features", type=int, default=393216)
    arguments = parser.parse_args()
    folder = pathlib.Path(tempfile.mkdtemp(prefix="bench-", dir=ROOT / "build"))
    try:
        ours, written = [], []
        for _ in range(arguments.repeat):
            ours += stalls(arguments, folder)
            size = sum(f.stat().st_size for f in (folder / "model").rglob("model-*.safetensors"))
            shutil.rmtree(folder / "model")
            for _ in range(3):
                written.append(float(subprocess.run(
                    [arguments.bin.parent / "bench/bench_blocking_write", folder / "model", str(size >> 20)],
                    capture_output=True, text=True, check=True).stdout))
                shutil.rmtree(folder / "model")
        stall, write = statistics.median(ours), statistics.median(written)
        ratio = stall / write
        print(f"stall of a {size >> 20} MB checkpoint / a blocking write of it: "
              f"{1000 * stall:.0f} ms / {1000 * write:.0f} ms = {ratio:.3f}  target <= 0.05  "
              f"{'ok' if ratio <= 0.05 else 'SHORT'}")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
