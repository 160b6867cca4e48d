"""Faults in training: invalid jobs, damaged checkpoints, full disks, unauthorized clients, lost peers."""
import json
import os
import re
import signal
import socket
import unittest
from unittest import mock

import training
from support import free_ports, kill, wait_until
from training import TrainTest

ONE = {"chief": {}}
PAIR = {"chief": {}, "worker": 1, "ps": 1}
SHORT = {"steps": 20, "checkpoint": {"every_steps": 10}}


class MistakeTest(TrainTest):
    """An invalid job fails immediately with the remedy."""

    def refused(self, **changes):
        """Returns the error of a rejected job file."""
        result = self.muster("run", self.job("job", roles=ONE, **changes), check=False)
        self.assertEqual(result.returncode, 2, result.stderr)
        self.assertEqual(self.jobs(), [])
        return result.stderr

    def test_a_model_that_does_not_fit_the_data(self):
        said = self.fails("job", roles=PAIR, train={"model": "cnn", "data": {"kind": "tabular", "features": 4, "classes": 3,
                                                                             "shape": None}})
        self.assertRegex(said, "cnn")
        self.assertRegex(said, r"\[.*4\]")
        self.assertNotIn("restarts", said)

    def test_a_loss_that_does_not_fit_the_data(self):
        said = self.fails("job", roles=ONE, train={"loss": "ctc"})
        self.assertRegex(said, "chief:0 failed")
        self.assertNotIn("terminate called", said)

    def test_an_unknown_model(self):
        result = self.muster("run", self.job("job", roles=ONE, train={"model": "cmn"}), check=False)
        self.assertNotEqual(result.returncode, 0)
        self.assertRegex(result.stderr + result.stdout, "cmn.*cnn")

    def test_an_unknown_loss(self):
        self.assertRegex(self.refused(train={"loss": "cross_entropie"}), "cross_entropy")

    def test_no_steps(self):
        self.assertRegex(self.refused(train={"steps": 0}), "'steps'")

    def test_a_file_that_is_not_torchscript(self):
        self.write("net.pt", "PK\x03\x04 this is not a model")
        said = self.fails("job", roles=ONE, train={"model": "./net.pt"})
        self.assertIn("net.pt", said)
        self.assertRegex(said, "TorchScript")

    def test_a_torchscript_file_that_is_not_there(self):
        said = self.refused(train={"model": "./net.pt"})
        self.assertRegex(said, r"job.*:\d+:\d+: model: .*net.pt does not exist")

    def test_a_split_that_is_not_there(self):
        self.assertIn("nosuch", self.fails("job", roles=ONE, train={"evaluate": {"split": "nosuch"}}))
        self.assertIsNone(self.checkpoint("job"))

    def test_a_manually_written_file_without_an_interval(self):
        config = training.merged(training.JOB["train"], {"checkpoint": {"every_steps": 0}})
        task = self.by_hand(dict(self.env, MUSTER_TRAIN_CONFIG=json.dumps(config)))
        self.assertIn("'every_steps' of 'checkpoint' of train", self.expect_exit(task, 1))

    def test_a_manually_written_file_with_an_unknown_key(self):
        (self.dir / "train.json").write_text(json.dumps(dict(training.JOB["train"], batchsize=8)))
        task = self.by_hand(dict(self.env, MUSTER_TRAIN_CONFIG="train.json"))
        self.assertRegex(self.expect_exit(task, 1), r"train.json:1:\d+: .*'batchsize'.*did you mean 'batch_size'")

    def test_a_batch_larger_than_the_data(self):
        said = self.fails("job", roles=PAIR, train={"batch_size": 600})
        self.assertRegex(said, "600")
        self.assertRegex(said, "512")

    def test_data_that_is_not_there(self):
        said = self.refused(train={"data": {"format": "mnist", "path": "nowhere", "shape": None, "examples": None}})
        self.assertRegex(said, r"job.*:\d+:\d+: data: .*nowhere does not exist; `muster data fetch mnist --to")


