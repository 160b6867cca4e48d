"""muster-agent with the protocol of a supervisor (docs/formats/agent.md), without ssh."""
import contextlib
import json
import os
import pathlib
import resource
import struct
import subprocess
import time
import unittest

import support
from support import MusterTest, kill, wait_until

AGENT = os.path.join(os.path.dirname(support.MUSTER), "muster-agent")
PREFACE = b"muster-agent ready\n"
TWO_DAYS = 2 * 24 * 3600


class AgentClient:
    """A process of the agent's program, and the messages to and from it."""

    def __init__(self, process):
        self.process = process
        self._number = 0
        self._read_preface()

    def _read_preface(self):
        said = self.process.stdout.read(len(PREFACE))
        if said != PREFACE:
            raise AssertionError(f"not an agent's first words: {said!r}")

    def send(self, op, **head):
        text = json.dumps({"op": op, **head}).encode() + b"\0"
        self.process.stdin.write(struct.pack("<I", len(text)) + text)
        self.process.stdin.flush()

    def send_reliably(self, op, **head):
        """Sends a message that must arrive."""
        self._number += 1
        self.send(op, n=self._number, **head)

    def receive(self):
        size = struct.unpack("<I", self.process.stdout.read(4))[0]
        return json.loads(self.process.stdout.read(size).split(b"\0")[0])

    def await_op(self, *ops):
        """Returns the first message of one of these kinds; drops those before it."""
        while True:
            message = self.receive()
            if message["op"] in ops:
                return message

    def hello(self):
        self.send("hello", seen=0, epoch=0, sent=0, host_timeout_ms=60_000, logs={})
        return self.await_op("hello")

    def close(self):
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.kill()
        self.process.wait()


class AgentTestBase(MusterTest):
    def setUp(self):
        super().setUp()
        self.env["XDG_CACHE_HOME"] = str(self.dir / "cache")
        self.folder = self.job_folder("one")
        self.addCleanup(self.end_agents)

    def job_folder(self, job):
        folder = self.dir / "cache" / "muster" / "jobs" / f"{job}@{os.uname().nodename}"
        for part in ("logs", "run", "tls"):
            (folder / part).mkdir(parents=True)
        return folder

    def spawn(self, *args, **options):
        process = subprocess.Popen([AGENT, *map(str, args)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=self.env, **options)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def talk(self, *args, **options):
        talk = AgentClient(self.spawn(*args, **options))
        self.addCleanup(talk.close)
        return talk

    def attach(self, **options):
        return self.talk("attach", self.folder, "one", **options)

    def agents(self):
        """Returns the guard and the agent, without the processes that are attached to them."""
        found = []
        for proc in pathlib.Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                words = (proc / "cmdline").read_bytes().decode().split("\0")
                if str(self.folder) in words and os.readlink(proc / "fd/0").endswith("/null"):
                    found.append(int(proc.name))
        return sorted(found)

    def end_agents(self):
        for pid in self.agents():
            kill(pid)
        wait_until(lambda: not self.agents(), "the agents are gone", 20)

    def start(self, talk, command):
        """Starts worker:0 there."""
        talk.send_reliably("start", task="worker:0", attempt=0, argv=["/bin/sh", "-c", command], working_dir=str(self.dir), port=0,
                   port_is_picked=False, waits_for_port=False,
                   env={"MUSTER_JOB_ID": "one", "MUSTER_TASK": "worker:0", "MUSTER_ATTEMPT": "0"})


class AttachTest(AgentTestBase):
    def test_concurrent_attaches_start_one_agent(self):
        processes = [self.spawn("attach", self.folder, "one") for _ in range(16)]
        for process in processes:
            self.addCleanup(AgentClient(process).close)
        self.assertEqual(len(self.agents()), 2, "a guard and an agent")

    def test_a_new_agent_replaces_one_that_is_exiting(self):
        known = set()
        for _ in range(10):
            talk = self.attach()
            known.add(talk.hello()["agent"])
            talk.send("give_up")
            talk.process.stdout.read()  # until it closes the connection
            talk.close()
        talk = self.attach()
        agent = talk.hello()["agent"]
        self.assertEqual(len(known | {agent}), 11)
        wait_until(lambda: len(self.agents()) == 2, "those before it are gone", 20)
        self.assertTrue((self.folder / "agent.sock").exists())
        self.assertEqual(self.attach().hello()["agent"], agent)

    def test_keys_of_an_old_job_outlive_its_agent(self):
        long_ago = time.time() - TWO_DAYS
        abandoned = self.job_folder("two")
        elsewhere = self.folder.parent / "three@another-host"
        (elsewhere / "tls").mkdir(parents=True)
        for folder in (self.folder, abandoned, elsewhere):
            os.utime(folder / "tls", (long_ago, long_ago))
        self.attach().hello()
        self.end_agents()
        session = self.talk("session")
        session.send("job", job="four", former="")
        self.assertTrue(session.receive()["folder"].startswith(str(self.folder.parent / "four@")))
        self.assertTrue((self.folder / "tls").exists(), "its agent lived a moment ago")
        self.assertTrue((elsewhere / "tls").exists(), "another host's")
        self.assertFalse((abandoned / "tls").exists())


class TaskFileTest(AgentTestBase):
    def test_a_fifo_as_progress_file_does_not_block_the_agent(self):
        talk = self.attach()
        talk.hello()
        self.start(talk, f"mkfifo '{self.folder}/run/worker-0/progress'; echo made; exec sleep 600")
        talk.await_op("log")
        for _ in range(3):  # the agent reads the file about once a second
            time.sleep(1)
            talk.send("ping", sent=1, host_timeout_ms=60_000)
            talk.await_op("pong")
        talk.send_reliably("end", task="worker:0", attempt=0, kill=True)
        self.assertEqual(talk.await_op("ended")["end"]["exit_code"], 137)

    def test_a_file_size_limit_drops_output_but_keeps_the_agent(self):
        limit = 1 << 20
        talk = self.attach(preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)))
        agent = talk.hello()["agent"]
        self.start(talk, "grep SigIgn /proc/self/status > signals; yes | head -c 5000000; exit 7")
        self.assertIn("File too large", talk.await_op("note")["message"])
        self.assertEqual(talk.await_op("ended")["end"]["exit_code"], 7)
        talk.close()
        self.assertEqual(self.attach().hello()["agent"], agent)
        self.assertRegex((self.dir / "signals").read_text(), r"SigIgn:\s+0+\n")


if __name__ == "__main__":
    unittest.main()
