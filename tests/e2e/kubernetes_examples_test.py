"""The manifests of examples/kubernetes, and the rendered cluster, run to their verdicts on one node, at the same time.

Images have the names that the files use, and this machine's programs: busybox is the tools, the TensorFlow images have the TensorFlow
of tests/venv. Files are applied unchanged, except that evaluator.yaml trains 20 steps, not 2000, which would take minutes."""
import json
import os
import pathlib
import re
import time
import unittest

import venvs
from cluster import images
from clusters import own_node
from digits import write_digits
from support import MUSTER, SOURCE, MusterTest, wait_until

EXAMPLES = SOURCE / "examples"
MANIFESTS = EXAMPLES / "kubernetes"
PROGRAMS = SOURCE / "tests" / "cluster" / "tensorflow"
TENSORFLOW = ["tensorflow/tensorflow:2.11.0", "tensorflow/tensorflow:1.4.0", "tensorflow/tensorflow:1.3.0"]
V1 = "tfjobs.kubeflow.org"
V1ALPHA1 = "tfjobs.tensorflow.org"

SESSION = '''
import json, os
import tensorflow.compat.v1 as tf
tf.disable_eager_execution()
cluster = json.loads(os.environ["TF_CONFIG"])["cluster"]
with tf.device("/job:ps/task:0"):
    weight = tf.Variable(3.0)
with tf.device("/job:worker/task:1"):
    product = weight * 2
with tf.Session("grpc://" + cluster["worker"][0]) as session:
    session.run(tf.global_variables_initializer())
    print("product", session.run(product))
'''


def poll(condition, what, timeout=60.0):
    """As wait_until, but seldom: kubectl takes time of the processors that the containers need."""
    return wait_until(lambda: condition() or time.sleep(0.5), what, timeout)


def volume(path):
    """Returns a volume in a folder of this machine, and the claim `training` for it."""
    size = {"storage": "1Gi"}
    return [{"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "training"},
             "spec": {"capacity": size, "accessModes": ["ReadWriteMany"], "hostPath": {"path": str(path)}, "storageClassName": "folder"}},
            {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "training"},
             "spec": {"accessModes": ["ReadWriteMany"], "resources": {"requests": size}, "storageClassName": "folder"}}]


