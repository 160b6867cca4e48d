#!/usr/bin/env python3
"""Speed of local jobs, each figure beside its peer in the same run.

usage: bench/local.py [--muster build/release/bin/muster] [--repeat 11]

Runs are interleaved and medians compared, because machines are noisy. CPU time is user plus system time of
the process and its children.
"""
import argparse
import json
import os
import pathlib
import resource
import select
import shutil
import sqlite3
import statistics
import subprocess
import tempfile
import time

from reporting import report

ROOT = pathlib.Path(__file__).resolve().parent.parent


class Bench:
    def __init__(self, muster, repeat):
        self.muster = str(muster.resolve())
        self.repeat = repeat
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="muster-bench-"))
        self.env = dict(os.environ, MUSTER_HOME=str(self.dir / "home"))

    def run(self, *argv, **kwargs):
        kwargs.setdefault("stdout", subprocess.DEVNULL)
        kwargs.setdefault("stderr", subprocess.DEVNULL)
        subprocess.run(argv, check=True, cwd=self.dir, env=self.env, stdin=subprocess.DEVNULL, **kwargs)

    def write(self, name, text):
        path = self.dir / name
        path.write_text(text)
        return str(path)

    def seconds(self, *argv):
        start = time.perf_counter()
        self.run(*argv)
        return time.perf_counter() - start

    def cpu_ms(self, *argv):
        def used():
            usage = resource.getrusage(resource.RUSAGE_CHILDREN)
            return usage.ru_utime + usage.ru_stime
        before = used()
        self.run(*argv)
        return 1000 * (used() - before)

    def wait(self, job):
        """Waits until the job's supervisor has ended."""
        pid = self.show(job)["supervisor_pid"]
        try:
            watched = os.pidfd_open(pid)
        except ProcessLookupError:
            return
        select.select([watched], [], [])
        os.close(watched)

    def show(self, job):
        return json.loads(subprocess.run([self.muster, "show", "--json", job], env=self.env,
                                         capture_output=True, text=True, check=True).stdout)

    def interleaved(self, ours, theirs, repeat):
        pairs = [(self.seconds(*ours), self.seconds(*theirs)) for _ in range(repeat)]
        return tuple(statistics.median(column) for column in zip(*pairs))


def start_up(bench):
    cpu = statistics.median(bench.cpu_ms(bench.muster, "--help") for _ in range(bench.repeat))
    report("muster --help", f"{cpu:.1f} ms CPU", "< 20 ms", cpu < 20)


def fill_history(bench, count):
    """Copies a real job's rows until there are `count` jobs."""
    bench.run(bench.muster, "run", bench.write("one.yaml", "name: one\nroles: {worker: {command: 'true'}}\n"))
    with sqlite3.connect(bench.dir / "home" / "history.db") as db:
        for table, key in (("jobs", "id"), ("tasks", "job"), ("events", "job")):
            columns = [row[1] for row in db.execute(f"PRAGMA table_info({table})")]
            key = next(name for name in columns if name in (key, "job_id", "id"))
            rows = db.execute(f"SELECT {','.join(columns)} FROM {table}").fetchall()
            at = columns.index(key)
            db.executemany(f"INSERT INTO {table} VALUES ({','.join('?' * len(columns))})",
                           (row[:at] + (f"one-{n:05d}",) + row[at + 1:]
                            for n in range(count - 1) for row in rows))


def listing(bench):
    fill_history(bench, 10_000)
    shown = subprocess.run([bench.muster, "jobs"], env=bench.env, capture_output=True, text=True).stdout
    assert len(shown.splitlines()) == 10_001, len(shown.splitlines())
    cpu = statistics.median(bench.cpu_ms(bench.muster, "jobs") for _ in range(bench.repeat))
    report("muster jobs, 10,000 jobs in history", f"{cpu:.1f} ms CPU", "< 100 ms", cpu < 100)


