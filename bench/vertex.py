#!/usr/bin/env python3
"""The working directory of a job on Vertex AI, packed and sent, beside `tar | gzip | curl` to the same server.

usage: bench/vertex.py [--muster build/release/bin/muster] [--rounds 3]

Needs node (scripts/test installs what tests/gs_server.mjs needs). The server is on this machine and shares its cores with the measured program.
Half of the 200 MB can be compressed. Then the same job again, and again with one file of 1 MB changed.
"""
import argparse
import os
import pathlib
import statistics
import subprocess
import sys
import time
import unittest

from reporting import report

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))
sys.dont_write_bytecode = True

SIZE, COUNT = 1 << 20, 200


def bench(test, rounds):
    test.serve()
    test.file()

    def fill():
        for number in range(COUNT):
            bytes_ = os.urandom(SIZE) if number % 2 else os.urandom(SIZE // 16).hex().encode() * 8
            (test.work / f"{number:03d}").write_bytes(bytes_)

    def ours(job):
        begun = time.perf_counter()
        test.submit("--job-id", job)
        took = time.perf_counter() - begun
        test.become(job, "SUCCEEDED")
        test.muster("show", job)
        return took

    def theirs(name):
        token = test.google.ask("token")["access_token"]
        url = f"{test.google.address}/upload/storage/v1/b/bucket/o?uploadType=media&name={name}"
        command = f"tar -c . | gzip -1 | curl -sf --noproxy '*' -H 'Authorization: Bearer {token}' -X POST -T - '{url}' >/dev/null"
        begun = time.perf_counter()
        subprocess.run(["/bin/bash", "-o", "pipefail", "-c", command], cwd=test.work, check=True)
        return time.perf_counter() - begun

    times = []
    for number in range(rounds):
        fill()
        whole, bare, same = ours(f"whole-{number}"), theirs(f"peer-{number}"), ours(f"same-{number}")
        (test.work / "000").write_bytes(os.urandom(SIZE))
        times.append((whole, bare, same, ours(f"changed-{number}")))
    whole, bare, same, changed = (statistics.median(column) for column in zip(*times))
    rate = SIZE * COUNT / 1e6
    report(f"a job with {rate:.0f} MB, speed of muster / of tar | gzip -1 | curl", f"{rate / whole:.0f} MB/s / {rate / bare:.0f} MB/s = {bare / whole:.2f}",
           ">= 0.9", bare / whole >= 0.9)
    report("  again with nothing changed", f"{same:.2f} s", "none", True)
    report("  again with 1 MB changed, time / of the whole", f"{changed:.2f} s / {whole:.2f} s = {changed / whole:.2f}", "none", True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--muster", type=pathlib.Path, default=ROOT / "build/release/bin/muster")
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    os.environ["MUSTER"] = str(arguments.muster.resolve())
    from vertex_support import GoogleTest

    class Bench(GoogleTest):
        def runTest(self):
            bench(self, arguments.rounds)

    result = unittest.TextTestRunner(stream=sys.stderr, verbosity=0).run(Bench())
    sys.exit(0 if result.wasSuccessful() else 1)


if __name__ == "__main__":
    main()
