"""Same seed, `sync` or `allreduce`: the same bytes, whatever happens to the tasks during training."""
import json
import os
import signal
import unittest

from training import TrainTest

ALLREDUCE = {"roles": {"chief": {}, "worker": 1}}
PAIR = {"roles": {"chief": {}, "worker": 1, "ps": 1}}

# A model with dropout, and one with batch normalization: its running means are not trained, but saved.
DROPOUT = """
import sys, torch
torch.manual_seed(1)
net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(36, 64), torch.nn.ReLU(), torch.nn.Dropout(0.3),
                          torch.nn.Linear(64, 10))
torch.jit.script(net).save(sys.argv[1])
"""
NORM = """
import sys, torch
torch.manual_seed(1)
net = torch.nn.Sequential(torch.nn.Conv2d(1, 8, 3), torch.nn.BatchNorm2d(8), torch.nn.ReLU(),
                          torch.nn.Flatten(), torch.nn.Linear(128, 10))
torch.jit.script(net).save(sys.argv[1])
"""
TABLE = {"model": "embedding",
         "data": {"format": "synthetic", "kind": "tokens", "examples": 512, "vocabulary": 300, "shape": None},
         "evaluate": {"split": "test"}}


class Determinism(TrainTest):
    def compare(self, disturb, **changes):
        """Runs a job twice, once with faults. Both must produce the same bytes. Returns the id of the run with faults."""
        plain = self.launch("plain", **changes)
        other = self.launch("other", **changes)
        disturb(other)
        self.succeed(plain)
        self.succeed(other)
        self.assertEqual(self.bytes_of("other"), self.bytes_of("plain"))
        return other

    def kill_at(self, task, step=60):
        def disturb(job):
            self.wait_step(job, step)
            self.kill_task(job, task)

        return disturb

    def killed(self, task, **changes):
        job = self.compare(self.kill_at(task), **changes)
        self.assertEqual(self.restarts(job, task), 1, self.events(job))
        return job


class SyncTest(Determinism):
    def test_two_runs(self):
        self.compare(lambda job: None)

    def test_tasks_that_pause_at_random(self):
        def disturb(job):
            self.wait_state(job, "Running", "Succeeded")
            self.stutter(job, ["chief:0", "worker:0", "worker:1", "ps:0", "ps:1"], seed=3)

        self.compare(disturb)

    def test_stopped_and_resumed(self):
        self.train("plain")
        job = self.launch("other")
        self.wait_checkpoint("other", 40)
        self.muster("stop", "--yes", job)
        self.assertLess(self.bytes_of("other")[0], 200)
        self.muster("resume", job)
        self.assertEqual(self.bytes_of("other"), self.bytes_of("plain"))

    def test_a_worker_is_killed(self):
        self.killed("worker:1")

    def test_the_chief_is_killed(self):
        self.killed("chief:0")

    def test_a_ps_is_killed(self):
        def disturb(job):
            self.wait_checkpoint("other", 40)
            self.kill_task(job, "ps:1")

        job = self.compare(disturb)
        self.assertEqual(self.restarts(job, "ps:1"), 1)
        self.assertIn("restored step", self.text(job, "chief:0"))

    def test_a_ps_is_killed_before_the_first_checkpoint(self):
        # Without intermediate checkpoints a step takes less than a millisecond: enough steps must be left for the kill.
        job = self.compare(self.kill_at("ps:0", 10), **PAIR, train={"steps": 2000, "checkpoint": {"every_steps": 10000}})
        self.assertEqual(self.restarts(job, "ps:0"), 1)

    def test_the_chief_is_killed_while_the_last_step_waits_to_be_saved(self):
        """The workers have trained to the end; the next chief must save nevertheless."""
        def disturb(job):
            self.wait_step(job, 200)
            self.kill_task(job, "chief:0")

        # Evaluation by the chief takes a while at the end.
        slow = {"data": {"examples": 20000}, "evaluate": {"split": "train", "batch_size": 8},
                "checkpoint": {"every_steps": 150}}
        job = self.compare(disturb, **PAIR, train=slow)
        self.assertEqual(self.restarts(job, "chief:0"), 1)
        self.assertIn("(step 200, ", self.text(job, "chief:0"))

    def test_the_evaluator_is_killed(self):
        job = self.compare(self.kill_at("evaluator:0", 20),
                           roles={"chief": {}, "worker": 1, "ps": 1, "evaluator": {}})
        self.assertEqual(self.restarts(job, "evaluator:0"), 1)
        self.assertEqual(json.loads((self.model_dir("other") / "eval" / "latest.json").read_text())["step"], 200)
        self.assertIn("(step 200, ", self.text(job, "evaluator:0"))

    def test_dropout_and_a_killed_worker(self):
        self.python_torch(DROPOUT, "net.pt")
        self.killed("worker:0", **PAIR, train={"model": "./net.pt"})

    def test_a_table_of_embeddings_and_a_killed_worker(self):
        self.killed("worker:0", roles={"chief": {}, "worker": 1, "ps": 2}, train=TABLE)

    def test_buffers_and_a_killed_chief(self):
        self.python_torch(NORM, "net.pt")
        job = self.killed("chief:0", **PAIR, train={"model": "./net.pt"})
        index = json.loads((self.checkpoint("other") / "model.safetensors.index.json").read_text())
        self.assertIn("1.running_mean", index["weight_map"])
        self.assertEqual(self.task(job, "worker:0")["attempt"], 1)

    def test_accumulated_gradients_and_a_killed_worker(self):
        self.killed("worker:0", **PAIR, train={"accumulate": 2, "clip_norm": 1.0})

    def test_accumulated_gradients_of_a_table(self):
        """Two batches of 8 produce the same step as one of 16, including table rows."""
        one = {"roles": {"chief": {}, "ps": 1}}
        self.launch("whole", **one, train=dict(TABLE, batch_size=16, steps=30, optimizer={"type": "sgd"}))
        self.train("parts", **one, train=dict(TABLE, batch_size=8, steps=30, accumulate=2, optimizer={"type": "sgd"}))
        self.succeed("whole")
        losses = [json.loads((self.model_dir(name) / "eval" / "latest.json").read_text())["metrics"]
                  for name in ("whole", "parts")]
        for (_, whole), (_, parts) in zip(*losses):
            self.assertAlmostEqual(whole, parts, places=4)


