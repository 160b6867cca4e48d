#!/usr/bin/env python3
"""How long a checkpoint of 400 MB holds training up, beside the time in which it is written.

usage: bench/checkpoint.py [--bin build/release/bin] [--repeat 5] [--features 393216]

Build first: cmake --build build/release --target muster-trainer bench_blocking_write

One process trains an MLP whose first layer has 400 MB (SGD, so nothing else is saved), with a checkpoint in the middle
and without one. The stall is the difference of the times from step 3 to the last. The peer writes the same bytes
with the same writer (hashes, fsync) and waits for it. Runs are interleaved and medians compared.
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
STEPS = 30
WARM_UP = 3


def train(arguments, folder, every):
    config = {"model": "mlp", "data": {"format": "synthetic", "kind": "tabular", "features": arguments.features,
                                       "examples": 16},
              "optimizer": {"type": "sgd", "learning_rate": 1e-9}, "batch_size": 8, "steps": STEPS,
              "log_every_steps": 1, "nan_guard": "off", "checkpoint": {"every_steps": every}}
    (folder / "train.json").write_text(json.dumps(config))
    shutil.rmtree(folder / "model", ignore_errors=True)
    process = subprocess.Popen([arguments.bin / "muster-trainer"], text=True, stdout=subprocess.PIPE,
                               env=dict(os.environ, MUSTER_TRAIN_CONFIG=str(folder / "train.json"), OMP_NUM_THREADS="1",
                                        MUSTER_MODEL_DIR=str(folder / "model"), MUSTER_EVALUATORS="1"))
    times = {}
    for line in process.stdout:
        if match := re.match(r"step (\d+)/", line):
            times[int(match[1])] = time.perf_counter()
    assert process.wait(60) == 0
    return times[STEPS - 1] - times[WARM_UP]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bin", type=pathlib.Path, default=ROOT / "build/release/bin")
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--features", type=int, default=393216)
    arguments = parser.parse_args()
    folder = pathlib.Path(tempfile.mkdtemp(prefix="muster-bench-", dir="."))
    try:
        rows = []
        for _ in range(arguments.repeat):
            with_one = train(arguments, folder, 8)
            without = train(arguments, folder, 10 ** 6)
            size = sum(f.stat().st_size for f in (folder / "model").rglob("model-*.safetensors"))
            shutil.rmtree(folder / "model")
            written = float(subprocess.run([arguments.bin.parent / "bench/bench_blocking_write", folder / "model",
                                            str(size >> 20)], capture_output=True, text=True, check=True).stdout)
            rows.append((with_one, without, written))
        with_some, without, written = (statistics.median(column) for column in zip(*rows))
        count = (STEPS - 2) // 8
        stall = (with_some - without) / count
        ratio = stall / written
        print(f"stall of a {size >> 20} MB checkpoint / a blocking write of it: "
              f"{1000 * stall:.0f} ms / {1000 * written:.0f} ms = {ratio:.3f}  target <= 0.05  "
              f"{'ok' if ratio <= 0.05 else 'SHORT'}")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
