"""muster evaluate, predict and resume of jobs that the built-in trainer runs; the trainer is a script here."""
import json
import os
import shutil
import signal
import subprocess
import unittest

import support
from support import MusterTest, wait_until

WRITER = os.path.join(os.path.dirname(support.MUSTER), "checkpoint_writer")

JOB = """
    name: digits
    roles: {chief: {}, evaluator: {}}
    train:
      model: mlp
      data: {format: synthetic}
      steps: 20
      %s
    """

# Records its arguments; trainer.sh of the test defines the rest.
TRAINER = """#!/bin/sh
{ echo "$@"; pwd; env; } > %(dir)s/called.${MUSTER_ROLE:-by-hand}.new
mv %(dir)s/called.${MUSTER_ROLE:-by-hand}.new %(dir)s/called.${MUSTER_ROLE:-by-hand}
. %(dir)s/trainer.sh
"""


class TrainerTest(MusterTest):
    def setUp(self):
        super().setUp()
        # muster looks for the trainer beside itself first, so the script is there.
        programs = self.dir / "bin"
        programs.mkdir()
        original = support.MUSTER
        self.addCleanup(setattr, support, "MUSTER", original)
        support.MUSTER = shutil.copy(original, programs / "muster")
        (programs / "muster-trainer").write_text(TRAINER % {"dir": self.dir})
        (programs / "muster-trainer").chmod(0o755)
        self.model = self.dir / "runs" / "digits"
        self.trainer("")

    def trainer(self, script):
        self.write("trainer.sh", script)

    def train(self, more=""):
        """Runs a job to its end and returns its id."""
        self.muster("run", self.write("job.yaml", JOB % more))
        return self.jobs()[0]["id"]

    def checkpoints(self, *steps):
        self.model.mkdir(parents=True, exist_ok=True)
        subprocess.run([WRITER, self.model, *map(str, steps)], check=True, timeout=60)

    def called(self, role="by-hand"):
        words, where, *variables = (self.dir / f"called.{role}").read_text().splitlines()
        return words, where, dict(variable.split("=", 1) for variable in variables if "=" in variable)

    def refused(self, *args, code=1):
        result = self.muster(*args, check=False)
        self.assertEqual(result.returncode, code, result.stderr)
        self.assertFalse((self.dir / "called.by-hand").exists())
        return result.stderr


class EvaluateTest(TrainerTest):
    def test_the_trainer_gets_all_settings(self):
        job = self.train()
        self.trainer("echo accuracy 0.99; echo careful >&2")
        elsewhere = self.dir / "elsewhere"
        elsewhere.mkdir()
        env = dict(self.env, TF_CONFIG="{}", OMP_NUM_THREADS="3", MUSTER_ROLE="", MUSTER_RESUME="1")
        result = self.muster("evaluate", "digits", cwd=elsewhere, env=env)
        self.assertEqual((result.stdout, result.stderr), ("accuracy 0.99\n", "careful\n"))
        words, where, variables = self.called()
        self.assertEqual(words, "evaluate --split test --checkpoint latest")
        self.assertEqual(where, str(self.dir))
        folder = self.home / "jobs" / job
        self.assertEqual(variables["MUSTER_TRAIN_CONFIG"], str(folder / "train.json"))
        self.assertEqual(variables["MUSTER_MODEL_DIR"], str(self.model))
        self.assertEqual((variables["MUSTER_JOB_NAME"], variables["MUSTER_JOB_ID"]), ("digits", job))
        self.assertEqual(variables["OMP_NUM_THREADS"], "3")
        for name in ("TF_CONFIG", "MUSTER_RESUME", "MUSTER_ROLE"):
            self.assertNotIn(name, variables)
        self.assertEqual(json.loads((folder / "train.json").read_text())["steps"], 20)

    def test_split_checkpoint_and_json(self):
        self.train("evaluate: {split: valid}")
        self.muster("evaluate", "digits")
        self.assertEqual(self.called()[0], "evaluate --split valid --checkpoint latest")
        self.muster("evaluate", "digits", "--split", "train", "--checkpoint", "best", "--json")
        self.assertEqual(self.called()[0], "evaluate --split train --checkpoint best --json")
        self.muster("evaluate", "digits", "--checkpoint", "500")
        self.assertEqual(self.called()[0], "evaluate --split valid --checkpoint 500")

    def test_predict_writes_to_the_current_directory(self):
        self.train()
        elsewhere = self.dir / "elsewhere"
        elsewhere.mkdir()
        self.muster("predict", "digits", "--to", "out.csv", "--checkpoint", "best", cwd=elsewhere)
        words, where, _ = self.called()
        self.assertEqual(words, f"predict --split test --checkpoint best --to {elsewhere}/out.csv")
        self.assertEqual(where, str(self.dir))
        self.muster("predict", "digits", "--to", "out.csv", "--force", cwd=elsewhere)
        self.assertEqual(self.called()[0], f"predict --split test --checkpoint latest --to {elsewhere}/out.csv --force")

    def test_a_running_job_too(self):
        self.trainer('[ "$1" = evaluate ] || exec sleep 600')
        self.muster("run", "-d", self.write("job.yaml", JOB % ""))
        self.muster("evaluate", "digits")
        self.assertEqual(self.called()[0], "evaluate --split test --checkpoint latest")

    def test_the_exit_code_is_the_trainers(self):
        self.train()
        for script, code in (("exit 2", 2), ("exit 7", 7), ("kill -TERM $$", 128 + signal.SIGTERM)):
            self.trainer(script)
            result = self.muster("evaluate", "digits", check=False)
            self.assertEqual(result.returncode, code)
        self.assertIn("muster-trainer was killed by SIGTERM", result.stderr)

    def test_an_interrupt_reaches_the_trainer(self):
        self.train()
        self.trainer('trap "echo stopping; exit 5" INT; echo ready; while :; do sleep 0.05; done')
        terminal = self.terminal("evaluate", "digits")
        terminal.expect("ready")
        terminal.interrupt()
        self.assertEqual(terminal.wait(), 5)
        self.assertIn("stopping", terminal.output)

    def test_the_trainer_ends_with_muster(self):
        self.train()
        self.trainer("echo $$ > pid; while :; do sleep 0.05; done")
        evaluate = self.start("evaluate", "digits")
        pid = int(self.wait_file("pid"))
        evaluate.kill()
        evaluate.wait()
        wait_until(lambda: not support.is_alive(pid), "the trainer has ended")

    def test_jobs_that_cannot_be_evaluated(self):
        self.assertIn("no job 'digits'", self.refused("evaluate", "digits"))
        self.muster("run", self.write("own.yaml", "name: own\nroles: {worker: {command: 'true'}}\n"))
        for command in (["evaluate", "own"], ["predict", "own", "--to", "x"]):
            self.assertIn("has no `train` section", self.refused(*command))
        self.train()
        (self.dir / "called.chief").unlink()
        for which in ("newest", "-1", "1.5"):
            self.assertIn("--checkpoint must be a step, best or latest",
                          self.refused("evaluate", "digits", f"--checkpoint={which}", code=2))
        self.assertIn("--to FILE", self.refused("predict", "digits", code=2))
        self.refused("evaluate", code=2)

    def test_without_a_trainer(self):
        self.train()
        (self.dir / "bin" / "muster-trainer").unlink()
        self.env["PATH"] = str(self.dir)  # where no other is installed
        self.assertIn("muster-trainer", self.refused("evaluate", "digits"))
        self.assertIn("muster-trainer", self.refused("run", self.dir / "job.yaml"))
        self.assertEqual([job["state"] for job in self.jobs()], ["Succeeded"])


