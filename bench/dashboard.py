#!/usr/bin/env python3
"""The server of the dashboard: lists, curves, logs, viewers, memory; curves beside TensorBoard.

usage: bench/dashboard.py [--bin build/release/bin] [--repeat 5] [--python PYTHON-WITH-TENSORFLOW]

Build first: cmake --build build/release --target muster

TensorFlow writes the event files, so that both servers read the same bytes; `tests/venv/install` provides one. Without
it, programs report their metrics through MUSTER_METRICS_FILE, and TensorBoard is left out.
"""
import argparse
import gzip
import http.client
import json
import os
import pathlib
import shutil
import socket
import statistics
import subprocess
import tempfile
import threading
import time
import urllib.parse

from local import fill_history
from reporting import report

ROOT = pathlib.Path(__file__).resolve().parent.parent
WRITER = """
import sys, math, time
import tensorflow as tf
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import Summary
folder, points = sys.argv[1], int(sys.argv[2])
with tf.io.TFRecordWriter(f"{folder}/events.out.tfevents.{int(time.time())}.bench") as out:
    out.write(Event(wall_time=time.time(), file_version="brain.Event:2").SerializeToString())
    for step in range(points):
        value = Summary.Value(tag="loss", simple_value=math.exp(-step / points) + 0.1 * math.sin(step * 12.9898))
        out.write(Event(wall_time=time.time(), step=step, summary=Summary(value=[value])).SerializeToString())
"""


class Bench:
    """A home with jobs, as bench/local.py has it."""

    def __init__(self, arguments):
        self.muster = str((arguments.bin / "muster").resolve())
        self.python = arguments.python
        self.repeat = arguments.repeat
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="muster-bench-"))
        self.env = dict(os.environ, MUSTER_HOME=str(self.dir / "home"), TF_CPP_MIN_LOG_LEVEL="3")

    def run(self, *argv):
        subprocess.run(argv, check=True, cwd=self.dir, env=self.env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL)

    def write(self, name, text):
        (self.dir / name).write_text(text)
        return self.dir / name

    def job(self, name, command):
        """Runs a job with its own model dir to its end, and returns its id."""
        self.write("job.yaml", f"name: {name}\nmodel_dir: {self.dir}/models/{name}\nroles: {{chief: {{command: {json.dumps(command)}}}}}\n")
        self.run(self.muster, "run", "job.yaml")
        jobs = json.loads(subprocess.check_output([self.muster, "jobs", "--json", "--limit", "1"], env=self.env))
        return jobs[0]["id"]

    def curve(self, name, points):
        """Runs a job that reports one curve."""
        folder = self.dir / "models" / name
        if self.python:
            return self.job(name, f"mkdir -p {folder}; {self.python} {self.write('writer.py', WRITER)} {folder} {points}")
        script = self.write("lines.py", "import sys, math\nfor i in range(int(sys.argv[1])): print('{\"step\": %d, \"loss\": %g}' % "
                            "(i, math.exp(-i / 1e4) + 0.1 * math.sin(i * 12.9898)))\n")
        return self.job(name, f"python3 {script} {points} > $MUSTER_METRICS_FILE")

    def copies(self, job, count):
        """Adds jobs with the same record and folders of their own; returns their ids."""
        import sqlite3
        ids = []
        with sqlite3.connect(self.dir / "home" / "history.db") as db:
            columns = [row[1] for row in db.execute("PRAGMA table_info(jobs)")]
            row = dict(zip(columns, db.execute(f"SELECT {','.join(columns)} FROM jobs WHERE id = ?", (job,)).fetchone()))
            for i in range(count):
                new = dict(row, id=f"run-{i:03d}", model_dir=f"{self.dir}/models/run-{i:03d}")
                shutil.copytree(row["model_dir"], new["model_dir"]) if os.path.isdir(row["model_dir"]) else None
                if not self.python:
                    new["directory"] = f"{self.dir}/home/jobs/run-{i:03d}"
                    shutil.copytree(row["directory"], new["directory"])
                db.execute(f"INSERT INTO jobs VALUES ({','.join('?' * len(columns))})", [new[name] for name in columns])
                tasks = db.execute("SELECT * FROM tasks WHERE job_id = ?", (job,)).fetchall()
                for task in tasks:
                    db.execute(f"INSERT INTO tasks VALUES ({','.join('?' * len(task))})", (new["id"], *task[1:]))
                ids.append(new["id"])
        return ids


