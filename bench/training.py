#!/usr/bin/env python3
"""Speed of training, each figure beside its peer in the same run.

usage: bench/training.py [--bin build/release/bin] [--data data/mnist] [--repeat 5] [--steps 120]

Build first: cmake --build build/release --target muster muster-trainer bench_loop

The model is the MNIST CNN (conv 32, conv 64, fc 1024, fc 10) with Adam, 64 images a task and step, one thread a
task. Runs are interleaved and medians compared. Images a second are counted from step 20 on; the start is the time from
starting the processes to the end of the first step.
"""
import argparse
import json
import os
import pathlib
import re
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time

from reporting import report

ROOT = pathlib.Path(__file__).resolve().parent.parent
WARM_UP = 20


def follow(process, pattern, steps):
    """Returns the times at which step 1, WARM_UP and the last were complete."""
    times = {}
    for line in process.stdout:
        match = re.search(pattern, line)
        if match and int(match[1]) in (1, WARM_UP, steps):
            times[int(match[1])] = time.perf_counter()
    return times


class Bench:
    def __init__(self, arguments):
        self.arguments = arguments
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="muster-bench-"))

    def result(self, start, times, tasks):
        steps = self.arguments.steps
        rate = 64 * tasks * (steps - WARM_UP) / (times[steps] - times[WARM_UP])
        return rate, times[1] - start

    def records(self):
        """Converts MNIST to TFRecord files and returns the data section that reads them."""
        folder = self.dir / "records"
        if not folder.exists():
            subprocess.run([self.arguments.bin / "muster", "data", "convert", self.arguments.data, "--to", folder], check=True,
                           stdout=subprocess.DEVNULL)
        return {"format": "tfrecord", "path": str(folder),
                "features": {"image": {"type": "uint8", "shape": [28, 28]}, "label": "int64"}}

    def ours(self, strategy, workers, servers, data=None):
        steps = self.arguments.steps
        sockets = self.dir / "sockets"
        shutil.rmtree(sockets, ignore_errors=True)
        sockets.mkdir(mode=0o700)
        train = {"model": "cnn", "data": data or {"format": "mnist", "path": str(self.arguments.data)},
                 "optimizer": {"type": "adam", "learning_rate": 0.001}, "batch_size": 64, "steps": steps,
                 "strategy": strategy, "log_every_steps": 1, "seed": 0}
        (self.dir / "train.json").write_text(json.dumps(train))
        cluster = {"chief": ["127.0.0.1:7000"]}
        if workers > 1:
            cluster["worker"] = [f"127.0.0.1:{7001 + i}" for i in range(workers - 1)]
        if servers:
            cluster["ps"] = [f"127.0.0.1:{7100 + i}" for i in range(servers)]
        environment = dict(os.environ, MUSTER_TRAIN_CONFIG=str(self.dir / "train.json"), OMP_NUM_THREADS="1",
                           MUSTER_SOCKET_DIR=str(sockets), MUSTER_EVALUATORS="1")
        start = time.perf_counter()
        others = []
        for role, hosts in cluster.items():
            for index in range(len(hosts)):
                task = {"cluster": cluster, "task": {"type": role, "index": index}, "environment": "cloud"}
                process = subprocess.Popen([self.arguments.bin / "muster-trainer"], text=True,
                                           stdout=subprocess.PIPE if role == "chief" else subprocess.DEVNULL,
                                           env=dict(environment, TF_CONFIG=json.dumps(task)))
                if role == "chief":
                    chief = process
                else:
                    others.append(process)
        times = follow(chief, r"^step (\d+)/", steps)
        for process in [chief, *others]:
            assert process.wait(60) == 0, process.args
        return self.result(start, times, workers)

    def peer(self, command, tasks):
        start = time.perf_counter()
        process = subprocess.Popen(command, text=True, stdout=subprocess.PIPE, env=dict(os.environ, OMP_NUM_THREADS="1"))
        times = follow(process, r"^step (\d+)$", self.arguments.steps)
        assert process.wait(60) == 0, command
        return self.result(start, times, tasks)

    def ddp(self, processes):
        return self.peer(["/usr/bin/python3", str(ROOT / "bench/peers/ddp_mnist.py"), str(self.arguments.data),
                          str(self.arguments.steps), str(processes)], processes)

    def loop(self):
        return self.peer([str(self.arguments.bin.parent / "bench/bench_loop"), str(self.arguments.data),
                          str(self.arguments.steps)], 1)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bin", type=pathlib.Path, default=ROOT / "build/release/bin")
    parser.add_argument("--data", type=pathlib.Path, default=ROOT / "data/mnist")
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--steps", type=int, default=120)
    bench = Bench(parser.parse_args())
    runs = {"ddp": lambda: bench.ddp(2), "allreduce": lambda: bench.ours("allreduce", 2, 0),
            "sync": lambda: bench.ours("sync", 2, 1), "one": lambda: bench.ours("sync", 1, 1), "loop": bench.loop,
            "memory": lambda: bench.ours("allreduce", 1, 0), "records": lambda: bench.ours("allreduce", 1, 0, bench.records())}
    results = {name: [] for name in runs}
    try:
        for _ in range(bench.arguments.repeat):
            for name, run in runs.items():
                results[name].append(run())
    finally:
        shutil.rmtree(bench.dir, ignore_errors=True)
    rate = {name: statistics.median(r for r, _ in values) for name, values in results.items()}
    start = {name: statistics.median(s for _, s in values) for name, values in results.items()}

    def compare(what, ours, peer, least):
        ratio = rate[ours] / rate[peer]
        report(what, f"{rate[ours]:.0f} / {rate[peer]:.0f} images/s = {ratio:.2f}", f">= {least}", ratio >= least)

    compare("2 tasks, allreduce / PyTorch DDP over Gloo", "allreduce", "ddp", 1)
    compare("2 tasks, sync with one ps / PyTorch DDP over Gloo", "sync", "ddp", 1)
    for ours in ("allreduce", "sync"):
        ratio = start[ours] / start["ddp"]
        report(f"start to first step, {ours} / DDP", f"{start[ours]:.2f} s / {start['ddp']:.2f} s = {ratio:.2f}",
               "<= 0.5", ratio <= 0.5)
    compare("1 worker + 1 ps / plain libtorch loop", "one", "loop", 0.9)
    compare("1 task, data from TFRecord files / from memory", "records", "memory", 0.98)


if __name__ == "__main__":
    main()
