#!/usr/bin/env python3
"""Jobs over SSH on hosts of this machine, each figure beside its peer in the same run.

usage: bench/ssh.py [--muster build/release/bin/muster] [--repeat 7] [--only start,send]

Needs root: the hosts are namespaces with a real sshd each (tests/hosts.py), and share this machine's cores with the measured program.
  start  8 hosts of 8 tasks: from before `muster run` until every task is up, beside 8 bare `ssh host true` at once plus the start of as
         many tasks by a local job.
  send   a working directory of 200 MB to one host over a cable of 1 Gbit/s, beside `tar` through ssh; then again with one file of 1 MB
         changed. The same over a cable without a limit, where everything is bound by the cores that both ends share.
Runs are interleaved and medians compared, because machines are noisy.
"""
import argparse
import datetime
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

from reporting import report

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))
sys.dont_write_bytecode = True

from hosts import HostBed, reason_not_available  # noqa: E402

HOSTS = 8
TASKS = 8  # on each
ENDED = {"Succeeded", "Failed", "Stopped", "Lost"}


class Bench:
    def __init__(self, muster, repeat, bed):
        self.muster = str(muster.resolve())
        self.repeat = repeat
        self.bed = bed
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="muster-bench-"))
        self.work = self.dir / "work"
        self.work.mkdir()
        self.env = dict(os.environ, MUSTER_HOME=str(self.dir / "home"), **bed.environment)

    def run(self, *argv):
        done = subprocess.run(argv, cwd=self.work, env=self.env, stdin=subprocess.DEVNULL, capture_output=True, text=True)
        if done.returncode != 0:
            raise RuntimeError(f"{' '.join(argv)}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
        return done.stdout

    def seconds(self, *argv):
        begun = time.perf_counter()
        self.run(*argv)
        return time.perf_counter() - begun

    def until_running(self, name, *options):
        """Returns the seconds from before a job is submitted until all of its tasks are up, and stops it."""
        begun = time.time()
        self.run(self.muster, "run", "-d", *options, f"{name}.yaml")
        while True:
            shown = json.loads(self.run(self.muster, "show", "--json", name))
            up = [event for event in shown["events"] if event["kind"] == "job" and event["message"].startswith("Running")]
            if up or shown["state"] in ENDED:
                break
            time.sleep(0.05)
        self.run(self.muster, "stop", "--yes", "--now", name)
        if not up:
            raise RuntimeError(f"{name} is {shown['state']}: {shown['reason']}")
        # Python parses at most microseconds.
        moment, zone = up[0]["time"].split(".")[0], up[0]["time"][-6:]
        fraction = float("0." + up[0]["time"].split(".")[1][:-6])
        return datetime.datetime.fromisoformat(moment + zone).timestamp() + fraction - begun


def bare_ssh(bench):
    begun = time.perf_counter()
    sessions = [subprocess.Popen([*bench.bed.ssh, host, "true"], stdin=subprocess.DEVNULL) for host in bench.bed.hosts]
    if any([session.wait() for session in sessions]):
        raise RuntimeError("a host does not answer")
    return time.perf_counter() - begun


def start(bench):
    (bench.work / "idle.yaml").write_text(f"name: idle\nroles: {{worker: {{replicas: {HOSTS * TASKS}, command: [sleep, '1000']}}}}\n")
    over_ssh = ("--on", "ssh", "--hosts", ",".join(f"{host}:{TASKS}" for host in bench.bed.hosts))
    first = bench.until_running("idle", *over_ssh)
    rounds = [(bench.until_running("idle", *over_ssh), bare_ssh(bench), bench.until_running("idle")) for _ in range(bench.repeat)]
    ours, bare, local = (statistics.median(column) for column in zip(*rounds))
    ratio = ours / (bare + local)
    report(f"{HOSTS} hosts x {TASKS} tasks until all are up / bare ssh + a local start",
           f"{ours:.2f} s / ({bare:.2f} + {local:.2f}) s = {ratio:.2f}", "<= 1.5", ratio <= 1.5)
    report("  the first time, when the hosts have nothing of Muster", f"{first:.2f} s", "none", True)


def send(bench):
    size, count = 1 << 20, 200
    folder = bench.work / "files"
    folder.mkdir()
    (bench.work / "brief.yaml").write_text("name: brief\nroles: {worker: {command: ['true']}}\n")
    over_ssh = (bench.muster, "run", "--on", "ssh", "--hosts", bench.bed.hosts[0], "brief.yaml")
    bench.run(*over_ssh)
    pack = [f"tar -C {bench.work} -c . | {' '.join(bench.bed.ssh)} {bench.bed.hosts[0]} 'rm -rf ~/peer && mkdir ~/peer && tar -C ~/peer -x'"]

    def one_round():
        for number in range(count):
            (folder / f"{number:03d}").write_bytes(os.urandom(size))
        whole, theirs = bench.seconds(*over_ssh), bench.seconds("/bin/sh", "-c", *pack)
        (folder / "000").write_bytes(os.urandom(size))
        return whole, theirs, bench.seconds(*over_ssh)

    rate = size * count / 1e6
    for speed, target in (("1gbit", 0.8), ("", None)):
        bench.bed.limit(bench.bed.hosts[0], speed)
        rounds = [one_round() for _ in range(max(3, bench.repeat // 2))]
        whole, theirs, change = (statistics.median(column) for column in zip(*rounds))
        report(f"{rate:.0f} MB to send{' at 1 Gbit/s' if speed else ', no limit'}, speed of muster / of tar through ssh",
               f"{rate / whole:.0f} MB/s / {rate / theirs:.0f} MB/s = {theirs / whole:.2f}", f">= {target}" if target else "none",
               not target or theirs / whole >= target)
        report("  again with 1 MB changed, time / of the whole", f"{change:.2f} s / {whole:.2f} s = {change / whole:.2f}", "none", True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--muster", type=pathlib.Path, default=ROOT / "build/release/bin/muster")
    parser.add_argument("--repeat", type=int, default=7)
    parser.add_argument("--only", default="start,send")
    arguments = parser.parse_args()
    reason = reason_not_available()
    if reason:
        sys.exit(reason)
    with HostBed(HOSTS, size="4g") as bed:
        bench = Bench(arguments.muster, arguments.repeat, bed)
        try:
            for name in arguments.only.split(","):
                {"start": start, "send": send}[name](bench)
        finally:
            shutil.rmtree(bench.dir, ignore_errors=True)


if __name__ == "__main__":
    main()
