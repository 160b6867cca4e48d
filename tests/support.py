"""Shared by the tests of the real program: a private MUSTER_HOME, job files, terminals, waiting."""
import contextlib
import fcntl
import json
import os
import pathlib
import pty
import re
import select
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import termios
import textwrap
import threading
import time
import unittest
import urllib.request

MUSTER = os.path.abspath(shutil.which(os.environ.get("MUSTER", "muster")) or os.environ.get("MUSTER", "muster"))
SOURCE = pathlib.Path(os.environ.get("MUSTER_SOURCE", pathlib.Path(__file__).resolve().parent.parent))
PYTHON = "/usr/bin/python3"  # Debian's, which has Debian's packages


def wait_until(condition, what, timeout=60.0):
    """Polls `condition` until it returns a true value, and returns that value."""
    deadline = time.monotonic() + timeout
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise AssertionError(f"timed out after {timeout} s waiting until {what}")
        time.sleep(0.02)


def is_alive(pid):
    """Returns whether a process with this pid exists and is not a zombie."""
    try:
        state = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except OSError:
        return False
    return state not in "ZX"


def processes_with(entry):
    """Returns the pids of live processes whose environment contains `entry` (NAME=value)."""
    found = []
    for proc in pathlib.Path("/proc").iterdir():
        if not proc.name.isdigit():
            continue
        with contextlib.suppress(OSError):
            if entry.encode() in (proc / "environ").read_bytes().split(b"\0") and is_alive(int(proc.name)):
                found.append(int(proc.name))
    return found


def free_ports(count):
    """Returns the first of `count` consecutive free ports, outside of the ranges of Linux and of Muster."""
    first = 10000 + os.getpid() * 7 % 9000
    while True:
        first = 10000 + (first - 10000 + 1) % 9900
        with contextlib.ExitStack() as probes:
            try:
                for port in range(first, first + count):
                    probes.enter_context(socket.socket()).bind(("", port))
            except OSError:
                continue
        return list(range(first, first + count))


def kill(pid, number=signal.SIGKILL):
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


def plain(text):
    """Returns `text` without terminal control sequences."""
    return re.sub(r"\x1b\[[0-9;]*[A-Za-z]", "", text).replace("\r", "")


def serve(test, *command):
    """Starts a server that ends with the test (see test.servers). Returns its first line of output."""
    server = subprocess.Popen(list(map(str, command)), stdout=subprocess.PIPE, text=True)
    test.addCleanup(server.stdout.close)
    test.addCleanup(server.wait)
    test.addCleanup(server.kill)
    test.servers = [*getattr(test, "servers", []), server.pid]
    return server.stdout.readline()


def start_hdfs(test, *arguments):
    """Runs tests/webhdfs_server.py during a test. Returns the namenode's port."""
    return int(serve(test, sys.executable, "-B", SOURCE / "tests" / "webhdfs_server.py", *arguments).split()[0])


class GsServer:
    """Runs tests/gs_server.mjs during a test."""

    def __init__(self, test, **options):
        if shutil.which("node") is None:
            test.skipTest("no node")
        port = int(serve(test, "node", SOURCE / "tests" / "gs_server.mjs", json.dumps(options)))
        self.address = f"http://127.0.0.1:{port}"

    def ask(self, path, value=None):
        """Returns the response to a GET below /test/, or to a POST if there is a body."""
        data = None if value is None else json.dumps(value).encode()
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(f"{self.address}/test/{path}", data=data, timeout=30) as answer:
            return json.load(answer)


class Terminal:
    """muster on its own terminal, as an interactive user runs it."""

    def __init__(self, args, cwd, env, columns=200, rows=50, stdout=None):
        self._master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self.process = subprocess.Popen(
            [MUSTER, *map(str, args)], cwd=cwd, env=env, stdin=slave,
            stdout=slave if stdout is None else stdout, stderr=slave,
            start_new_session=True, preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
        os.close(slave)
        self._output = b""
        self._closing = False
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self):
        # Polls: a blocking read would keep the terminal open after hang_up().
        while not self._closing:
            readable, _, _ = select.select([self._master], [], [], 0.05)
            if not readable:
                continue
            try:
                data = os.read(self._master, 65536)
            except OSError:
                return
            if not data:
                return
            self._output += data

    @property
    def output(self):
        return self._output.decode(errors="replace")

    def expect(self, text, timeout=60.0):
        wait_until(lambda: text in plain(self.output), f"the terminal shows {text!r}; it shows:\n{self.output}", timeout)

    def send(self, text):
        os.write(self._master, text.encode())

    def interrupt(self):
        self.send("\x03")

    def wait(self, timeout=60.0):
        """Reads all output and returns the exit code."""
        code = self.process.wait(timeout)
        self._reader.join(timeout=10)
        return code

    def hang_up(self):
        """Closes the window: the kernel sends SIGHUP."""
        if self._closing:
            return
        self._closing = True
        self._reader.join(timeout=10)
        os.close(self._master)

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self.hang_up()


