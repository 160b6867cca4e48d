"""Training with data and model dir in every storage, with the same results as in a local folder."""
import json
import re
import signal
import unittest

import storages
from digits import write_digits
from remote_training import RemoteTest
from support import kill, wait_until

PAIR = {"chief": {}, "worker": 1, "ps": 1}
LONG = {"steps": 600}


class MnistTest(RemoteTest):
    def test_file(self):
        self.train_example(self.use("file"))

    def test_s3(self):
        self.train_example(self.use("s3"))

    def test_gs(self):
        self.train_example(self.use("gs"))

    def test_hdfs(self):
        self.train_example(self.use("hdfs"))


class SameTest(RemoteTest):
    """The weights do not depend on the storage or on faults during training."""

    def setUp(self):
        super().setUp()
        self.train("local", roles=PAIR, train=LONG)
        self.expected = self.weights(str(self.model_dir("local")))

    def disturb(self, storage, disturbance):
        place = f"{self.use(storage)}/run"
        job = self.launch("job", roles=PAIR, model_dir=place, train=LONG)
        wait_until(lambda: self.entries(place), "a checkpoint is there")
        disturbance(job)
        self.assertEqual(self.weights(place), self.expected)
        self.assertLessEqual(len(self.entries(place)), 6)  # keep, and the best one
        self.assertEqual(self.left_here(), [])

    def stop_and_resume(self, job):
        self.muster("stop", job)
        self.muster("resume", job)

    def kill_chief(self, job):
        self.kill_task(job, "chief:0")
        self.succeed(job)

    def test_stopped_and_resumed_on_s3(self):
        self.disturb("s3", self.stop_and_resume)

    def test_stopped_and_resumed_on_gs(self):
        self.disturb("gs", self.stop_and_resume)

    def test_stopped_and_resumed_on_hdfs(self):
        self.disturb("hdfs", self.stop_and_resume)

    def test_the_chief_is_killed_on_s3(self):
        self.disturb("s3", self.kill_chief)

    def test_from_an_earlier_step(self):
        place = f"{self.use('s3')}/run"
        job = self.train("job", roles=PAIR, model_dir=place, train=LONG)
        first = min(self.entries(place))
        self.assertLess(first, LONG["steps"])
        self.muster("resume", "--from", first, job)
        self.assertEqual(self.weights(place), self.expected)
        self.assertTrue(any(name.startswith(f"superseded-1/step-{LONG['steps']:09}/") for name in self.names(place)))

    def test_fresh(self):
        place = f"{self.use('s3')}/run"
        other = dict(LONG, optimizer={"type": "sgd", "learning_rate": 0.05})
        self.train("job", roles=PAIR, model_dir=place, train=other)
        file = self.job("job", roles=PAIR, model_dir=place, train=LONG)
        self.assertIn(f"nothing was trained: {place} was trained to step", self.muster("run", file, check=False).stderr)
        self.muster("run", "--fresh", file)
        self.assertEqual(self.weights(place), self.expected)
        names = self.names(place)
        self.assertIn("superseded-1/eval/latest.json", names)
        self.assertTrue(any(name.startswith(f"superseded-1/step-{LONG['steps']:09}/") for name in names))
        self.assertFalse(any(name.startswith("superseded-2/") for name in names))
        self.assertEqual(self.left_here(), [])


class LogTest(RemoteTest):
    def test_logs_are_there_when_the_job_is_over(self):
        place = self.use("s3")
        for command, state in (("echo hello; exit 3", "Failed"), ("echo hello", "Succeeded")):
            job = self.run_detached(json.dumps({"name": "job", "model_dir": f"{place}/run", "roles": {"worker": {"command": command}}}))
            self.wait_state(job, state)
            log = f"{place}/run/logs/{job}/worker-0.log"
            wait_until(lambda: self.muster("storage", "cat", log, check=False).stdout == "hello\n", f"{log} is there")


