"""muster compare: parameters and metrics of the built-in trainer, of programs of any kind, and of TensorFlow's event files."""
import csv
import io
import json
import time as clock
import unittest

from hosts import own_hosts
from support import MusterTest
from training import TrainTest
from venvs import NEWEST, python_first, venv

# Reports a loss and an accuracy through the metrics file.
OWN = """
    name: own
    env: {RATE: "0.5"}
    roles:
      chief:
        command: |
          for step in 10 20 30; do
            echo "{\\"step\\": $step, \\"loss\\": $RATE$step, \\"accuracy\\": 0.$step}" >> "$MUSTER_METRICS_FILE"
          done
"""


class CompareTest(MusterTest):
    def own(self, *options):
        return self.muster("run", self.write("own.yaml", OWN), *options)

    def compared(self, *jobs):
        return json.loads(self.muster("compare", "--json", *jobs).stdout)

    def test_programs_of_any_kind(self):
        self.own("--name", "a")
        self.own("--name", "b", "--env", "RATE=0.7")
        table = self.muster("compare", "a", "b").stdout
        self.assertRegex(table, r"(?m)^ +a-\w+ +b-\w+$")
        self.assertRegex(table, r"(?m)^state +Succeeded +Succeeded$")
        self.assertRegex(table, r"(?m)^env\.RATE +0\.5 +0\.7$")
        self.assertRegex(table, r"(?m)^loss, last +0\.5300 \(step 30\) +0\.7300 \(step 30\)$")
        self.assertRegex(table, r"(?m)^loss, lowest +0\.5100 \(step 10\) +0\.7100 \(step 10\)$")
        self.assertRegex(table, r"(?m)^accuracy, highest +0\.3000 \(step 30\) +0\.3000 \(step 30\)$")
        self.assertNotIn("roles.chief", table)
        self.assertIn("roles.chief.command", self.muster("compare", "--all", "a", "b").stdout)
        rows = list(csv.DictReader(io.StringIO(self.muster("compare", "--csv", "a", "b").stdout)))
        self.assertEqual([(row["env.RATE"], row["loss last"], row["loss last step"], row["loss min"]) for row in rows],
                         [("0.5", "0.53", "30", "0.51"), ("0.7", "0.73", "30", "0.71")])
        first, second = self.compared("a", "b")
        self.assertEqual((first["name"], second["name"]), ("a", "b"))
        self.assertEqual(first["parameters"]["env.RATE"], "0.5")
        self.assertEqual(first["metrics"]["loss"], {"last": {"step": 30, "value": 0.53}, "min": {"step": 10, "value": 0.51},
                                                    "max": {"step": 30, "value": 0.53}})

    def test_every_point(self):
        self.own()
        job = self.jobs()[0]["id"]
        rows = list(csv.reader(io.StringIO(self.muster("compare", "--csv", "--points", "own").stdout)))
        self.assertEqual(rows[0], ["job", "metric", "step", "time", "value"])
        self.assertEqual(rows[4:], [[job, "loss", str(step), "", f"0.5{step // 10}"] for step in (10, 20, 30)])
        points = json.loads(self.muster("compare", "--json", "--points", "own").stdout)[0]["metrics"]["loss"]["points"]
        self.assertEqual(points, [[10, 0.51, None], [20, 0.52, None], [30, 0.53, None]])
        # The times of printed values are those of the lines.
        self.muster("run", self.write("printed.yaml", "name: printed\nroles: {worker: {command: 'echo step 1 loss nan'}}\n"))
        (step, value, time), = json.loads(self.muster("compare", "--json", "--points", "printed").stdout)[0]["metrics"]["loss"]["points"]
        self.assertEqual((step, value), (1, None))
        self.assertLess(abs(time - clock.time()), 120)
        refused = self.muster("compare", "--points", "own", check=False)
        self.assertEqual((refused.returncode, "add --json or --csv" in refused.stderr), (2, True))

    def test_the_output_of_a_program_without_a_metrics_file(self):
        self.muster("run", self.write("printed.yaml", """
            name: printed
            roles: {worker: {command: 'for step in 10 20; do echo "step $step/20, loss 0.$step"; done'}}
            """))
        self.assertEqual(self.compared("printed")[0]["metrics"]["loss"]["last"], {"step": 20, "value": 0.2})

    def test_a_job_without_metrics(self):
        self.muster("run", self.write("quiet.yaml", "name: quiet\nroles: {worker: {command: 'true'}}\n"))
        result = self.muster("compare", "quiet")
        self.assertIn("no job has metrics", result.stderr)
        self.assertIn("Succeeded", result.stdout)

    def test_wrong_input(self):
        self.assertEqual(self.muster("compare", check=False).returncode, 2)
        self.assertIn("no job", self.muster("compare", "absent", check=False).stderr)
        self.own()
        self.assertEqual(self.muster("compare", "own", "--json", "--csv", check=False).returncode, 2)

    def test_hostile_metrics_do_not_harm(self):
        self.muster("run", self.write("odd.yaml", r"""
            name: odd
            roles:
              worker:
                command: |
                  printf '{"step": 1, "\033[31mred": 1}\n{"step": 2, "loss": NaN}\n{"step": 1e400, "loss": 1}\n[[[[\n' >> $MUSTER_METRICS_FILE
                  mkdir -p "$MUSTER_MODEL_DIR"; head -c 1000 /dev/zero > "$MUSTER_MODEL_DIR/events.out.tfevents.1.x"
            model_dir: model
            """))
        result = self.muster("compare", "odd")
        self.assertNotIn("\033", result.stdout)
        self.assertRegex(result.stdout, r"loss, last +nan \(step 2\)")
        self.assertIn("events.out.tfevents.1.x", result.stderr)
        self.assertIsNone(self.compared("odd")[0]["metrics"]["loss"]["last"]["value"])

    def test_a_job_on_hosts(self):
        bed = own_hosts(self, 1)
        self.env.update(bed.environment)
        (self.dir / "work").mkdir()
        self.muster("run", "--on", "ssh", "--hosts", ",".join(bed.hosts), self.write("work/own.yaml", OWN), cwd=self.dir / "work")
        metrics = self.compared("own")[0]["metrics"]
        self.assertEqual(metrics["loss"]["last"], {"step": 30, "value": 0.53})
        self.assertEqual(metrics["accuracy"]["last"], {"step": 30, "value": 0.3})