class NanTest(TrainTest):
    HUGE = {"optimizer": {"type": "sgd", "learning_rate": 1000}}

    def test_the_job_stops_and_names_the_position(self):
        said = self.fails("job", train=self.HUGE)
        self.assertRegex(said, r"(chief|worker):\d, step \d+: the (loss is|gradient of \S+ is not finite)")
        self.assertIn("learning_rate", said)

    def test_with_allreduce_the_culprit_is_named(self):
        said = self.fails("job", roles={"chief": {}, "worker": 1}, train=self.HUGE)
        self.assertRegex(said, r"(chief|worker):\d, step \d+: the (loss is|gradient of \S+ is not finite)")

    def test_by_policy_it_continues(self):
        job = self.train("job", roles=PAIR, train=dict(self.HUGE, nan_guard="skip", steps=30))
        self.assertEqual(self.bytes_of("job")[0], 30)
        self.assertRegex(self.text(job, "chief:0"), r"chief:0, step \d+: .*; skipping")

    def test_by_policy_with_allreduce(self):
        self.train("job", roles={"chief": {}, "worker": 1}, train=dict(self.HUGE, nan_guard="skip", steps=30))
        self.assertEqual(self.bytes_of("job")[0], 30)

    def test_without_the_guard_training_continues(self):
        self.train("job", roles=ONE, train=dict(self.HUGE, nan_guard="off", steps=30))
        self.assertEqual(self.bytes_of("job")[0], 30)


class CheckpointTest(TrainTest):
    def damage(self, name, step):
        path = next(self.checkpoint(name, step).glob("model-*.safetensors"))
        damaged = bytearray(path.read_bytes())
        damaged[-5] ^= 1
        path.write_bytes(damaged)

    def test_a_damaged_checkpoint_is_skipped(self):
        self.train("job", roles=PAIR, train=SHORT)
        whole = self.bytes_of("job")
        self.damage("job", 20)
        job = self.train("job", roles=PAIR, train=SHORT)
        said = self.text(job, "chief:0")
        self.assertRegex(said, r"skipped a checkpoint: .*step-000000020")
        self.assertIn("restored step 10", said)
        self.assertEqual(self.bytes_of("job"), whole)

    def test_a_partial_checkpoint_is_skipped(self):
        self.train("job", roles=PAIR, train=SHORT)
        whole = self.bytes_of("job")
        (self.checkpoint("job", 20) / "manifest.json").unlink()
        job = self.train("job", roles=PAIR, train=SHORT)
        self.assertIn("restored step 10", self.text(job, "chief:0"))
        self.assertEqual(self.bytes_of("job"), whole)

    def test_all_of_them_are_damaged(self):
        self.train("job", roles=ONE, train=SHORT)
        whole = self.bytes_of("job")
        for folder in (self.model_dir("job") / "checkpoints").glob("step-*"):
            (folder / "manifest.json").write_text("{")
        job = self.train("job", roles=ONE, train=SHORT)
        self.assertRegex(self.text(job, "chief:0"), "skipped a checkpoint")
        self.assertEqual(self.bytes_of("job"), whole)

    def test_a_requested_checkpoint_that_is_damaged(self):
        self.train("job", roles=PAIR, train={"steps": 60, "checkpoint": {"every_steps": 20}})
        self.damage("job", 20)
        result = self.muster("resume", "job", "--from", "20", check=False)
        self.assertEqual(result.returncode, 1)
        self.assertRegex(result.stdout + result.stderr, "step-000000020.*damaged")
        self.assertEqual(int(self.checkpoint("job").name[5:]), 60)
        self.assertEqual(list(self.model_dir("job").glob("superseded-*")), [])

    def test_another_model(self):
        self.train("job", roles=ONE, train=SHORT)
        for roles in (PAIR, {"chief": {}, "worker": 1}):
            # More steps: with none left to train, other settings are rejected before the values are read.
            said = self.fails("job", roles=roles, train=dict(SHORT, model="logistic", steps=1000))
            self.assertIn("holds another model", said)
            self.assertIn("fc1.weight", said)

    def test_killed_while_it_saves(self):
        """The next chief removes the leftovers of a killed one."""
        job = self.launch("job", roles=PAIR, train={"checkpoint": {"every_steps": 2}})
        for step in (20, 60):
            self.wait_step(job, step)
            self.kill_task(job, "chief:0")
        self.succeed(job)
        names = sorted(path.name for path in (self.model_dir("job") / "checkpoints").iterdir())
        self.assertEqual([name for name in names if not re.fullmatch(r"step-\d{9}|best\.json|\.lock", name)], [])
        self.assertEqual(self.bytes_of("job")[0], 200)