class SecretTest(RemoteTest):
    def test_no_secret_is_kept_or_shown(self):
        place = f"{self.use('s3')}/run"
        secret = self.env["AWS_SECRET_ACCESS_KEY"].encode()
        job = self.launch("job", roles=PAIR, model_dir=place, train={"steps": 10 ** 7})
        self.wait_step(job, 10)
        for pid in self.pids(job).values():
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                self.assertNotIn(secret, file.read())
        self.muster("stop", job)
        shown = self.muster("show", job).stdout + self.muster("logs", job).stdout
        self.assertNotIn(secret.decode(), shown)
        for folder in (self.home, self.dir / "cache"):
            for path in filter(lambda path: path.is_file(), folder.rglob("*")):
                self.assertNotIn(secret, path.read_bytes(), path)


class RecordTest(RemoteTest):
    FEATURES = {"image": {"type": "uint8", "shape": [28, 28]}, "label": "int64"}

    def test_records_are_inspected_and_used_in_place(self):
        place = self.use("s3")
        write_digits(self.dir / "digits")
        self.muster("data", "convert", "digits", "--to", "records", "--shards", "3")
        self.muster("storage", "cp", "-r", "records", f"{place}/records")
        self.assertIn("640", self.muster("data", "inspect", f"{place}/records/train-*").stdout)
        self.muster("data", "verify", f"{place}/records")
        data = {"format": "tfrecord", "path": {"train": f"{place}/records/train-*", "test": f"{place}/records/test-*"},
                "features": self.FEATURES, "examples": None, "shape": None}
        self.train("there", roles=PAIR, train={"model": "cnn", "steps": 20, "data": data})
        data["path"] = "records"
        self.train("here", roles=PAIR, train={"model": "cnn", "steps": 20, "data": data})
        self.assertEqual(self.bytes_of("there"), self.bytes_of("here"))

    def test_a_pattern_that_matches_nothing(self):
        place = self.use("s3")
        data = {"format": "tfrecord", "path": f"{place}/none-*", "features": self.FEATURES, "examples": None, "shape": None}
        self.assertIn(f"{place}/none-*: no file matches", self.fails("job", roles={"chief": {}}, train={"model": "cnn", "data": data}))