def fast_tasks(bench):
    job = bench.write("fast.yaml", "name: fast\nroles: {worker: {replicas: 64, command: [/bin/true]}}\n")
    loop = "i=0; while [ $i -lt 64 ]; do /bin/true & i=$((i+1)); done; wait"
    ours, theirs = bench.interleaved((bench.muster, "run", job), ("/bin/sh", "-c", loop), bench.repeat)
    ratio = ours / theirs
    report("64 tasks that exit at once / a shell loop of the same",
           f"{1000 * ours:.0f} ms / {1000 * theirs:.0f} ms = {ratio:.2f}", "<= 3", ratio <= 3)


def output(bench):
    """8 tasks write 100 MB each through the supervisor's logs, and directly into files."""
    size, tasks = 100 << 20, 8
    line = "0123456789abcdef" * 4 + "\\n"
    writer = (f"import os\nblock = b'{line}' * 1000\n"
              f"left = {size}\nwhile left:\n  left -= os.write(1, block[:left])\n")
    script = bench.write("writer.py", writer)
    job = bench.write("loud.yaml", "name: loud\npolicies: {logs: {rotate_at: 1G}}\n"
                      f"roles: {{worker: {{replicas: {tasks}, command: [/usr/bin/python3, -S, {script}]}}}}\n")
    direct = (f"for i in $(seq {tasks}); do /usr/bin/python3 -S {script} > {bench.dir}/direct-$i & done; wait; "
              f"rm {bench.dir}/direct-*")
    jobs = bench.dir / "home" / "jobs"

    def finish():
        (folder,) = jobs.glob("loud-*")
        written = sum(path.stat().st_size for path in folder.glob("logs/*.log*"))
        assert written == size * tasks, f"{written} of {size * tasks} bytes"
        shutil.rmtree(folder)

    def detached():
        start = time.perf_counter()
        bench.run(bench.muster, "run", "-d", job)
        bench.wait("loud")
        spent = time.perf_counter() - start
        finish()
        return spent

    def attached():
        spent = bench.seconds(bench.muster, "run", job)
        finish()
        return spent

    rounds = [(detached(), bench.seconds("/bin/sh", "-c", direct), attached())
              for _ in range(max(3, bench.repeat // 3))]
    mine, theirs, shown = (statistics.median(column) for column in zip(*rounds))
    rate = size * tasks / (1 << 20)
    ratio = theirs / mine
    report("8 tasks x 100 MB, speed of muster / of plain files",
           f"{rate / mine:.0f} MB/s / {rate / theirs:.0f} MB/s = {ratio:.2f}", ">= 0.5", ratio >= 0.5)
    report("  the same with every line shown, prefixed and merged", f"{rate / shown:.0f} MB/s", "none", True)


def idle(bench):
    job = bench.write("idle.yaml", "name: idle\nroles: {worker: {replicas: 256, command: [/bin/sleep, '1000']}}\n")
    bench.run(bench.muster, "run", "-d", job)
    while bench.show("idle")["state"] != "Running":
        time.sleep(0.1)
    pid = bench.show("idle")["supervisor_pid"]

    def ticks():
        fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
        return int(fields[11]) + int(fields[12])

    before = ticks()
    time.sleep(10)
    used = (ticks() - before) / os.sysconf("SC_CLK_TCK")
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    peak = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM")) / 1024
    bench.run(bench.muster, "stop", "--yes", "--now", "idle")
    report("supervisor of 256 tasks, peak memory", f"{peak:.1f} MB", "< 30 MB", peak < 30)
    report("supervisor of 256 idle tasks, CPU in 10 s", f"{1000 * used:.0f} ms", "<= 10 ms", used <= 0.01)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--muster", type=pathlib.Path, default=ROOT / "build/release/bin/muster")
    parser.add_argument("--repeat", type=int, default=11)
    arguments = parser.parse_args()
    bench = Bench(arguments.muster, arguments.repeat)
    try:
        start_up(bench)
        listing(bench)
        fast_tasks(bench)
        output(bench)
        idle(bench)
    finally:
        shutil.rmtree(bench.dir, ignore_errors=True)


if __name__ == "__main__":
    main()