class ModelDirTest(TrainTest):
    def test_two_jobs_in_one_model_dir(self):
        first = self.launch("first", roles=PAIR, train={"steps": 10 ** 7})
        self.wait_step(first, 10)
        shared = str(self.model_dir("first"))
        said = self.fails("second", roles=ONE, model_dir=shared, train=SHORT)
        self.assertRegex(said, f"{re.escape(shared)}: job {first}, process .* trains in this model dir; stop it first")
        self.muster("stop", first)
        self.train("third", roles=ONE, model_dir=shared, train=SHORT)  # already past its steps: nothing to do


class DiskTest(TrainTest):
    def fill(self, path):
        with open(path, "wb", buffering=0) as filler, self.assertRaises(OSError):
            while True:
                filler.write(b"x" * 4096)

    def test_training_continues_while_the_disk_is_full(self):
        self.mount(self.model_dir("job"), "8m")
        job = self.launch("job", roles=PAIR, train={"steps": 600, "checkpoint": {"every_steps": 20, "keep": 1},
                                                       "summary": {"every_steps": 1}})
        self.wait_checkpoint("job", 20)
        filler = self.model_dir("job") / "filler"
        self.fill(filler)
        self.wait_text(job, "chief:0", "could not be saved: .*[Nn]o space left.*; training continues")
        self.wait_text(job, "chief:0", "stopped writing summaries: .*[Nn]o space left.*; training continues")
        filler.unlink()
        self.succeed(job)
        self.assertEqual(self.bytes_of("job")[0], 600)

    def test_training_continues_when_an_evaluation_cannot_be_stored(self):
        self.model_dir("job").mkdir(parents=True)
        (self.model_dir("job") / "eval").write_text("where a folder should be")
        job = self.train("job", roles=ONE, train={"steps": 60, "checkpoint": {"every_steps": 20}})
        self.assertRegex(self.text(job, "chief:0"), "the evaluation of step 20 could not be saved: .*eval")
        self.assertEqual(self.bytes_of("job")[0], 60)

    def test_the_last_checkpoint_must_be_saved(self):
        self.mount(self.model_dir("job"), "8m")
        self.fill(self.model_dir("job") / "filler")
        said = self.fails("job", roles=PAIR, train=SHORT)
        self.assertRegex(said, "the last checkpoint could not be saved: .*[Nn]o space left")
        self.assertFalse(any((self.model_dir("job") / "checkpoints").glob("step-*")))


    def test_a_file_size_limit_is_a_full_disk(self):
        limited = self.write("limited", f"""\
            #!/bin/sh
            ulimit -f 32  # 16 KiB
            exec {training.TRAINER} "$@"
            """)
        limited.chmod(0o755)
        environment = self.env_of(self.job("job", roles=ONE, train=SHORT), "chief")
        with mock.patch("training.TRAINER", str(limited)):
            said = self.expect_exit(self.by_hand(environment), 1)
        self.assertRegex(said, "the last checkpoint could not be saved: .*File too large")


