"""Processes that end with their owner; folders and ports that no other test uses."""
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
    """Returns the start time of a process, which distinguishes it from a later one with its pid; None if there is no such process."""
    try:
        return int(pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[19])
    except OSError:
        return None


class Child:
    """A program with a log file. The kernel kills it when the thread that started it ends for any reason."""

    def __init__(self, name, command, log, env=None):
        self.name = name
        self.log = log
        parent = os.getpid()

        def die_with_parent():
            _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
            if os.getppid() != parent:
                os._exit(1)

        with open(log, "ab") as output:
            # Its own session: ^C on the terminal reaches only the owner, which stops it gracefully.
            self._process = subprocess.Popen(list(map(str, command)), stdin=subprocess.DEVNULL, stdout=output, stderr=output, env=env,
                                             start_new_session=True, preexec_fn=die_with_parent)
        self.pid = self._process.pid

    def ended(self):
        return self._process.poll() is not None

    def failure(self):
        """Returns its last lines of output, for a message."""
        lines = pathlib.Path(self.log).read_text(errors="replace").splitlines()
        return f"{self.name} ended with {self._process.poll()}:\n" + "\n".join(lines[-15:])

    def stop(self, number=signal.SIGTERM, patience=10.0):
        """Sends the signal `number`, and SIGKILL if the process does not exit in time."""
        if not self.ended():
            self._process.send_signal(number)
            try:
                self._process.wait(patience)
            except subprocess.TimeoutExpired:
                self._process.kill()
        self._process.wait()


def wait_until(condition, what, children=(), timeout=60.0):
    """Polls `condition` until it returns a true value, and returns that value. Fails early if a child has exited."""
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
    """Loopback ports below the kernel's range for outgoing connections. Two objects never return the same port: each is
    reserved through an abstract Unix socket, which the kernel releases with the process."""

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
    """A folder in the temporary folder, removed by close(). The next Folder removes those of killed owners."""

    _PREFIX = f"muster-cluster-{os.getuid()}"

    def __init__(self, name=""):
        """`name`: of a folder that several processes may request; only one gets it, the others get FileExistsError."""
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
        """Returns the path of the folder of this name, if it exists."""
        return pathlib.Path(tempfile.gettempdir()) / f"{cls._PREFIX}-{name}"

    @staticmethod
    def is_owned(path):
        """Returns whether `path` is a folder whose owner is alive."""
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