class ResultTest(TrainerTest):
    def test_checkpoints_and_metrics_of_a_job_are_reported(self):
        self.checkpoints(10, 20)
        (self.model / "eval").mkdir()
        (self.model / "eval" / "latest.json").write_text(
            json.dumps({"step": 20, "name": "MNIST", "metrics": [["accuracy", 0.99124], ["loss", 0.03]]}))
        expected = (f"  checkpoints: {self.model}/checkpoints (latest step 20)\n"
                    "  MNIST accuracy: 0.9912 (step 20)\n")
        result = self.muster("run", self.write("job.yaml", JOB % ""))
        self.assertTrue(result.stderr.endswith(expected), result.stderr)
        self.assertIn(expected, self.muster("show", "digits").stdout)

    def test_nothing_is_printed_about_other_jobs(self):
        self.checkpoints(10)
        result = self.muster("run", self.write("own.yaml", f"name: own\nmodel_dir: {self.model}\nroles: {{worker: {{command: 'true'}}}}\n"))
        self.assertNotIn("checkpoints:", result.stderr)


class ResumeTest(TrainerTest):
    def test_the_step_reaches_the_tasks(self):
        self.train()
        self.assertNotIn("MUSTER_RESUME", self.called("chief")[2])
        self.checkpoints(10, 20)
        self.muster("resume", "digits")
        variables = self.called("chief")[2]
        self.assertEqual(variables["MUSTER_RESUME"], "1")
        self.assertNotIn("MUSTER_RESUME_STEP", variables)
        self.muster("resume", "digits", "--from", "10")
        variables = self.called("chief")[2]
        self.assertEqual((variables["MUSTER_RESUME"], variables["MUSTER_RESUME_STEP"]), ("1", "10"))

    def test_a_step_that_is_not_there(self):
        job = self.train()
        self.checkpoints(10, 20)
        (self.model / "checkpoints" / "step-000000020" / "manifest.json").write_text("{")
        self.checkpoints(30)
        self.assertIn("has no checkpoint of step 15; available: 10, 30", self.refused("resume", job, "--from", "15"))
        self.assertIn("step 20 that can be used (", self.refused("resume", job, "--from", "20"))
        self.assertEqual(len(self.jobs()), 1)

    def test_jobs_with_their_own_program_resume_from_any_step(self):
        self.muster("run", self.write("own.yaml", "name: own\nroles: {worker: {command: 'echo $MUSTER_RESUME_STEP'}}\n"))
        self.assertIn("worker:0 | 15", self.muster("resume", "own", "--from", "15").stdout)


if __name__ == "__main__":
    unittest.main()
