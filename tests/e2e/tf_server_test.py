"""Servers that wait for TensorFlow's sessions: of a rendered cluster, and the default PS of a TfJob, as processes of this machine."""
import json
import subprocess
import unittest

import venvs
from support import SOURCE, MusterTest, wait_until

# A TensorFlow of which only the server exists: it listens at its port and writes how it was called.
FAKE = '''
import json, socket, sys

class train:
    class ClusterSpec:
        def __init__(self, cluster):
            self.cluster = cluster

    class Server:
        def __init__(self, spec, job_name, task_index):
            host, port = spec.cluster[job_name][task_index].rsplit(":", 1)
            self.socket = socket.create_server((host, int(port)))
            print("server", json.dumps([spec.cluster, job_name, task_index]))
'''

SESSION = '''
import json, sys
import tensorflow.compat.v1 as tf
tf.disable_eager_execution()
cluster = json.loads(sys.argv[1])
with tf.device("/job:ps/task:0"):
    weight = tf.Variable(3.0)
with tf.device("/job:%s/task:0" % sys.argv[2]):
    product = weight * 2
with tf.Session("grpc://" + cluster[sys.argv[2]][0]) as session:
    session.run(tf.global_variables_initializer())
    print("product", session.run(product))
'''

CLUSTER = """
    resources:
      - type: tensorflow-cluster
        properties:
          image: {image}
          jobs: [{{name: ps, num_tasks: 2}}, {{name: workers, num_tasks: 1}}]
      - type: jupyter-service
        properties: {{password: x}}
    """

OLD = """
    apiVersion: tensorflow.org/v1alpha1
    kind: TfJob
    metadata: {name: old}
    spec:
      replicaSpecs:
        - template: {spec: {containers: [{name: tensorflow, image: "tensorflow/tensorflow:1.3.0", command: COMMAND}]}}
        - {tfReplicaType: PS}
    """


class Servers(MusterTest):
    def cluster_of(self, job):
        return json.loads(self.muster("env", job, "--cluster").stdout)

    def output(self, job, task):
        return self.log(self.show(job)["id"], task).decode()

    def fake_tensorflow(self):
        (self.dir / "fake" / "tensorflow").mkdir(parents=True)
        (self.dir / "fake" / "tensorflow" / "__init__.py").write_text(FAKE)
        self.env["PYTHONPATH"] = str(self.dir / "fake")

    def calls(self, job, *tasks):
        return [json.loads(self.output(job, task).split("server ", 1)[1].splitlines()[0]) for task in tasks]

    def wait_serving(self, job, *tasks):
        for task in tasks:
            wait_until(lambda: f"serving {task} at" in self.output(job, task), f"{task} serves")