class Server:
    def __init__(self, bench):
        self.process = subprocess.Popen([bench.muster, "dashboard"], env=bench.env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                        text=True)
        link = urllib.parse.urlsplit(self.process.stdout.readline().strip())
        self.port, self.cookie = link.port, ""
        self.cookie = self.request(f"{link.path}?{link.query}")[0]["Set-Cookie"].split(";")[0]

    def connect(self):
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)

    def request(self, path):
        connection = self.connect()
        connection.request("GET", path, headers={"Cookie": self.cookie, "Accept-Encoding": "gzip"})
        answer = connection.getresponse()
        body = answer.read()
        connection.close()
        if answer.headers.get("Content-Encoding") == "gzip":
            body = gzip.decompress(body)
        assert answer.status == 200, (path, answer.status, body[:300])
        return answer.headers, body

    def seconds(self, path):
        begin = time.perf_counter()
        body = self.request(path)[1]
        return time.perf_counter() - begin, json.loads(body)

    def usage(self):
        """Returns the CPU seconds and the resident bytes of the server."""
        fields = pathlib.Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        cpu = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
        return cpu, int(fields[21]) * os.sysconf("SC_PAGE_SIZE")

    def stop(self):
        self.process.terminate()
        self.process.wait(30)


def tensorboard_seconds(bench, runs):
    """Returns the seconds from the start of TensorBoard until its scalars API has the curves of all runs."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    begin = time.perf_counter()
    process = subprocess.Popen([bench.python, "-m", "tensorboard.main", "--logdir", bench.dir / "models", "--port", str(port),
                                "--load_fast=false", "--samples_per_plugin", "scalars=1000"],
                               env=bench.env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        for run in runs:
            while True:
                try:
                    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
                    connection.request("GET", "/data/plugin/scalars/scalars?" + urllib.parse.urlencode({"run": run, "tag": "loss"}))
                    answer = connection.getresponse()
                    if answer.status == 200 and json.loads(answer.read()):
                        break
                except (OSError, http.client.HTTPException):
                    pass
                assert process.poll() is None, "TensorBoard ended"
                time.sleep(0.05)
    finally:
        process.kill()
        process.wait()
    return time.perf_counter() - begin


def listing(bench):
    fill_history(bench, 10_000)
    server = Server(bench)
    times = [server.seconds("/api/jobs?limit=100")[0] for _ in range(bench.repeat + 1)]
    report("10,000 jobs: the first 100, first request", f"{1000 * times[0]:.0f} ms", "< 100 ms", times[0] < 0.1)
    found = statistics.median(server.seconds("/api/jobs?search=one-0999")[0] for _ in range(bench.repeat))
    report("10,000 jobs: a search by name", f"{1000 * found:.0f} ms", "< 100 ms", found < 0.1)
    report("server memory with 10,000 jobs", f"{server.usage()[1] / 1e6:.0f} MB", "< 50 MB", server.usage()[1] < 50e6)
    server.stop()


def curves(bench):
    long = bench.curve("long", 1_000_000)
    seconds = []
    for _ in range(bench.repeat):
        server = Server(bench)
        took, answer = server.seconds(f"/api/series?job={long}&points=1000")
        assert answer["series"][0]["count"] == 1_000_000, answer["series"][0]["count"]
        seconds.append(took)
        warm = server.seconds(f"/api/series?job={long}&points=1000")[0]
        memory = server.usage()[1]
        server.stop()
    took = statistics.median(seconds)
    report("a curve of 1,000,000 points, not cached", f"{1000 * took:.0f} ms, then {1000 * warm:.0f} ms", "< 500 ms", took < 0.5)
    report("server memory after it", f"{memory / 1e6:.0f} MB", "< 50 MB", memory < 50e6)
    shutil.rmtree(bench.dir / "models" / "long", ignore_errors=True)
    runs = bench.copies(bench.curve("short", 10_000), 100)
    query = urllib.parse.urlencode({"job": runs, "name": "loss", "points": 500}, doseq=True)
    server = Server(bench)
    took, answer = server.seconds(f"/api/series?{query}")
    warm = server.seconds(f"/api/series?{query}")[0]
    assert len(answer["series"]) == 100
    report("100 runs x 10,000 points, not cached", f"{1000 * took:.0f} ms, then {1000 * warm:.0f} ms", "< 1000 ms", took < 1)
    report("server memory after it", f"{server.usage()[1] / 1e6:.0f} MB", "< 50 MB", server.usage()[1] < 50e6)
    server.stop()
    if bench.python:
        peer = tensorboard_seconds(bench, runs)
        report("  TensorBoard, from its start, / the dashboard", f"{peer:.1f} s / {took:.2f} s = {peer / took:.1f}", ">= 1", peer >= took)


def logs(bench):
    job = bench.job("loud", "yes 0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcde | head -c 1000000000; echo needle")
    server = Server(bench)
    first = server.seconds(f"/api/jobs/{job}/logs?limit=500")[0]
    report("1 GB of log: its last 500 lines", f"{1000 * first:.0f} ms", "< 100 ms", first < 0.1)
    begin, pages, cursor = time.perf_counter(), 0, ""
    while cursor is not None:
        page = server.seconds(f"/api/jobs/{job}/logs?grep=absent" + (f"&cursor={urllib.parse.quote(cursor)}" if cursor else ""))[1]
        cursor, pages = page["older"], pages + 1
    took = time.perf_counter() - begin
    peer = statistics.median(timed(["grep", "-Ec", "absent", *(bench.dir / "home/jobs" / job / "logs").glob("*.log*")]) for _ in range(3))
    report("1 GB of log: searched to its start / grep -E", f"{took:.1f} s / {peer:.1f} s, {pages} pages", "none", True)
    report("server memory after it", f"{server.usage()[1] / 1e6:.0f} MB", "< 50 MB", server.usage()[1] < 50e6)
    server.stop()


def timed(argv):
    begin = time.perf_counter()
    subprocess.run(argv, stdout=subprocess.DEVNULL, check=False)
    return time.perf_counter() - begin


def viewers(bench):
    bench.write("live.yaml", "name: live\nroles: {chief: {command: 'while sleep 0.1; do s=$((s+1)); "
                "echo \"{\\\"step\\\": $s, \\\"loss\\\": 0.5}\" | tee -a $MUSTER_METRICS_FILE; done'}}\n")
    bench.run(bench.muster, "run", "-d", "live.yaml")
    job = json.loads(subprocess.check_output([bench.muster, "jobs", "--json", "--running"], env=bench.env))[0]["id"]
    server = Server(bench)
    ends, received = [], [0] * 50

    def view(index):
        connection = server.connect()
        connection.request("GET", f"/api/stream?job={job}", headers={"Cookie": server.cookie})
        answer = connection.getresponse()
        ends.append(connection)
        while line := answer.readline():
            received[index] += line.startswith(b"data:")

    threads = [threading.Thread(target=view, args=(i,), daemon=True) for i in range(50)]
    for thread in threads:
        thread.start()
    time.sleep(3)
    before, begin = server.usage()[0], time.perf_counter()
    time.sleep(10)
    share = (server.usage()[0] - before) / (time.perf_counter() - begin)
    assert min(received) > 10, received
    report("50 viewers of a live job, CPU of the server", f"{100 * share:.1f}% of a core", "< 5%", share < 0.05)
    report("server memory with them", f"{server.usage()[1] / 1e6:.0f} MB", "< 50 MB", server.usage()[1] < 50e6)
    server.stop()
    bench.run(bench.muster, "stop", "--yes", "--now", job)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bin", type=pathlib.Path, default=ROOT / "build" / "release" / "bin")
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--python", help="a Python with TensorFlow and TensorBoard")
    arguments = parser.parse_args()
    for part in (listing, curves, logs, viewers):
        bench = Bench(arguments)
        try:
            part(bench)
        finally:
            shutil.rmtree(bench.dir, ignore_errors=True)


if __name__ == "__main__":
    main()
