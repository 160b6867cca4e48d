"""Real TensorFlow programs, unchanged: the examples, on this machine and on three hosts."""
import re
import shutil
import socket
import unittest

from hosts import own_hosts
from support import SOURCE, MusterTest, kill, wait_until
from venvs import ESTIMATOR, NEWEST, python_first, venv

EXAMPLES = SOURCE / "examples" / "tensorflow"


class TensorFlowTest(MusterTest):
    """Runs copies of the examples with the TensorFlow of a virtual environment."""

    def use(self, name):
        """Prepares the folder `work` to run an example on this machine."""
        self.venv = venv(self, name)
        self.env = python_first(self.env, self.venv)
        self.work = self.dir / "work"
        shutil.copytree(EXAMPLES, self.work)
        self.options = []

    def use_hosts(self, name):
        """Prepares it to run on three hosts, which share the model dir and the virtual environment."""
        self.use(name)
        self.runs = self.dir / "runs"
        self.runs.mkdir()
        self.bed = own_hosts(self, 3, share=[self.venv, self.runs])
        self.addCleanup(self._end_everything)  # before the hosts end
        self.env.update(self.bed.environment)
        self.options = ["--on", "ssh", "--hosts", ",".join(self.bed.hosts)]
        for file in self.work.glob("*.yaml"):
            text = file.read_text().replace("command: python3", f"command: {self.venv}/bin/python3")
            file.write_text(text.replace("model_dir: runs/", f"model_dir: {self.runs}/"))

    def edit(self, file, pattern, replacement):
        text, changed = re.subn(pattern, replacement, (self.work / file).read_text())
        self.assertGreater(changed, 0, f"{file} has no {pattern}")
        (self.work / file).write_text(text)

    def run_example(self, file):
        """Runs it to its success and returns its output."""
        result = self.muster("run", *self.options, file, cwd=self.work, timeout=300)
        self.assertIn("Succeeded", result.stderr)
        return result.stdout

    def model_dir(self, name):
        return (self.runs if self.options else self.work / "runs") / name

    def expect_hosts(self, job, count=3):
        self.assertEqual(len({task["host"] for task in self.show(job)["tasks"]}), count)

    def states(self, job):
        return {task["task"]: task["state"] for task in self.show(job)["tasks"]}


SERVER = """
    import os, pathlib, time
    import tensorflow as tf
    cluster = tf.distribute.cluster_resolver.TFConfigClusterResolver()
    attempt = os.environ["MUSTER_ATTEMPT"]
    pathlib.Path(f"port.{attempt}").write_text(os.environ["MUSTER_PORT"])
    while attempt == "0" and not os.path.exists("go"):
        time.sleep(0.02)
    tf.distribute.Server(cluster.cluster_spec(), job_name=cluster.task_type, task_index=cluster.task_id)
    """


class ServerTest(TensorFlowTest):
    def test_a_port_that_another_process_took_is_replaced(self):
        self.use(NEWEST)
        self.write("server.py", SERVER)
        job = self.run_detached("""
            name: robbed
            roles: {worker: {command: python3 server.py}, helper: {command: exec sleep 600}}
            policies: {success: chief, finish_grace: 0s}
            """)
        first = self.wait_file("port.0", 120)
        with socket.socket() as stranger:
            stranger.bind(("0.0.0.0", int(first)))
            stranger.listen()
            self.write("go", "")
            state = self.wait_state(job, "Succeeded", "Failed", timeout=120)
        self.assertEqual(state["state"], "Succeeded", state["reason"])
        self.assertNotEqual(self.wait_file("port.1"), first)
        self.assertTrue(any("another port" in event for event in self.events(job)), self.events(job))


