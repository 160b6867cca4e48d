"""A rendered cluster with Jupyter: the config is rendered and created with kubectl, and its servers run on this machine too."""
import ast
import json
import shutil
import subprocess
import unittest

from operators import PATCH, OperatorTest
from support import SOURCE, MusterTest, wait_until
from venvs import NEWEST, python_first, venv

FILES = SOURCE / "tests" / "seeds" / "002"
TASKS = ["ps-0", "ps-1", "workers-0", "workers-1", "workers-2"]


class ClusterTest(OperatorTest):
    def setUp(self):
        super().setUp()
        config = (FILES / "my-config.yaml").read_text()
        self.config = self.write("my-config.yaml", config.replace("namespace: default", f"namespace: {self.namespace}"))
        self.env["KUBECONFIG"] = str(self.cluster.kubeconfig)

    def expect_server(self, pod, addresses):
        """Expects what the program in the page's image reads: its task from the pod's name, the jobs from its argument."""
        job, task, _ = pod["metadata"]["name"].split("-")
        container, = pod["spec"]["containers"]
        self.assertEqual(container["image"], "gcr.io/me/tensorflow-worker")
        self.assertEqual(container["args"][0], "--job-config")
        jobs = ast.literal_eval(container["args"][1])
        cluster = {one["name"]: [f"{one['name']}-{i}.{self.namespace}.svc.cluster.local:8080" for i in range(one["num_tasks"])] for one in jobs}
        self.assertEqual(cluster, addresses)
        self.assertEqual((pod["metadata"]["labels"]["job"], pod["metadata"]["labels"]["task"]), (job, task))
        fields = {entry["name"]: entry["valueFrom"]["fieldRef"]["fieldPath"] for entry in container["env"] if "valueFrom" in entry}
        self.assertEqual(fields, {"POD_NAME": "metadata.name", "POD_NAMESPACE": "metadata.namespace"})
        return f"{job}-{task}"

    def test_the_page(self):
        self.muster("render", "--config", "my-config.yaml", "--out", "rendered.yaml")
        self.kubectl("create", "-f", self.dir / "rendered.yaml")

        # Every task has a service, under the page's address, which the notebook has.
        wait_until(lambda: len(self.all("pods")) == len(TASKS) + 1, "the pods are there", 60)
        pods = self.all("pods")
        notebook, = [pod for name, pod in pods.items() if name.startswith("jupyter")]
        variables = {entry["name"]: entry.get("value") for entry in notebook["spec"]["containers"][0]["env"]}
        addresses = json.loads(variables["CLUSTER_CONFIG"])
        self.assertEqual(addresses["workers"][2], f"workers-2.{self.namespace}.svc.cluster.local:8080")
        services = self.all("services")
        self.assertEqual(sorted(services), ["jupyter", *TASKS])
        for task in TASKS:
            port, = services[task]["spec"]["ports"]
            self.assertEqual((port["name"], port["port"]), ("grpc-server", 8080))

        found = [self.expect_server(pod, addresses) for name, pod in pods.items() if not name.startswith("jupyter")]
        self.assertEqual(sorted(found), TASKS)
        for task in TASKS:
            selector = services[task]["spec"]["selector"]
            self.assertEqual([name.rpartition("-")[0] for name, pod in pods.items() if selector.items() <= pod["metadata"]["labels"].items()],
                             [task])
        self.expect_notebook(services["jupyter"])

    def expect_notebook(self, service):
        self.assertEqual(service["spec"]["type"], "LoadBalancer")
        self.assertEqual([port["port"] for port in service["spec"]["ports"]], [8888, 6006])
        # The password is a number in the config, and no object contains it.
        self.assertNotIn("1234", (self.dir / "rendered.yaml").read_text().replace(self.namespace, ""))
        # The cloud assigns an address.
        status = {"status": {"loadBalancer": {"ingress": [{"ip": "203.0.113.7"}]}}}
        answer, body = self.ask("PATCH", "services/status", "jupyter", status, PATCH)
        self.assertEqual(answer, 200, body)
        said = self.muster("notebook", "my-config.yaml").stdout
        for port in (8888, 6006):
            self.assertIn(f"http://203.0.113.7:{port}", said)

    def test_the_config_is_checked(self):
        self.config.write_text(self.config.read_text().replace("num_tasks: 3", "tasks: 3"))
        refused = self.muster("render", "--config", "my-config.yaml", "--out", "rendered.yaml", check=False)
        self.assertEqual(refused.returncode, 2)
        self.assertRegex(refused.stderr, r"my-config\.yaml:\d+:\d+: .*tasks")
        self.assertFalse((self.dir / "rendered.yaml").exists())


class LocalTest(MusterTest):
    def test_a_session_on_servers_of_this_machine(self):
        folder = venv(self, NEWEST)
        self.env = python_first(self.env, folder)
        for name in ("my-config.yaml", "notebook.py"):
            shutil.copy(FILES / name, self.dir)
        self.muster("run", "-d", "my-config.yaml")
        job = self.jobs()[0]["id"]
        for task in TASKS:
            task = task.replace("-", ":")
            wait_until(lambda task=task: f"serving {task} at".encode() in self.log(job, task), f"{task} serves", 120)
        cluster = self.muster("env", job, "--cluster").stdout
        done = subprocess.run([folder / "bin" / "python", "notebook.py", cluster], cwd=self.dir, env=self.env, capture_output=True, text=True,
                              timeout=120)
        self.assertIn("parts [3.0, 6.0, 9.0]", done.stdout.replace("np.float32(", "").replace(")", ""), done.stderr)
        self.muster("stop", "--yes", job)
        self.assertEqual(self.show(job)["state"], "Stopped")


if __name__ == "__main__":
    unittest.main()