class PeerTest(TrainTest):
    """Manually started tasks over TCP, with peers that are missing, wrong or unauthorized."""

    def setUp(self):
        super().setUp()
        self.ports = free_ports(5)
        self.roles = {"chief": {"port": self.ports[0]}, "worker": {"replicas": 1, "port": self.ports[1]},
                      "ps": {"replicas": 1, "port": self.ports[2]}}

    def file(self, **changes):
        return self.job("hand", roles=self.roles, **changes)

    def start(self, file, role, index=0, **more):
        return self.by_hand(self.env_of(file, role, index, **more))

    def test_a_ps_of_another_cluster(self):
        mine = self.file(train=SHORT)
        other = self.job("other", roles=dict(self.roles, worker={"replicas": 2, "port": self.ports[3]}), train=SHORT)
        server = self.start(other, "ps")
        chief = self.start(mine, "chief")
        said = self.expect_exit(chief, 1)
        self.assertIn("another cluster", said)
        self.assertNotIn(f":{self.ports[3]}", said)  # only members, and the server's own log, receive the cluster's addresses
        wait_until(lambda: f":{self.ports[3]}" in server.output(), "the server logs the refusal")
        self.assertIsNone(server.poll())

    def test_two_tasks_of_the_same_index(self):
        file = self.file(train={"steps": 10 ** 7})
        for role in ("ps", "chief"):
            self.start(file, role)
        first = self.start(file, "worker")
        wait_until(lambda: "joined" in first.output(), "the first has joined")
        second = self.start(file, "worker", MUSTER_START_TIMEOUT="2")
        said = self.expect_exit(second, 1)
        self.assertRegex(said, f"worker:0 is taken by process {first.pid} on")
        self.assertIsNone(first.poll())

    def test_garbage_on_the_port(self):
        file = self.file(train={"steps": 300})
        server = self.start(file, "ps")
        wait_until(lambda: "serving at" in server.output(), "the ps serves")
        request = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"
        for garbage in (os.urandom(70000), request, b"", b"\0" * 100000, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + os.urandom(999)):
            with socket.create_connection(("127.0.0.1", self.ports[2])) as stranger:
                try:
                    stranger.sendall(garbage)
                except OSError:
                    pass  # the server closed the connection
        others = [self.start(file, "chief"), self.start(file, "worker")]
        for process in (*others, server):
            self.expect_exit(process, 0)
        self.assertEqual(self.bytes_of("hand")[0], 300)

    def test_a_missing_ps(self):
        file = self.file(train=SHORT)
        for role in ("chief", "worker"):
            said = self.expect_exit(self.start(file, role, MUSTER_START_TIMEOUT="1"), 1)
            self.assertRegex(said, f"timed out after 1s waiting for ps:0 .*{self.ports[2]}")

    def test_a_missing_chief(self):
        file = self.file(train=SHORT)
        self.start(file, "ps")
        said = self.expect_exit(self.start(file, "worker", MUSTER_START_TIMEOUT="1"), 1)
        self.assertRegex(said, "timed out after 1s waiting for .*chief")

    def test_a_chief_that_does_not_come_back(self):
        file = self.file(train={"steps": 10 ** 7})
        server = self.start(file, "ps", MUSTER_PEER_TIMEOUT="3", MUSTER_START_TIMEOUT="1")
        chief = self.start(file, "chief")
        worker = self.start(file, "worker", MUSTER_PEER_TIMEOUT="2")
        wait_until(lambda: "step 10/" in chief.output(), "the chief is at work")
        chief.kill()
        self.assertIn("timed out after 2s waiting for chief:0", self.expect_exit(worker, 138))
        self.assertIn("no task was connected to ps:0 for 4s", self.expect_exit(server, 138))

    def test_a_ps_that_does_not_come_back(self):
        file = self.file(train={"steps": 10 ** 7})
        server = self.start(file, "ps")
        others = [self.start(file, role, MUSTER_PEER_TIMEOUT="8") for role in ("chief", "worker")]
        wait_until(lambda: "step 10/" in others[0].output(), "the chief is at work")
        server.kill()
        for process in others:
            self.assertRegex(self.expect_exit(process, 138), r"lost contact with ps:0 .*timed out after 8s")
        # The same holds for the next attempt.
        again = self.start(file, "worker", MUSTER_START_TIMEOUT="1", MUSTER_ATTEMPT="1")
        self.assertRegex(self.expect_exit(again, 138), "timed out after 1s waiting for ps:0")

    def test_a_missing_peer_of_allreduce(self):
        self.roles.pop("ps")
        file = self.file(train=SHORT)
        said = self.expect_exit(self.start(file, "chief", MUSTER_START_TIMEOUT="1"), 1)
        self.assertIn("timed out after 1s waiting for worker:0", said)
        said = self.expect_exit(self.start(file, "worker", MUSTER_START_TIMEOUT="1"), 1)
        self.assertIn("timed out after 1s waiting for chief:0", said)

    def test_the_start_timeout_of_the_job_reaches_the_tasks(self):
        job = self.launch("job", roles=dict(PAIR, worker={"replicas": 1, "command": "sleep 600"}),
                          train=SHORT, policies={"start_timeout": "7s"})
        self.wait_state(job, "Running")
        self.assertIn(b"MUSTER_START_TIMEOUT=7", self.environment(job, "ps:0"))

    def environment(self, job, task):
        with open(f"/proc/{self.pids(job)[task]}/environ", "rb") as file:
            return file.read().split(b"\0")