class ClusterTest(Determinism):
    """The result does not depend on the number of servers."""

    def test_one_or_two_ps(self):
        one = self.launch("one", roles={"chief": {}, "worker": 1, "ps": 1})
        self.train("two", roles={"chief": {}, "worker": 1, "ps": 2})
        self.succeed(one)
        self.assertEqual(self.bytes_of("one"), self.bytes_of("two"))

    def test_resumed_with_another_number_of_ps(self):
        roles = {"chief": {}, "worker": 1, "ps": 1}
        self.launch("plain", roles=roles)
        self.train("other", roles=roles, train={"steps": 80})
        self.train("other", roles=dict(roles, ps=3))
        self.succeed("plain")
        self.assertEqual(self.bytes_of("other"), self.bytes_of("plain"))

    def test_resumed_with_another_number_of_workers(self):
        self.train("grown", roles={"chief": {}, "worker": 1, "ps": 1}, train={"steps": 80})
        before = self.state("grown")
        self.assertEqual((before["cursors"], before["data"]), ([80, 80], {"base": 0, "first": 0}))
        self.train("grown", roles={"chief": {}, "worker": 2, "ps": 1})
        after = self.state("grown")
        self.assertEqual(self.bytes_of("grown")[0], 200)
        # It has trained 80 steps of 2 tasks with 8 examples each.
        self.assertEqual(after["data"], {"base": 80 * 2 * 8, "first": 80})
        self.assertEqual(after["cursors"], [200, 200, 200])


class AllReduceTest(Determinism):
    def test_two_runs(self):
        self.compare(lambda job: None, **ALLREDUCE)

    def test_a_worker_is_killed(self):
        job = self.compare(self.kill_at("worker:0"), **ALLREDUCE, policies={"restart_scope": "job"})
        self.assertEqual((self.restarts(job, "worker:0"), self.restarts(job, "chief:0")), (1, 1))

    def test_the_chief_is_killed_and_the_tasks_restart_one_by_one(self):
        job = self.compare(self.kill_at("chief:0"), **ALLREDUCE)
        self.assertEqual((self.restarts(job, "worker:0"), self.restarts(job, "chief:0")), (1, 1))

    def test_a_single_process_is_killed(self):
        self.killed("chief:0", roles={"chief": {}}, train={"steps": 2000, "checkpoint": {"every_steps": 300}})

    def test_buffers(self):
        self.python_torch(NORM, "net.pt")
        self.compare(self.kill_at("worker:0"), **ALLREDUCE, policies={"restart_scope": "job"},
                     train={"model": "./net.pt"})

    def test_a_table_of_embeddings(self):
        self.compare(self.kill_at("worker:0"), **ALLREDUCE, policies={"restart_scope": "job"}, train=TABLE)

    def test_stopped_and_resumed(self):
        self.train("plain", **ALLREDUCE)
        job = self.launch("other", **ALLREDUCE)
        self.wait_checkpoint("other", 40)
        self.muster("stop", "--yes", job)
        self.muster("resume", job)
        self.assertEqual(self.bytes_of("other"), self.bytes_of("plain"))


class ExactStepsTest(TrainTest):
    """Async tasks run in any order; the number of steps is exact nevertheless."""

    def exact(self, strategy, **more):
        # No intermediate checkpoint: while the chief evaluates it, the other tasks would do all remaining steps.
        job = self.launch("job", train=dict(strategy=strategy, steps=2001, checkpoint={"every_steps": 10 ** 6}, **more))
        self.wait_step(job, 20)
        self.kill_task(job, "worker:1")
        self.succeed(job)
        self.assertEqual(self.restarts(job, "worker:1"), 1)
        state = self.state("job")
        self.assertEqual((self.bytes_of("job")[0], state["step"], sum(state["cursors"])), (2001, 2001, 2001))

    def test_async(self):
        self.exact("async")

    def test_bounded(self):
        self.exact("bounded", staleness=2)

    def test_backup_tasks_do_without_one_that_hangs(self):
        job = self.launch("job", train={"strategy": "sync", "backup_tasks": 1}, policies={"finish_grace": "1s", "stop_grace": "1s"})
        self.wait_step(job, 20)
        self.freeze(job, "worker:1")
        shown = self.wait_state(job, "Succeeded", "Failed", timeout=60)
        self.assertEqual(shown["state"], "Succeeded")
        self.assertEqual(self.bytes_of("job")[0], 200)

    def test_backup_tasks_catch_up(self):
        job = self.launch("job", train={"strategy": "sync", "backup_tasks": 1})
        self.wait_step(job, 20)
        pid = self.freeze(job, "worker:1")
        self.wait_step(job, 80)
        os.kill(pid, signal.SIGCONT)
        self.succeed(job)
        self.assertEqual(self.bytes_of("job")[0], 200)


if __name__ == "__main__":
    unittest.main()
