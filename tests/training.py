"""Shared by the tests of the built-in trainer: small jobs, their checkpoints, fault injection."""
import contextlib
import copy
import hashlib
import json
import os
import random
import re
import signal
import subprocess
import time

import support
from support import PYTHON, MusterTest, kill, wait_until

TRAINER = os.path.join(os.path.dirname(support.MUSTER), "muster-trainer")

JOB = {
    "name": "job",
    "env": {"OMP_NUM_THREADS": "1"},
    "roles": {"chief": {}, "worker": 2, "ps": 2},
    "train": {
        "model": "mlp",
        "data": {"format": "synthetic", "examples": 512, "shape": [1, 6, 6]},
        "optimizer": {"type": "adam", "learning_rate": 0.001},
        "batch_size": 8,
        "steps": 200,
        "seed": 7,
        "log_every_steps": 10,
        "checkpoint": {"every_steps": 40},
    },
    "policies": {"backoff": 0, "start_timeout": "60s"},
}


def merged(base, changes):
    """Returns `base` with `changes` merged into it recursively; None removes a key."""
    result = copy.deepcopy(base)
    for key, value in changes.items():
        if value is None:
            result.pop(key, None)
        elif isinstance(value, dict) and isinstance(result.get(key), dict):
            result[key] = merged(result[key], value)
        else:
            result[key] = copy.deepcopy(value)
    return result


class TrainTest(MusterTest):
    def setUp(self):
        if not os.path.exists(TRAINER):
            self.skipTest("needs muster-trainer, which this build is without")
        super().setUp()

    def job(self, name, **changes):
        """Writes a job file; `roles` replaces the default roles, everything else is merged."""
        roles = changes.pop("roles", None)
        spec = merged(JOB, changes)
        spec["name"] = name
        if roles is not None:
            spec["roles"] = roles
        path = self.dir / f"{name}.yaml"
        path.write_text(json.dumps(spec))
        return path

    def launch(self, name, **changes):
        """Starts a job in the background and returns its id."""
        said = self.muster("run", "-d", self.job(name, **changes)).stdout
        return re.search(r"Started (\S+) in", said).group(1)

    def succeed(self, job, timeout=90):
        """Waits for the end of a job, in which every task must have succeeded."""
        shown = self.wait_state(job, "Succeeded", "Failed", "Stopped", timeout=timeout)
        logs = f"{self.events(job)}\n{self.logs(job)}"
        self.assertEqual(shown["state"], "Succeeded", f"{shown.get('reason')}\n{logs}")
        for task in shown["tasks"]:
            self.assertEqual(task["state"], "Succeeded", f"{task['task']}\n{logs}")
        return shown

    def train(self, name, **changes):
        """Runs a job, which must succeed, and returns its id."""
        job = self.launch(name, **changes)
        self.succeed(job)
        return job

    def fails(self, name, **changes):
        """Runs a job, which must fail, and returns its output."""
        result = self.muster("run", self.job(name, **changes), check=False)
        self.assertEqual(result.returncode, 1, result.stdout + result.stderr)
        return result.stdout + result.stderr

    def text(self, job, task):
        return self.log(job, task).decode(errors="replace")

    def wait_text(self, job, task, pattern, timeout=60):
        return wait_until(lambda: re.search(pattern, self.text(job, task)),
                          f"{task} of {job} says {pattern!r}; it says:\n{self.text(job, task)}", timeout)

    def logs(self, job):
        return "\n".join(f"--- {task['task']}\n{self.text(job, task['task'])}" for task in self.show(job)["tasks"])

    def wait_step(self, job, step):
        """Waits until the chief has logged this step or a later one."""
        def reached():
            return max([0, *map(int, re.findall(r"^step (\d+)/", self.text(job, "chief:0"), re.M))]) >= step

        try:
            wait_until(reached, f"{job} is at step {step}")
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.events(job)}\n{self.logs(job)}") from None

    def model_dir(self, name):
        return self.dir / "runs" / name

    def checkpoint(self, name, step=None):
        """Returns the folder of a checkpoint, by default of the newest one."""
        folders = sorted((self.model_dir(name) / "checkpoints").glob("step-*[0-9]"))
        if step is not None:
            folders = [folder for folder in folders if int(folder.name[5:]) == step]
        return folders[-1] if folders else None

    def wait_checkpoint(self, name, step):
        return wait_until(lambda: self.checkpoint(name, step), f"{name} has a checkpoint of step {step}")

    def state(self, name):
        return json.loads((self.checkpoint(name) / "state.json").read_text())

    def bytes_of(self, name, kinds=("model", "optimizer")):
        """Returns the step of the newest checkpoint and the hash of each of its tensor files."""
        folder = self.checkpoint(name)
        hashes = {}
        for kind in kinds:
            for path in sorted(folder.glob(f"{kind}-*.safetensors")):
                hashes[path.name] = hashlib.sha256(path.read_bytes()).hexdigest()
        self.assertGreater(len(hashes), 0)
        return int(folder.name[5:]), hashes

    def restarts(self, job, task):
        return self.task(job, task)["attempt"] - 1

    def kill_task(self, job, task):
        pid = self.pids(job)[task]
        self.assertTrue(pid, f"{task} runs")
        kill(pid)

    def freeze(self, job, task):
        """Suspends a task's process for the duration of the block."""
        pid = self.pids(job)[task]
        self.assertTrue(pid, f"{task} runs")
        os.kill(pid, signal.SIGSTOP)
        self.addCleanup(kill, pid, signal.SIGCONT)
        return pid

    def stutter(self, job, tasks, seed):
        """Suspends tasks for random times until the job ends."""
        dice = random.Random(seed)
        pids = self.pids(job)
        while self.show(job)["state"] in ("Starting", "Running"):
            pid = pids[dice.choice(tasks)]
            kill(pid, signal.SIGSTOP)
            try:
                time.sleep(dice.uniform(0.01, 0.15))
            finally:
                kill(pid, signal.SIGCONT)

    def python_torch(self, program, *args):
        """Runs a program with Debian's torch and returns its output. Skips the test if torch is not installed."""
        find = "import importlib.util, sys; sys.exit(importlib.util.find_spec('torch') is None)"
        if subprocess.run([PYTHON, "-c", find]).returncode:
            self.skipTest("needs python3-torch")
        result = subprocess.run([PYTHON, "-c", program, *map(str, args)], capture_output=True, text=True, timeout=100,
                                env=dict(self.env, OMP_NUM_THREADS="1"), cwd=self.dir)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stdout

    def by_hand(self, env, *args, within=()):
        """Starts a task of the trainer as a user does; killed at the end of the test. `within`: a command prefix such as nsenter's."""
        output = self.dir / f"by-hand-{time.monotonic_ns()}.log"
        with open(output, "wb") as file:
            process = subprocess.Popen([*within, TRAINER, *args], cwd=self.dir, env=env, stdin=subprocess.DEVNULL,
                                       stdout=file, stderr=subprocess.STDOUT)
        process.output = output.read_text

        def end():
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            process.wait()

        self.addCleanup(end)
        return process

    def expect_exit(self, process, code, timeout=60):
        try:
            process.wait(timeout)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"it still runs after {timeout} s:\n{process.output()}") from None
        self.assertEqual(process.returncode, code, process.output())
        return process.output()

    def env_of(self, job_file, role, index=0, **more):
        """Returns the environment that `muster env` prints for a task."""
        printed = json.loads(self.muster("env", job_file, role, index, "--format", "json").stdout)
        return {**self.env, **printed, **more}
