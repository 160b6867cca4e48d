"""Processes that end with their owner, folders and ports that no other test has."""
import contextlib
import ctypes
import fcntl
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import tempfile
import time

_PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None, use_errno=True)


def start_time(pid):
    """What tells a process from a later one with its pid; None when there is no such process."""
    try:
        return int(pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[19])
    except OSError:
        return None


class Child:
    """A program with a log file. The kernel kills it when the thread that started it ends, however that comes about."""

    def __init__(self, name, command, log, env=None):
        self.name = name
        self.log = log
        parent = os.getpid()

        def die_with_parent():
            _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
            if os.getppid() != parent:
                os._exit(1)

        with open(log, "ab") as output:
            # A session of its own: ^C on the terminal is for the owner, who ends it in order.
            self._process = subprocess.Popen(list(map(str, command)), stdin=subprocess.DEVNULL, stdout=output, stderr=output, env=env,
                                             start_new_session=True, preexec_fn=die_with_parent)
        self.pid = self._process.pid

    def ended(self):
        return self._process.poll() is not None

    def failure(self):
        """What it said last, for a message."""
        lines = pathlib.Path(self.log).read_text(errors="replace").splitlines()
        return f"{self.name} ended with {self._process.poll()}:\n" + "\n".join(lines[-15:])

    def stop(self, number=signal.SIGTERM, patience=10.0):
        """Ends it: with `number`, and with SIGKILL when that does not help."""
        if not self.ended():
            self._process.send_signal(number)
            try:
                self._process.wait(patience)
            except subprocess.TimeoutExpired:
                self._process.kill()
        self._process.wait()


def wait_until(condition, what, children=(), timeout=60.0):
    """Polls `condition` until it returns something true, and returns that. Fails early when a child has ended."""
    deadline = time.monotonic() + timeout
    while True:
        value = condition()
        if value:
            return value
        for child in children:
            if child.ended():
                raise RuntimeError(child.failure())
        if time.monotonic() > deadline:
            raise RuntimeError(f"timed out after {timeout} s waiting until {what}")
        time.sleep(0.02)


class Ports:
    """Ports of loopback, below the kernel's range for outgoing connections. Two of this class never give the same one: each is
    held through a name of Unix sockets, which the kernel frees with the process."""

    def __init__(self):
        self._held = []

    def take(self):
        # Tests pick from 10000 to 19900, Muster itself from 20000.
        for offset in range(1000):
            port = 9000 + (os.getpid() * 13 + offset) % 1000
            holder = socket.socket(socket.AF_UNIX)
            probe = socket.socket()
            with contextlib.closing(probe):
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                try:
                    holder.bind(f"\0muster-test-cluster-port-{port}")
                    probe.bind(("", port))
                except OSError:
                    holder.close()
                    continue
            self._held.append(holder)
            return port
        raise RuntimeError("no free port between 9000 and 9999")

    def close(self):
        for holder in self._held:
            holder.close()
        self._held = []


class Folder:
    """A folder in the temporary one, removed with close(). Those of owners that were killed are removed by whoever comes next."""

    _PREFIX = f"muster-cluster-{os.getuid()}"

    def __init__(self, name=""):
        """`name`: of a folder that several may ask for; only one of them gets it. Raises FileExistsError."""
        base = pathlib.Path(tempfile.gettempdir())
        with open(base / f"{self._PREFIX}.lock", "w") as creation:
            fcntl.flock(creation, fcntl.LOCK_EX)
            for old in base.glob(f"{self._PREFIX}-*"):
                if old.is_dir() and not self.is_owned(old):
                    shutil.rmtree(old, ignore_errors=True)
            if name:
                self.path = base / f"{self._PREFIX}-{name}"
                self.path.mkdir(mode=0o700)
            else:
                self.path = pathlib.Path(tempfile.mkdtemp(prefix=f"{self._PREFIX}-"))
            self._lock = open(self.path / "lock", "w")
            fcntl.flock(self._lock, fcntl.LOCK_EX)

    @classmethod
    def of(cls, name):
        """Where the folder of this name is, if there is one."""
        return pathlib.Path(tempfile.gettempdir()) / f"{cls._PREFIX}-{name}"

    @staticmethod
    def is_owned(path):
        """Whether `path` is a folder whose owner lives."""
        try:
            with open(path / "lock") as lock:
                fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        except OSError:
            pass
        return False

    def close(self):
        shutil.rmtree(self.path, ignore_errors=True)
        self._lock.close()