class EstimatorTest(TensorFlowTest):
    def check_estimator(self):
        output = self.run_example("estimator.yaml")
        self.assertEqual(self.states("estimator"), {
            "chief:0": "Succeeded", "worker:0": "Succeeded", "worker:1": "Succeeded", "evaluator:0": "Succeeded",
            "ps:0": "Stopped"})
        for worker in (0, 1):
            # A worker that starts late may find nothing to do.
            self.assertRegex(output, rf"worker:{worker} +\| INFO:tensorflow:(Loss for final step: |Skipping training since max_steps)")
        folder = self.model_dir("estimator")
        self.assertRegex((folder / "checkpoint").read_text(), r'model_checkpoint_path: "model\.ckpt-3\d\d"')
        evaluated = re.findall(r"evaluator:0 +\| INFO:tensorflow:Saving dict for global step (\d+): accuracy = (\S+),", output)
        self.assertGreaterEqual(int(evaluated[-1][0]), 300)
        self.assertGreater(float(evaluated[-1][1]), 0.9)
        self.assertEqual(len(list(folder.glob("export/final/*/saved_model.pb"))), 1)

    def test_the_estimator_example(self):
        self.use(ESTIMATOR)
        self.check_estimator()

    def test_the_estimator_example_on_hosts(self):
        self.use_hosts(ESTIMATOR)
        self.check_estimator()
        self.expect_hosts("estimator")


class ParameterServerTest(TensorFlowTest):
    def check_parameter_server(self, tasks):
        output = self.run_example("parameter_server.yaml")
        self.assertGreater(float(re.search(r"chief:0 +\| accuracy: (\S+)", output).group(1)), 0.9)
        self.assertEqual(self.states("parameter-server"), {"chief:0": "Succeeded", **dict.fromkeys(tasks, "Stopped")})
        self.assertTrue((self.model_dir("parameter-server") / "ckpt-300.index").exists())
        self.assertTrue((self.model_dir("parameter-server") / "export" / "saved_model.pb").exists())

    def test_the_parameter_server_example(self):
        self.use(NEWEST)
        self.check_parameter_server(["worker:0", "worker:1", "ps:0"])

    def test_the_parameter_server_example_on_hosts(self):
        self.use_hosts(ESTIMATOR)
        self.edit("parameter_server.yaml", r"worker: \{replicas: 2\}", "worker: {}")
        self.check_parameter_server(["worker:0", "ps:0"])
        self.expect_hosts("parameter-server")

    def test_a_killed_worker_returns(self):
        self.use(NEWEST)
        self.edit("parameter_server.yaml", r"worker: \{replicas: 2\}", "worker: {}")
        self.edit("parameter_server.yaml", "--steps 300", "--steps 2000")
        job = re.search(r"Started (\S+) in", self.muster("run", "-d", "parameter_server.yaml", cwd=self.work).stdout).group(1)
        wait_until(lambda: b"step 100," in self.log(job, "chief:0"), "it trains", 120)
        kill(self.pids(job)["worker:0"])
        self.wait_state(job, "Succeeded", timeout=200)
        self.assertEqual(self.task(job, "worker:0")["restarts"], 1)
        self.assertEqual(self.task(job, "chief:0")["restarts"], 0)
        self.assertIn(b"accuracy: 0.9", self.log(job, "chief:0"))


class MirroredTest(TensorFlowTest):
    def test_the_mirrored_example_with_a_worker_killed(self):
        self.use(NEWEST)
        self.edit("mirrored.yaml", "--steps 100", "--steps 1000")
        job = re.search(r"Started (\S+) in", self.muster("run", "-d", "mirrored.yaml", cwd=self.work).stdout).group(1)
        wait_until(lambda: b"step 100," in self.log(job, "worker:0"), "it trains", 120)
        kill(self.pids(job)["worker:1"])
        self.wait_state(job, "Succeeded", timeout=200)
        for task in ("worker:0", "worker:1"):
            begun = [int(step) for step in re.findall(rb"begins at step (\d+)", self.log(job, task))]
            self.assertEqual(begun[0], 0)
            self.assertGreaterEqual(begun[-1], 80)
            self.assertIn(b"accuracy: 0.9", self.log(job, task))

    def test_the_mirrored_example_on_hosts(self):
        self.use_hosts(ESTIMATOR)
        self.edit("mirrored.yaml", "replicas: 2", "replicas: 3")
        output = self.run_example("mirrored.yaml")
        for worker in (0, 1, 2):
            self.assertRegex(output, rf"worker:{worker} +\| accuracy: 0\.9")
        self.expect_hosts("mirrored")
        self.assertTrue((self.model_dir("mirrored") / "ckpt-100.index").exists())


if __name__ == "__main__":
    unittest.main()
