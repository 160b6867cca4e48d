"""What the tests that drive the real program share: a private MUSTER_HOME, job files, waiting."""
import contextlib
import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import time
import unittest

MUSTER = os.environ.get("MUSTER", "muster")
SOURCE = pathlib.Path(os.environ.get("MUSTER_SOURCE", pathlib.Path(__file__).resolve().parent.parent))
PYTHON = "/usr/bin/python3"  # Debian's, which has Debian's packages


def wait_until(condition, what, timeout=60.0):
    """Polls `condition` until it returns something true, and returns that."""
    deadline = time.monotonic() + timeout
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise AssertionError(f"waited {timeout} s in vain until {what}")
        time.sleep(0.02)


def processes_with(entry):
    """Pids of live processes whose environment holds `entry` (NAME=value)."""
    found = []
    for proc in pathlib.Path("/proc").iterdir():
        if not proc.name.isdigit():
            continue
        with contextlib.suppress(OSError):
            if entry.encode() not in (proc / "environ").read_bytes().split(b"\0"):
                continue
            if (proc / "stat").read_text().rsplit(")", 1)[1].split()[0] not in "ZX":
                found.append(int(proc.name))
    return found


class MusterTest(unittest.TestCase):
    """A test with a folder and a MUSTER_HOME of its own; at its end nothing of its jobs may be left running."""

    def setUp(self):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="muster-test-"))
        self.home = self.dir / "home"
        self.env = dict(os.environ, MUSTER_HOME=str(self.home), PYTHONUNBUFFERED="1")
        self.env.pop("OMP_NUM_THREADS", None)
        self.addCleanup(shutil.rmtree, self.dir, ignore_errors=True)
        self.addCleanup(self._end_everything)

    def _end_everything(self):
        ids = [path.name for path in self.home.glob("jobs/*")]
        for job in ids:
            self.muster("stop", "--yes", "--now", job, check=False)
        for job in ids:
            self.assertEqual(processes_with(f"MUSTER_JOB_ID={job}"), [], "processes were left running")

    def write(self, name, text):
        path = self.dir / name
        path.write_text(text)
        return path

    def muster(self, *args, check=True, **kwargs):
        """Runs muster to its end; returns the CompletedProcess with text output."""
        kwargs.setdefault("timeout", 120)
        result = subprocess.run([MUSTER, *map(str, args)], cwd=self.dir, env=self.env, text=True,
                                stdin=subprocess.DEVNULL, capture_output=True, **kwargs)
        if check and result.returncode != 0:
            raise AssertionError(f"muster {' '.join(map(str, args))} exited {result.returncode}\n"
                                 f"{result.stdout}\n{result.stderr}")
        return result

    def start(self, *args, **kwargs):
        """Starts muster and returns the Popen; killed at the end of the test."""
        process = subprocess.Popen([MUSTER, *map(str, args)], cwd=self.dir, env=self.env, text=True,
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, **kwargs)

        def end():
            process.kill()
            process.wait()
            process.stdout.close()
            process.stderr.close()

        self.addCleanup(end)
        return process

    def run_detached(self, text, name="job.yaml"):
        """Starts a job in the background; returns its id."""
        self.muster("run", "-d", self.write(name, text))
        return self.jobs()[0]["id"]

    def jobs(self):
        return json.loads(self.muster("jobs", "--json").stdout)

    def show(self, job):
        return json.loads(self.muster("show", "--json", job).stdout)

    def task(self, job, name):
        return next(task for task in self.show(job)["tasks"] if task["task"] == name)

    def wait_state(self, job, *states, timeout=60.0):
        return wait_until(lambda: (lambda s: s if s["state"] in states else None)(self.show(job)),
                          f"{job} is {' or '.join(states)}", timeout)

    def log(self, job, task):
        return (self.home / "jobs" / job / "logs" / f"{task.replace(':', '-')}.log").read_bytes()
