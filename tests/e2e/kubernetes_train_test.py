"""The MNIST example on a real node: `muster run` here, the operator beside it, the trainer in containers."""
import os
import pathlib
import re
import unittest

from clusters import own_node
from digits import write_digits
from support import MUSTER, SOURCE, MusterTest, wait_until

IMAGE = "test.muster/trainer:1"
# The pods' folders for data and model.
VOLUME = """
kubernetes:
  pod: {{volumes: [{{name: data, hostPath: {{path: {path}}}}}]}}
  container: {{volumeMounts: [{{name: data, mountPath: /data}}]}}
"""


class KubernetesTrainTest(MusterTest):
    def setUp(self):
        super().setUp()
        trainer = pathlib.Path(MUSTER).with_name("muster-trainer")
        if not trainer.exists():
            self.skipTest("there is no muster-trainer: it was built without libtorch")
        self.cluster = own_node(self)
        self.cluster.load_programs(IMAGE, {"usr/local/bin/muster-trainer": trainer})
        self.cluster.kubectl("apply", "-f", SOURCE / "deploy" / "crds.yaml")
        self.env["KUBECONFIG"] = str(self.cluster.kubeconfig)
        self.operator = self.start("operator", "--no-leader-election")
        self.data = self.dir / "data"
        write_digits(self.data / "mnist")
        (self.data / "runs").mkdir(mode=0o777)
        os.chmod(self.data / "runs", 0o777)
        os.chmod(self.dir, 0o755)

    def example(self, name, steps):
        text = (SOURCE / "examples" / "mnist.yaml").read_text()
        text = text.replace("runs/mnist", "/data/runs/mnist").replace("path: data/mnist", "path: /data/mnist").replace("  evaluator: {}\n", "")
        text = text.replace("model: cnn", "model: mlp").replace("worker: {replicas: 2}", "worker: {replicas: 1}")
        text = re.sub(r"\bsteps: \d+", f"steps: {steps}", re.sub(r"every_steps: \d+", "every_steps: 50", text))
        text = text.replace("name: mnist\n", f"name: {name}\n").replace("/data/runs/mnist", f"/data/runs/{name}")
        return self.write("mnist.yaml", text + VOLUME.format(path=self.data))

    def run_it(self, file, *options):
        return "run", "--on", "kubernetes", "--trainer-image", IMAGE, *options, file

    def test_mnist_trains_stops_and_resumes(self):
        self.train()
        self.stop_and_resume()

    def train(self):
        done = self.muster(*self.run_it(self.example("mnist", 100)), timeout=240)
        self.assertIn("Succeeded", done.stderr)
        job = self.jobs()[0]["id"]
        self.assertEqual({task["task"]: task["state"] for task in self.show(job)["tasks"]},
                         {"chief:0": "Succeeded", "worker:0": "Succeeded", "ps:0": self.task(job, "ps:0")["state"]})
        self.assertIn(self.task(job, "ps:0")["state"], ("Succeeded", "Stopped"))
        # The streamed output equals the pod's output, each line once.
        said = self.cluster.kubectl("logs", f"{job}-chief-0").stdout
        self.assertIn("step 100", said)
        logs = self.muster("logs", job, "chief:0").stdout
        self.assertEqual([line.split("| ", 1)[-1] for line in logs.splitlines()], said.splitlines())
        self.assertTrue((self.data / "runs" / "mnist").exists())
        # The output outlives the pods.
        self.cluster.kubectl("delete", "tfjob", job, "--wait=true")
        wait_until(lambda: not self.cluster.kubectl.get("pods")["items"], "the pods are gone", 60)
        self.assertEqual(self.muster("logs", job, "chief:0").stdout, logs)

    def stop_and_resume(self):
        file = self.example("long", 100000)
        self.muster(*self.run_it(file, "-d"))
        job = self.jobs()[0]["id"]
        follower = self.start("logs", "-f", job, "chief:0")
        wait_until(lambda: "step 50" in follower.stdout.readline(), "it has saved a checkpoint", 120)
        self.assertIn("Stopped", self.muster("stop", "--yes", job).stdout)
        follower.wait(60)
        self.assertEqual(self.cluster.kubectl.get("pods")["items"], [])
        self.muster("resume", "-d", job)
        later = self.jobs()[0]["id"]
        wait_until(lambda: "restored step" in self.muster("logs", later, "chief:0").stdout, "it goes on", 120)
        self.muster("stop", "--yes", "--now", later)


if __name__ == "__main__":
    unittest.main()