class WaitTest(TrainTest):
    """A waiting task logs the tasks that it waits for."""

    def test_a_worker_that_hangs(self):
        job = self.launch("job", train={"steps": 10 ** 7})
        self.wait_step(job, 10)
        pid = self.freeze(job, "worker:1")
        self.wait_text(job, "chief:0", r"waiting for worker:1\n", timeout=30)
        kill(pid, signal.SIGCONT)

    def test_a_worker_of_allreduce_that_hangs(self):
        job = self.launch("job", roles={"chief": {}, "worker": 1}, train={"steps": 10 ** 7})
        self.wait_step(job, 10)
        pid = self.freeze(job, "worker:0")
        self.wait_text(job, "chief:0", r"waiting for worker:0\n", timeout=30)
        kill(pid, signal.SIGCONT)


class SilentServerTest(TrainTest):
    """A ps that exists and does not respond: a suspended process, a hanging machine."""

    LONG = {"steps": 1000, "checkpoint": {"every_steps": 200}}
    SHORT_OF_PATIENCE = {"MUSTER_PEER_TIMEOUT": "8"}
    # The other ps waits longer than restarted tasks do.
    ROLES = {"chief": {"env": SHORT_OF_PATIENCE}, "worker": {"replicas": 2, "env": SHORT_OF_PATIENCE}, "ps": 2}

    def hang(self, name, server, **policies):
        """Starts a job, suspends one of its ps during training, and returns the job's id."""
        job = self.launch(name, roles=self.ROLES, train=self.LONG, policies=dict(policies, stop_grace="1s"))
        self.wait_step(job, 50)
        self.freeze(job, server)
        return job

    def test_the_job_restarts_and_ends_with_the_same_bytes(self):
        self.succeed(self.launch("plain", roles=self.ROLES, train=self.LONG), timeout=300)
        job = self.hang("hung", "ps:1", restart_scope="job", max_restarts=3)
        self.succeed(job, timeout=300)
        self.assertRegex(str(self.events(job)), r"exit code 138 \(128 \+ SIGUSR1\): lost contact with ps:1 ")
        self.assertEqual(self.bytes_of("hung"), self.bytes_of("plain"))

    def test_when_it_stays_silent_the_restarts_are_used_and_the_ps_is_named(self):
        job = self.hang("hung", "ps:0", max_restarts=1, start_timeout="20s")
        shown = self.wait_state(job, "Failed", timeout=90)
        first = shown["failure"]["first"]
        self.assertNotEqual(first["task"], "ps:0")
        self.assertRegex(first["cause"], r"exit code 138 .*: timed out after 20s waiting for ps:0 \(.*no response")
        self.assertRegex(str(self.events(job)), r"exit code 138 .*: lost contact with ps:0 \(.*no response.*timed out after 8s")
        restarted = [task["task"] for task in shown["tasks"] if task["restarts"]]
        self.assertIn(first["task"], restarted)

    def test_it_answers_again_in_time(self):
        self.succeed(self.launch("plain", train=self.LONG), timeout=300)
        job = self.launch("hung", train=self.LONG)
        self.wait_step(job, 50)
        pid = self.freeze(job, "ps:1")
        self.wait_text(job, "chief:0", r"waiting for ps:1 \(.*no response", timeout=30)
        kill(pid, signal.SIGCONT)
        self.assertEqual({task["restarts"] for task in self.succeed(job, timeout=300)["tasks"]}, {0})
        self.assertEqual(self.bytes_of("hung"), self.bytes_of("plain"))


if __name__ == "__main__":
    unittest.main()
