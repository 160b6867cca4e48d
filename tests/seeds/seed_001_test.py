"""TfJob: the four commands of "vanilla" TensorFlow as one job, then a TfJob on this machine, and with kubectl in a cluster."""
import json
import re
import shutil
import unittest

from digits import write_digits
from operators import PATCH, OperatorTest
from support import SOURCE, MusterTest, wait_until
from venvs import NEWEST, python_first, venv

FILES = SOURCE / "tests" / "seeds" / "001"
TASKS = ["master-5oz2-0", "ps-5oz2-0", "worker-5oz2-0", "worker-5oz2-1"]
LOSS = r"step 20\d, loss (0\.\d+)"


def page_cluster(job, domain=""):
    """Returns the page's representation of the cluster. Muster's own commands add the domain of the namespace to the names."""
    return {"master": [f"{job}-master-5oz2-0{domain}:2222"], "ps": [f"{job}-ps-5oz2-0{domain}:2222"],
            "worker": [f"{job}-worker-5oz2-{i}{domain}:2222" for i in (0, 1)]}


class LocalTest(MusterTest):
    """The programs of the page with real TensorFlow."""

    def setUp(self):
        super().setUp()
        self.env = python_first(self.env, venv(self, NEWEST))
        shutil.copytree(FILES, self.dir, dirs_exist_ok=True)
        write_digits(self.dir / "data" / "mnist")

    def train(self, file):
        result = self.muster("run", file, timeout=250)
        self.assertIn("Succeeded", result.stderr)
        return result.stdout

    def test_vanilla(self):
        said = self.train("trainer.yaml")
        for worker in (0, 1):
            self.assertRegex(said, rf"worker:{worker} \| worker {worker}: {LOSS}")
        self.assertEqual({task["task"]: task["state"] for task in self.show("vanilla")["tasks"]},
                         {"ps:0": "Stopped", "ps:1": "Stopped", "worker:0": "Succeeded", "worker:1": "Succeeded"})

    def test_tfjob(self):
        said = self.train("distributed-mnist.yaml")
        self.assertLess(float(re.search(rf"master:0 \| master 0: {LOSS}", said).group(1)), 1.0)
        # The variables are on the parameter server, the computation is on each task.
        for role, index in (("master", 0), ("worker", 0), ("worker", 1)):
            self.assertRegex(said, rf"{role} {index}: weights on /job:ps.*, loss on /job:{role}.*/task:{index}")
        self.assertTrue((self.dir / "model" / "checkpoint").exists())
        self.assertEqual(self.task("distributed-mnist", "ps:0")["state"], "Stopped")


class ClusterTest(OperatorTest):
    """The manifest in a cluster without nodes: the test sets the status of pods."""

    def setUp(self):
        super().setUp()
        shutil.copy(FILES / "distributed-mnist.yaml", self.dir)
        self.env["KUBECONFIG"] = str(self.cluster.kubeconfig)
        self.operate()

    def expect_objects(self, job, domain=""):
        """Expects a service and a pod for each task, and the page's TF_CONFIG in worker 1."""
        names = [f"{job}-{task}" for task in TASKS]
        self.wait_pods(*names)
        services = self.all("services")
        self.assertEqual(sorted(services), names)
        for name in names:
            self.assertEqual([port["port"] for port in services[name]["spec"]["ports"]], [2222])
        container, = self.all("pods")[f"{job}-worker-5oz2-1"]["spec"]["containers"]
        variables = {variable["name"]: variable["value"] for variable in container["env"]}
        self.assertEqual(json.loads(variables["TF_CONFIG"]),
                         {"cluster": page_cluster(job, domain), "task": {"type": "worker", "index": 1}, "environment": "cloud"})
        self.assertEqual((container["image"], container["command"]), ("me/distributed-mnist:1.0", ["python", "main.py"]))

    def set_phases(self, job, phase, *tasks):
        state = {"Running": {"running": {"startedAt": "2026-05-01T12:00:00Z"}},
                 "Succeeded": {"terminated": {"exitCode": 0, "reason": "Completed", "finishedAt": "2026-05-01T12:10:00Z"}}}[phase]
        for task in tasks:
            status = {"phase": phase, "containerStatuses": [{"name": "tensorflow", "image": "", "imageID": "", "ready": False,
                                                             "restartCount": 0, "state": state}]}
            answer, body = self.ask("PATCH", "pods/status", f"{job}-{task}", {"status": status}, PATCH)
            self.assertEqual(answer, 200, body)

    def test_kubectl_create(self):
        self.kubectl("create", "-f", self.dir / "distributed-mnist.yaml")
        self.expect_objects("distributed-mnist")
        printed = self.muster("env", "distributed-mnist.yaml", "--cluster", "--on", "kubernetes").stdout
        self.assertEqual(json.loads(printed), page_cluster("distributed-mnist", ".default.svc"))

        def state():
            return json.loads(self.kubectl("get", "tfjobs.tensorflow.org", "distributed-mnist", "--output=json").stdout)["status"]["state"]

        self.set_phases("distributed-mnist", "Running", *TASKS)
        wait_until(lambda: state() == "Running", "the job runs", 30)
        self.set_phases("distributed-mnist", "Succeeded", TASKS[0])
        wait_until(lambda: state() == "Succeeded", "the master decides", 30)
        self.wait_pods(f"distributed-mnist-{TASKS[0]}")  # no parameter server runs on
        # A job of the same name can be created again.
        self.kubectl("delete", "tfjobs.tensorflow.org", "distributed-mnist")
        self.wait_pods()
        self.kubectl("create", "-f", self.dir / "distributed-mnist.yaml")
        self.expect_objects("distributed-mnist")

    def test_muster_run(self):
        said = self.muster("run", "-d", "distributed-mnist.yaml", "--on", "kubernetes", "-n", self.namespace).stdout
        job = re.search(r"Started (\S+) in", said).group(1)
        self.expect_objects(job, f".{self.namespace}.svc")
        self.set_phases(job, "Running", *TASKS)
        self.wait_state(job, "Running")
        self.assertRegex(self.muster("jobs", "--on", "kubernetes", "-n", self.namespace).stdout, rf"{job} .*Running")
        self.set_phases(job, "Succeeded", TASKS[0])
        self.wait_state(job, "Succeeded")


if __name__ == "__main__":
    unittest.main()
