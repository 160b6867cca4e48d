#!/usr/bin/env python3
"""Reading an object from a server on this machine in parallel ranges, beside curl.

usage: bench/storage.py [--muster build/release/bin/muster] [--repeat 5] [--megabytes 1024] [--connections 4]

Build first: cmake --preset release && cmake --build --preset release --target muster

The server speaks as much of S3 as reading needs and sends from the page cache (sendfile); both clients use it with the same
number of connections and throw the bytes away. `muster storage cat` fetches ranges of 8 MiB and puts them in order; curl
(-Z) fetches one range per connection, in no order. Runs are interleaved and medians compared.
"""
import argparse
import hashlib
import multiprocessing
import os
import pathlib
import re
import shutil
import socketserver
import statistics
import subprocess
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent


class Handler(socketserver.StreamRequestHandler):
    disable_nagle_algorithm = True

    def handle(self):
        while line := self.rfile.readline():
            head = [line] + list(iter(self.rfile.readline, b"\r\n"))
            size = os.fstat(self.server.file).st_size
            wanted = next((re.search(rb"bytes=(\d+)-(\d+)", header) for header in head
                           if header.lower().startswith(b"range:")), None)
            begin, end = (int(wanted[1]), int(wanted[2]) + 1) if wanted else (0, size)
            status = b"206 Partial Content" if wanted else b"200 OK"
            self.wfile.write(b"HTTP/1.1 %s\r\nETag: \"1-2\"\r\nContent-Length: %d\r\n\r\n" % (status, end - begin))
            while begin < end and not line.startswith(b"HEAD"):
                begin += os.sendfile(self.connection.fileno(), self.server.file, begin, end - begin)


class Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    request_queue_size = 64

    def handle_error(self, request, client_address):
        pass


def measure(command, env):
    """Returns the seconds, and the peak memory in MB."""
    start = time.perf_counter()
    process = subprocess.Popen(command, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, command
    return time.perf_counter() - start, usage.ru_maxrss / 1024


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--muster", type=pathlib.Path, default=ROOT / "build/release/bin/muster")
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--megabytes", type=int, default=1024)
    parser.add_argument("--connections", type=int, default=4)
    arguments = parser.parse_args()
    folder = pathlib.Path(tempfile.mkdtemp(prefix="bench-", dir=ROOT / "build"))
    server = None
    try:
        block = os.urandom(1 << 20)
        with open(folder / "object", "wb") as file:
            for number in range(arguments.megabytes):
                file.write(number.to_bytes(8, "little") + block[8:])
        listener = Server(("127.0.0.1", 0), Handler)
        listener.file = os.open(folder / "object", os.O_RDONLY)
        server = multiprocessing.Process(target=listener.serve_forever, daemon=True)
        server.start()
        address = f"http://127.0.0.1:{listener.server_address[1]}"
        env = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
        env.update(AWS_ENDPOINT_URL=address, AWS_ACCESS_KEY_ID="x", AWS_SECRET_ACCESS_KEY="x")
        ours = [arguments.muster, "storage", "cat", "-j", str(arguments.connections), "s3://bucket/object"]
        size = arguments.megabytes << 20
        share = -(-size // arguments.connections)
        theirs = ["curl", "-Z", "--parallel-immediate", "--parallel-max", str(arguments.connections)]
        for begin in range(0, size, share):
            theirs += ["--next"] if begin else []
            theirs += ["-sS", "-r", f"{begin}-{min(begin + share, size) - 1}", "-o", "/dev/null", f"{address}/bucket/object"]

        with subprocess.Popen(ours, env=env, stdout=subprocess.PIPE) as process:
            came = hashlib.file_digest(process.stdout, "sha256").hexdigest()
        with open(folder / "object", "rb") as file:
            assert came == hashlib.file_digest(file, "sha256").hexdigest()
        runs = [(measure(ours, env), measure(theirs, env)) for _ in range(arguments.repeat)]
        mine, curls = (statistics.median(run[i][0] for run in runs) for i in (0, 1))
        memory = max(run[0][1] for run in runs)
        ratio = curls / mine
        print(f"{arguments.megabytes} MB over {arguments.connections} connections, muster storage cat / curl -Z: "
              f"{arguments.megabytes / mine:.0f} / {arguments.megabytes / curls:.0f} MB/s = {ratio:.2f}  target >= 0.9  "
              f"{'ok' if ratio >= 0.9 else 'SHORT'}")
        print(f"peak memory of muster: {memory:.0f} MB; the ranges that are read ahead take "
              f"{8 * arguments.connections} MB of it")
    finally:
        if server is not None:
            server.kill()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