class EventFileTest(MusterTest):
    def test_scalars_of_tensorflow(self):
        folder = venv(self, NEWEST)
        self.write("train.py", """
            import os
            import tensorflow as tf
            writer = tf.summary.create_file_writer(os.path.join(os.environ["MUSTER_MODEL_DIR"], "train"))
            with writer.as_default():
                for step in range(5):
                    tf.summary.scalar("loss", 1.0 / (step + 1), step=step)
            """)
        job = self.write("tf.yaml", "name: tf\nmodel_dir: model\nroles: {worker: {command: python3 train.py}}\n")
        self.env = python_first(self.env, folder)
        self.muster("run", job, cwd=self.dir, timeout=200)
        loss = json.loads(self.muster("compare", "--json", "tf").stdout)[0]["metrics"]["train/loss"]
        self.assertEqual(loss["last"]["step"], 4)
        self.assertAlmostEqual(loss["last"]["value"], 0.2, 5)


class BuiltInTest(TrainTest):
    def test_runs_in_the_same_model_dir(self):
        """A later run in the model dir, with --fresh or not, leaves the metrics of an earlier one as they were."""
        def run(name, steps, *options):
            file = self.job(name, roles={"chief": {}}, model_dir="runs/shared",
                            train={"steps": steps, "summary": {"every_steps": 10}})
            self.muster("run", file, *options, timeout=170)
        run("first", 20)
        before = json.loads(self.muster("compare", "--json", "first").stdout)[0]["metrics"]
        self.assertEqual(before["loss"]["last"]["step"], 20)
        run("second", 40)
        run("third", 10, "--fresh")
        first, second, third = json.loads(self.muster("compare", "--json", "first", "second", "third").stdout)
        self.assertEqual(first["metrics"], before)
        self.assertEqual(second["metrics"]["loss"]["last"]["step"], 40)
        self.assertEqual(third["metrics"]["loss"]["last"]["step"], 10)

    def test_two_learning_rates(self):
        for name, rate in (("slow", 0.01), ("fast", 0.1)):
            self.train(name, roles={"chief": {}}, model_dir=f"runs/{name}",
                       train={"steps": 20, "optimizer": {"learning_rate": rate}, "summary": {"every_steps": 10}})
        slow, fast = json.loads(self.muster("compare", "--json", "slow", "fast").stdout)
        self.assertEqual(slow["parameters"]["train.optimizer.learning_rate"], "0.01")
        for run in (slow, fast):
            self.assertEqual(run["metrics"]["loss"]["last"]["step"], 20)


if __name__ == "__main__":
    unittest.main()