class FaultTest(RemoteTest):
    def whole_here(self):
        """Returns the steps of the complete checkpoints on this machine."""
        found = (self.dir / "cache" / "runs").glob("*-chief-0/checkpoints/step-*/manifest.json")
        return {int(path.parent.name[5:]) for path in found if path.parent.name[5:].isdigit()}

    def test_training_survives_a_storage_outage(self):
        """Training continues, failed uploads are logged, and the last checkpoint is stored."""
        place = f"{self.use('s3')}/run"
        job = self.launch("job", roles=PAIR, model_dir=place, train={"steps": 600})
        wait_until(lambda: self.entries(place), "a checkpoint is there")
        server, = self.servers
        kill(server, signal.SIGSTOP)
        self.wait_step(job, 590)
        kill(server, signal.SIGCONT)
        self.succeed(job)
        self.assertEqual(max(self.entries(place)), 600)

    def test_the_chief_is_killed_while_the_last_checkpoint_is_sent(self):
        """The servers hold the last step, and the next chief has nothing to train."""
        place = f"{self.use('s3')}/run"
        job = self.launch("job", roles=PAIR, model_dir=place, train={"steps": 2000, "checkpoint": {"every_steps": 10000}})
        self.wait_step(job, 10)
        kill(self.servers[0], signal.SIGSTOP)
        wait_until(lambda: self.whole_here() == {2000}, "the last checkpoint is whole here")
        self.kill_task(job, "chief:0")
        kill(self.servers[0], signal.SIGCONT)
        self.succeed(job)
        self.assertEqual(set(self.entries(place)), {2000})
        self.assertEqual(self.left_here(), [])

    def test_the_next_run_sends_failed_uploads(self):
        place = f"{self.use('s3')}/run"
        endless = {"steps": 10 ** 7}
        job = self.launch("job", roles=PAIR, model_dir=place, train=endless)
        wait_until(lambda: self.entries(place), "a checkpoint is there")
        there = max(self.entries(place))
        kill(self.servers[0], signal.SIGKILL)
        self.wait_text(job, "chief:0", r"could not be saved: .*(\n.*)*could not be saved: ", timeout=90)
        self.muster("stop", job)
        unsent = max(self.whole_here())
        self.assertLess(there, unsent)
        self.fails("job", roles={"chief": {}}, model_dir=place, train=endless)  # the server does not run yet
        self.assertEqual(max(self.whole_here()), unsent)
        storages.use_s3(self, port=int(self.env["AWS_ENDPOINT_URL"].rsplit(":", 1)[1]))
        resumed = self.launch("job", roles=PAIR, model_dir=place, train=endless)
        self.wait_text(resumed, "chief:0", f"sending step {unsent}, which an earlier run could not")
        self.wait_text(resumed, "chief:0", f"restored step {unsent} ")
        self.assertIn(unsent, self.entries(place))
        self.muster("stop", resumed)

    def test_the_best_of_an_earlier_run_stays_the_best(self):
        place = f"{self.use('s3')}/run"
        self.train("job", roles={"chief": {}}, model_dir=place, train={"steps": 20, "checkpoint": {"every_steps": 20, "keep": 1}})
        self.write("best.json", json.dumps({"step": 20, "metric": "accuracy", "value": 2}))
        self.muster("storage", "cp", "best.json", f"{place}/checkpoints/best.json")
        self.train("job", roles={"chief": {}}, model_dir=place, train={"steps": 60, "checkpoint": {"every_steps": 20, "keep": 1}})
        self.assertEqual({step: entry["best"] for step, entry in self.entries(place).items()}, {20: True, 60: False})

    def test_copied_data_suffices_without_the_storage(self):
        place = self.use("s3")
        write_digits(self.dir / "digits")
        self.muster("storage", "cp", "-r", "digits", f"{place}/data")
        data = {"format": "mnist", "path": f"{place}/data", "examples": None, "shape": None}
        job = self.launch("job", roles={"chief": {}}, train={"model": "mlp", "steps": 400, "data": data})
        self.wait_checkpoint("job", 40)
        kill(self.servers[0], signal.SIGKILL)
        self.succeed(job)

    def test_one_damaged_checkpoint_does_not_hide_the_others(self):
        place = f"{self.use('s3')}/run"
        self.train("job", roles={"chief": {}}, model_dir=place, train={"steps": 60, "checkpoint": {"every_steps": 20, "keep": 3}})
        name = "checkpoints/step-000000020/model-00001-of-00001.safetensors"
        self.assertIn(name, self.names(place))
        self.muster("storage", "cp", self.write("junk", "junk"), f"{place}/{name}")
        result = self.muster("checkpoint", "verify", place, check=False)
        self.assertEqual(result.returncode, 1)
        self.assertRegex(result.stdout, rf"step 20: damaged\n  .*{re.escape(name)}.*\n(step 40: ok\n)?step 60: ok\n")
        job = self.train("next", roles={"chief": {}}, train={"steps": 20, "warm_start": place})
        self.assertNotRegex(self.text(job, "chief:0"), "no tensor")

    def test_a_missing_bucket(self):
        self.use("s3")
        said = self.fails("job", roles={"chief": {}}, model_dir="s3://nowhere/run", train={"steps": 20})
        self.assertIn("there is no bucket 'nowhere'", said)

    def test_a_warm_start_and_a_model_from_elsewhere(self):
        place = self.use("s3")
        self.train("first", roles={"chief": {}}, model_dir=f"{place}/first", train={"steps": 20})
        job = self.train("second", roles={"chief": {}}, train={"steps": 20, "warm_start": f"{place}/first"})
        self.assertNotRegex(self.text(job, "chief:0"), "no tensor")


if __name__ == "__main__":
    unittest.main()