class ServerTest(Servers):
    def test_a_rendered_cluster_serves_until_it_is_stopped(self):
        self.fake_tensorflow()
        for image in ("tensorflow/tensorflow:1.4.0", "gcr.io/me/worker:1"):
            started = self.muster("run", "-d", self.write("config.yaml", CLUSTER.format(image=image)))
            self.assertIn("notebook: not started with the job; `muster notebook` starts it", started.stderr)
            tasks = "ps:0", "ps:1", "workers:0"
            self.wait_serving("tensorflow-cluster", *tasks)
            self.wait_state("tensorflow-cluster", "Running")
            cluster = self.cluster_of("tensorflow-cluster")
            self.assertEqual(self.calls("tensorflow-cluster", *tasks), [[cluster, *task] for task in (("ps", 0), ("ps", 1), ("workers", 0))])
            self.muster("stop", "--yes", "tensorflow-cluster")
            self.assertEqual(self.show("tensorflow-cluster")["state"], "Stopped")

    def test_servers_alone_are_a_job(self):
        self.fake_tensorflow()
        text = "resources: [{type: tensorflow-cluster, properties: {image: tensorflow/tensorflow, jobs: [{name: ps, num_tasks: 2}]}}]"
        self.muster("run", "-d", self.write("config.yaml", text))
        self.wait_serving("tensorflow-cluster", "ps:0", "ps:1")
        self.assertEqual(self.show("tensorflow-cluster")["state"], "Running")

    def test_a_missing_tensorflow_is_named(self):
        (self.dir / "fake").mkdir()
        (self.dir / "fake" / "tensorflow.py").write_text("raise ImportError('No module named tensorflow')\n")
        self.env["PYTHONPATH"] = str(self.dir / "fake")
        failed = self.muster("run", self.write("config.yaml", CLUSTER.format(image="tensorflow/tensorflow")), check=False)
        self.assertEqual(failed.returncode, 1)
        self.assertIn("cannot import TensorFlow (No module named tensorflow); install it with: ", failed.stdout + failed.stderr)

    def test_our_own_server_where_the_image_is_ours(self):
        self.muster("run", "-d", self.write("config.yaml", CLUSTER.format(image="registry.example/muster-trainer:1")))
        for task in ("ps:0", "ps:1", "workers:0"):
            wait_until(lambda: "serving at" in self.output("tensorflow-cluster", task), f"{task} serves")
        self.assertEqual(self.show("tensorflow-cluster")["state"], "Running")

    def test_the_default_ps_of_a_tfjob_serves_until_the_job_ends(self):
        self.fake_tensorflow()
        done = self.muster("run", self.write("job.yaml", OLD.replace("COMMAND", "[sh, -c, 'until [ -e go ]; do sleep 0.05; done']")), "-d")
        self.assertIn("Started", done.stdout)
        self.wait_serving("old", "ps:0")
        (cluster, job, index), = self.calls("old", "ps:0")
        self.assertEqual((sorted(cluster), job, index), (["master", "ps"], "ps", 0))
        (self.dir / "go").touch()
        self.wait_state("old", "Succeeded")
        self.assertEqual(self.task("old", "ps:0")["state"], "Stopped")

    def test_a_notebook_alone_does_not_run_here(self):
        text = "resources: [{type: jupyter-service, properties: {password: x}}]"
        refused = self.muster("run", self.write("config.yaml", text), check=False)
        self.assertEqual(refused.returncode, 2)
        self.assertIn("the file has nothing else; `muster render` prints its manifests", refused.stderr)


class RealTest(Servers):
    """With a real TensorFlow, if tests/venv/install could get it."""

    def setUp(self):
        super().setUp()
        folder = venvs.venv(self, venvs.ESTIMATOR)
        self.python = folder / "bin" / "python3"
        self.env = venvs.python_first(self.env, folder)

    def session(self, cluster, job):
        done = subprocess.run([self.python, "-c", SESSION, json.dumps(cluster), job], capture_output=True, text=True, timeout=120)
        return done.stdout + done.stderr

    def test_a_session_of_a_rendered_cluster(self):
        self.muster("run", "-d", SOURCE / "examples" / "rendered_cluster.yaml")
        self.wait_serving("tensorflow-cluster", "ps:0", "worker:0", "worker:1")
        self.assertIn("product 6.0", self.session(self.cluster_of("tensorflow-cluster"), "worker"))
        self.muster("stop", "--yes", "tensorflow-cluster")

    def test_variables_live_on_the_default_ps(self):
        (self.dir / "train.py").write_text(
            "import json, os, subprocess, sys\nimport tensorflow.compat.v1 as tf\nconfig = json.loads(os.environ['TF_CONFIG'])\n"
            "server = tf.train.Server(tf.train.ClusterSpec(config['cluster']), job_name='master', task_index=0)\n"
            f"sys.argv = ['', json.dumps(config['cluster']), 'master']\n{SESSION}")
        output = self.muster("run", self.write("job.yaml", OLD.replace("COMMAND", "[python3, train.py]"))).stdout
        self.assertIn("product 6.0", output)
        self.assertEqual(self.task("old", "ps:0")["state"], "Stopped")


if __name__ == "__main__":
    unittest.main()