class KubernetesExamplesTest(MusterTest):
    def setUp(self):
        super().setUp()
        self.trainer = pathlib.Path(MUSTER).with_name("muster-trainer")
        if not self.trainer.exists():
            self.skipTest("there is no muster-trainer: it was built without libtorch")
        self.packages = next(venvs.venv(self, venvs.ESTIMATOR).glob("lib/python3*/site-packages"))
        self.cluster = own_node(self)
        self.kubectl = self.cluster.kubectl
        self.kubectl("apply", "-f", SOURCE / "deploy" / "crds.yaml")
        self.env["KUBECONFIG"] = str(self.cluster.kubeconfig)
        with open(self.dir / "operator.log", "w") as log:
            self.start("operator", "--no-leader-election", stderr=log)

    def test_every_manifest_runs_to_its_verdict(self):
        # Tasks that only sleep go first: they take a minute, during which the others compute.
        self.cluster.load_files(["busybox:1.36"], {})
        self.apply("dynamic_workers.yaml", "suspended.yaml")
        self.cluster.load_files(["muster-trainer:latest"], images.files_of({"usr/local/bin/muster-trainer": self.trainer}))
        self.start_trainers()
        self.scale_workers()
        self.resume()
        self.load_tensorflow()
        self.apply("tensorflow.yaml", "distributed_mnist_v1alpha1.yaml")
        self.render()
        self.expect_trainers()
        self.expect_session()
        self.expect_tensorflow()
        self.expect_v1alpha1()
        self.expect_elastic()
        self.expect_resumed()

    def apply(self, *names):
        for name in names:
            self.kubectl("apply", "-f", MANIFESTS / name)

    def load_tensorflow(self):
        site = "usr/local/lib/python{}.{}/dist-packages".format(*re.search(r"python(\d+)\.(\d+)", str(self.packages)).groups())
        own = {f"{site}/keras/src/datasets/mnist.py": PROGRAMS / "mnist.py",
               f"{site}/digits.py": SOURCE / "tests" / "digits.py", "app/main.py": PROGRAMS / "main.py"}
        self.cluster.load_files(TENSORFLOW, {**images.python(self.packages), **own})

    def status(self, kind, name):
        return self.kubectl.get(kind, name).get("status", {})

    def conditions(self, name):
        return [c["type"] for c in self.status(V1, name).get("conditions", []) if c["status"] == "True"]

    def pods(self, job):
        """Returns the pods of a job that are not being deleted, by name without the job's."""
        listed = self.kubectl.get("pods", f"--selector=training.kubeflow.org/job-name={job}")["items"]
        return {pod["metadata"]["name"].removeprefix(f"{job}-"): pod for pod in listed if "deletionTimestamp" not in pod["metadata"]}

    def wait_running(self, job, *names):
        def running():
            pods = self.pods(job)
            return sorted(pods) == sorted(names) and all(pod["status"]["phase"] == "Running" for pod in pods.values())

        poll(running, f"exactly {names} of {job} run", 90)

    def wait_succeeded(self, job):
        def succeeded():
            conditions = self.conditions(job)
            self.assertNotIn("Failed", conditions, self.why(job))
            return "Succeeded" in conditions

        try:
            poll(succeeded, f"{job} has succeeded", 150)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.why(job)}") from None

    def why(self, job):
        """Returns everything about a job that explains its failure."""
        logs = [f"--- {name}\n{self.kubectl('logs', f'{job}-{name}', '--tail=40', check=False).stdout}" for name in self.pods(job)]
        return "\n".join([json.dumps(self.status(V1, job)), self.kubectl("get", "events").stdout, *logs])

    def log(self, pod):
        return self.kubectl("logs", pod).stdout

    def config_of(self, pod):
        """Returns the TF_CONFIG that a task of the tools printed."""
        said = poll(lambda: self.log(pod), f"{pod} has printed its TF_CONFIG")
        return json.loads(said.splitlines()[0])

    def start_trainers(self):
        """Starts mnist.yaml and evaluator.yaml, as the comments in them describe."""
        data = self.dir / "training"
        write_digits(data / "mnist")
        (data / "runs").mkdir()
        for folder, mode in ((self.dir, 0o755), (data / "runs", 0o777)):  # a folder of the machine has no fsGroup
            os.chmod(folder, mode)
        self.kubectl.apply(*volume(data))
        for file, job in (("mnist.yaml", "mnist"), ("evaluator.yaml", "mnist-evaluated")):
            self.muster("env", MANIFESTS / file, "--certificates", job)
            self.kubectl("create", "secret", "generic", f"{job}-tls", "--from-file", self.dir / job)
        self.apply("mnist.yaml")
        text, changed = re.subn(r"\bsteps: 2000", "steps: 20", (MANIFESTS / "evaluator.yaml").read_text())
        text, periods = re.subn(r"every_steps: 500", "every_steps: 10", text)
        self.assertEqual((changed, periods), (1, 2))
        self.kubectl("apply", "-f", "-", stdin=text)

    def expect_trainers(self):
        self.wait_succeeded("mnist")
        self.assertIn("step 300/300, loss ", self.log("mnist-chief-0"))
        self.wait_succeeded("mnist-evaluated")
        self.assertIn("step 20/20, loss ", self.log("mnist-evaluated-chief-0"))
        poll(lambda: {pod["status"]["phase"] for pod in self.pods("mnist-evaluated").values()} == {"Succeeded"}, "all its tasks end", 90)
        self.assertIn("(step 20, 128 examples of test)", self.log("mnist-evaluated-evaluator-0"))
        saved = json.loads(self.muster("checkpoint", "list", "--json", "training/runs/mnist").stdout)
        self.assertEqual({entry["step"]: entry["state"] for entry in saved}, {10: "ok", 20: "ok"})

    def scale_workers(self):
        """Adds and removes workers of dynamic_workers.yaml: no other worker restarts."""
        servers = ["ps-0", "ps-1"]
        self.wait_running("elastic", *servers, "worker-0", "worker-1")
        first = {name: pod["metadata"]["uid"] for name, pod in self.pods("elastic").items()}
        for count in (4, 3):
            patch = {"spec": {"tfReplicaSpecs": {"Worker": {"replicas": count}}}}
            self.kubectl("patch", "tfjob", "elastic", "--type=merge", "--patch", json.dumps(patch))
            self.wait_running("elastic", *servers, *(f"worker-{i}" for i in range(count)))
        pods = self.pods("elastic")
        self.assertEqual({name: pods[name]["metadata"]["uid"] for name in first}, first)
        config = self.config_of("elastic-worker-2")
        self.assertEqual(config["sparseCluster"], {"ps": [f"elastic-ps-{i}.default.svc:2222" for i in (0, 1)],
                                                   "worker": {"2": "elastic-worker-2.default.svc:2222"}})

    def expect_elastic(self):
        self.wait_succeeded("elastic")
        restarts = [status["restartCount"] for name, pod in self.pods("elastic").items() if name.startswith("worker")
                    for status in pod["status"]["containerStatuses"]]
        self.assertEqual(set(restarts), {0})

    def resume(self):
        """Resumes suspended.yaml, which has no pods until then."""
        poll(lambda: "Suspended" in self.conditions("waiting"), "it is suspended")
        self.assertEqual(self.pods("waiting"), {})
        self.kubectl("patch", "tfjob", "waiting", "--type=merge", "--patch", '{"spec": {"runPolicy": {"suspend": false}}}')
        self.wait_running("waiting", "master-0", "worker-0", "worker-1")
        cluster = self.config_of("waiting-master-0")["cluster"]
        self.assertEqual({role: len(hosts) for role, hosts in cluster.items()}, {"master": 1, "worker": 2})

    def expect_resumed(self):
        self.wait_succeeded("waiting")
        poll(lambda: self.pods("waiting") == {}, "all pods are removed, as cleanPodPolicy says")

    def expect_tensorflow(self):
        self.wait_succeeded("dist-mnist")
        for worker in (0, 1):
            self.assertRegex(self.log(f"dist-mnist-worker-{worker}"), r"Epoch 3/3")

    def expect_v1alpha1(self):
        poll(lambda: self.status(V1ALPHA1, "distributed-mnist").get("phase") in ("Done", "Failed"), "the old job has ended", 150)
        self.assertEqual(self.status(V1ALPHA1, "distributed-mnist")["state"], "Succeeded")
        self.assertRegex(self.log("distributed-mnist-master-5oz2-0"), r"master 0: weights on /job:ps.*\n(.*\n)*master 0: step 20\d, loss 0\.")

    def render(self):
        self.muster("render", EXAMPLES / "rendered_cluster.yaml", "--out", "rendered.yaml")
        self.kubectl("create", "-f", self.dir / "rendered.yaml")

    def expect_session(self):
        """Uses the servers of rendered_cluster.yaml from one of its pods. Its notebook needs an image of Jupyter, which is not here."""
        pods = {"-".join(pod["metadata"]["name"].split("-")[:2]): pod["metadata"]["name"]
                for pod in self.kubectl.get("pods", "--selector=muster/job=tensorflow-cluster,muster/role")["items"]}
        self.assertEqual(sorted(pods), ["ps-0", "worker-0", "worker-1"])
        for pod in pods.values():
            poll(lambda pod=pod: "serving " in self.kubectl("logs", pod, check=False).stdout, f"{pod} serves", 120)
        done = self.kubectl("exec", pods["worker-0"], "--", "python", "-c", SESSION, timeout=120)
        self.assertIn("product 6.0", done.stdout)


if __name__ == "__main__":
    unittest.main()
