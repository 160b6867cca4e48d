"""The examples run as they are; the older forms of job files too."""
import json
import re
import subprocess
import unittest

from support import PYTHON, SOURCE, MusterTest

EXAMPLES = SOURCE / "examples"


def configs(output, speaker):
    """The TF_CONFIGs that tasks printed after `speaker: `."""
    return [json.loads(text) for text in re.findall(rf"\| {speaker}: (\{{.*\}})", output)]


class ExampleTest(MusterTest):
    def test_hello(self):
        result = self.muster("run", EXAMPLES / "hello.yaml")
        self.assertRegex(result.stdout, r"worker:1 \| I am worker:1, rank 2 of 3; the parameters are at 127\.0\.0\.1:\d+")
        self.assertIn("chief:0  | done", result.stdout)
        self.assertEqual(self.task("hello", "ps:0")["state"], "Stopped")

    def test_pytorch_allreduce_runs_unmodified(self):
        if subprocess.run([PYTHON, "-c", "import torch.distributed as d; assert d.is_gloo_available()"],
                          capture_output=True, timeout=120).returncode != 0:
            self.skipTest("python3-torch is not installed")
        result = self.muster("run", "pytorch_allreduce.yaml", cwd=EXAMPLES, timeout=170)
        for rank in (0, 1):
            self.assertIn(f"worker:{rank} | rank {rank} of 2 has [3.0, 3.0, 3.0, 3.0]", result.stdout)

    def test_tfjob(self):
        output = self.muster("run", EXAMPLES / "tfjob.yaml").stdout
        chief, = configs(output, "chief")
        self.assertEqual(chief["task"], {"type": "chief", "index": 0})
        self.assertEqual(chief["environment"], "cloud")
        # Its operator lists the evaluator, unlike TensorFlow.
        self.assertEqual({role: len(hosts) for role, hosts in chief["cluster"].items()}, {"chief": 1, "worker": 2, "evaluator": 1})
        workers = configs(output, "worker")
        self.assertEqual(sorted(config["task"]["index"] for config in workers), [0, 1])
        self.assertEqual({json.dumps(config["cluster"]) for config in workers}, {json.dumps(chief["cluster"])})

    def test_tfjob_v1alpha1(self):
        output = self.muster("run", EXAMPLES / "tfjob_v1alpha1.yaml").stdout
        master, = configs(output, "master")
        self.assertEqual(master["task"], {"type": "master", "index": 0})
        self.assertEqual({role: len(hosts) for role, hosts in master["cluster"].items()}, {"master": 1, "worker": 2, "ps": 1})
        self.assertEqual(master["environment"], "cloud")
        self.assertEqual(self.task("old-hello", "ps:0")["state"], "Stopped")

    def test_rendered_cluster(self):
        plan = self.muster("run", "--dry-run", EXAMPLES / "rendered_cluster.yaml").stdout
        for task in ("ps:0", "worker:0", "worker:1"):
            self.assertIn(task, plan)
        cluster = json.loads(self.muster("env", EXAMPLES / "rendered_cluster.yaml", "--cluster").stdout)
        self.assertEqual({role: len(hosts) for role, hosts in cluster.items()}, {"ps": 1, "worker": 2})

    def test_every_example_is_valid(self):
        for path in sorted(EXAMPLES.glob("*.yaml")):
            self.muster("run", "--dry-run", path, cwd=EXAMPLES)


if __name__ == "__main__":
    unittest.main()