class MusterTest(unittest.TestCase):
    """A test with its own folder and MUSTER_HOME. At its end no process of its jobs may be running."""

    def setUp(self):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="muster-test-"))
        self.home = self.dir / "home"
        self.env = dict(os.environ, MUSTER_HOME=str(self.home), PYTHONUNBUFFERED="1", TERM="xterm",
                        PATH="/usr/local/bin:/usr/bin:/bin")
        for name in ("OMP_NUM_THREADS", "NO_COLOR", "TF_CONFIG", "XDG_DATA_HOME"):
            self.env.pop(name, None)
        self.addCleanup(shutil.rmtree, self.dir, ignore_errors=True)
        self.addCleanup(self._end_everything)

    def _end_everything(self):
        ids = [path.name for path in self.home.glob("jobs/*")]
        for job in ids:
            self.muster("stop", "--yes", "--now", job, check=False)
        for job in ids:
            wait_until(lambda job=job: not processes_with(f"MUSTER_JOB_ID={job}"), f"nothing of {job} is left", 10)

    def mount(self, path, size):
        """Mounts a small file system."""
        if os.geteuid() != 0:
            self.skipTest("needs root to mount a small disk")
        path.mkdir(parents=True)
        if subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size},mode=700", "none", path], capture_output=True).returncode:
            self.skipTest("mount is not permitted here")
        self.addCleanup(subprocess.run, ["umount", "-l", path])

    def write(self, name, text):
        path = self.dir / name
        path.write_text(textwrap.dedent(text))
        return path

    def muster(self, *args, check=True, **kwargs):
        """Runs muster to its end; returns the CompletedProcess with text output."""
        kwargs.setdefault("timeout", 120)
        kwargs.setdefault("cwd", self.dir)
        kwargs.setdefault("env", self.env)
        if "input" not in kwargs:
            kwargs.setdefault("stdin", subprocess.DEVNULL)
        result = subprocess.run([MUSTER, *map(str, args)], text=True, errors="replace", capture_output=True, **kwargs)
        if check and result.returncode != 0:
            raise AssertionError(f"muster {' '.join(map(str, args))} exited {result.returncode}\n"
                                 f"{result.stdout}\n{result.stderr}")
        return result

    def start(self, *args, **kwargs):
        """Starts muster and returns the Popen; killed at the end of the test."""
        kwargs = {"env": self.env, "cwd": self.dir, "stderr": subprocess.PIPE, **kwargs}
        process = subprocess.Popen([MUSTER, *map(str, args)], text=True,
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, **kwargs)

        def end():
            process.kill()
            process.wait()
            process.stdout.close()
            if process.stderr:
                process.stderr.close()

        self.addCleanup(end)
        return process

    def terminal(self, *args, env=None, **kwargs):
        """Starts muster on a terminal, optionally with its standard output elsewhere; killed at the end of the test."""
        terminal = Terminal(args, self.dir, env or self.env, **kwargs)
        self.addCleanup(terminal.close)
        return terminal

    def run_detached(self, text, name="job.yaml"):
        """Starts a job in the background; returns its id."""
        said = self.muster("run", "-d", self.write(name, text)).stdout
        return re.search(r"Started (\S+) in", said).group(1)

    def jobs(self):
        return json.loads(self.muster("jobs", "--json").stdout)

    def show(self, job):
        return json.loads(self.muster("show", "--json", job).stdout)

    def task(self, job, name):
        return next(task for task in self.show(job)["tasks"] if task["task"] == name)

    def pids(self, job):
        return {task["task"]: task["pid"] for task in self.show(job)["tasks"]}

    def wait_state(self, job, *states, timeout=60.0):
        return wait_until(lambda: (lambda s: s if s["state"] in states else None)(self.show(job)),
                          f"{job} is {' or '.join(states)}", timeout)

    def wait_file(self, name, timeout=60.0):
        """Waits until a file of the test's folder exists and is not empty, and returns its text."""
        path = self.dir / name
        return wait_until(lambda: path.exists() and path.read_text(), f"{name} is written", timeout)

    def log(self, job, task):
        """Returns the task's output so far."""
        path = self.home / "jobs" / job / "logs" / f"{task.replace(':', '-')}.log"
        return path.read_bytes() if path.exists() else b""

    def events(self, job):
        return [f"{event['task']} {event['message']}".strip() for event in self.show(job)["events"]]
