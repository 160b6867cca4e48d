"""The examples run unchanged, including the older forms of job files."""
import ast
import json
import pathlib
import re
import subprocess
import unittest

from digits import write_digits
from support import PYTHON, SOURCE, MusterTest

EXAMPLES = SOURCE / "examples"
ON_A_NODE = "e2e/kubernetes_examples_test.py KubernetesExamplesTest.test_every_manifest_runs_to_its_verdict"
# Every job file of the examples, and the test that runs it to its end.
RUN_BY = {
    "allreduce.yaml": "e2e/example_test.py TrainingExampleTest.test_allreduce",
    "cpp/job.yaml": "install/install_test.py InstallTest.test_the_library_builds_a_program_that_trains",
    "embedding.yaml": "e2e/example_test.py TrainingExampleTest.test_embedding",
    "hello.yaml": "e2e/example_test.py ExampleTest.test_hello",
    "kubernetes/distributed_mnist_v1alpha1.yaml": ON_A_NODE,
    "kubernetes/dynamic_workers.yaml": ON_A_NODE,
    "kubernetes/evaluator.yaml": ON_A_NODE,
    "kubernetes/mnist.yaml": ON_A_NODE,
    "kubernetes/suspended.yaml": ON_A_NODE,
    "kubernetes/tensorflow.yaml": ON_A_NODE,
    "mnist.yaml": "e2e/example_test.py TrainingExampleTest.test_mnist",
    "pytorch_allreduce.yaml": "e2e/example_test.py ExampleTest.test_pytorch_allreduce_runs_unmodified",
    "rendered_cluster.yaml": ON_A_NODE,
    "tensorflow/estimator.yaml": "e2e/tensorflow_test.py EstimatorTest.test_the_estimator_example",
    "tensorflow/mirrored.yaml": "e2e/tensorflow_test.py MirroredTest.test_the_mirrored_example_on_hosts",
    "tensorflow/parameter_server.yaml": "e2e/tensorflow_test.py ParameterServerTest.test_the_parameter_server_example",
    "tfjob.yaml": "e2e/example_test.py ExampleTest.test_tfjob",
    "tfjob_v1alpha1.yaml": "e2e/example_test.py ExampleTest.test_tfjob_v1alpha1",
    "torchscript/torchscript.yaml": "e2e/example_test.py TrainingExampleTest.test_torchscript",
}


def configs(output, speaker):
    """Returns the TF_CONFIGs that tasks printed after `speaker: `."""
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
        # Its addresses in a cluster need none to be printed.
        for options, namespace in (((), "default"), (("-n", "ml"), "ml")):
            rendered = json.loads(self.muster("env", EXAMPLES / "rendered_cluster.yaml", "--cluster", "--on", "kubernetes", *options).stdout)
            self.assertEqual(rendered, {role: [f"{role}-{i}.{namespace}.svc.cluster.local:8080" for i in range(count)]
                                        for role, count in (("ps", 1), ("worker", 2))})

    def test_every_example_is_run_by_a_test(self):
        self.assertEqual(sorted(str(path.relative_to(EXAMPLES)) for path in EXAMPLES.rglob("*.yaml")), sorted(RUN_BY))
        for example, test in RUN_BY.items():
            file, _, name = test.partition(" ")
            text = (SOURCE / "tests" / file).read_text()
            methods = {f"{one.name}.{method.name}" for one in ast.parse(text).body if isinstance(one, ast.ClassDef)
                       for method in one.body if isinstance(method, ast.FunctionDef)}
            self.assertIn(name, methods, example)
            # Besides the table above, the test's file names the example.
            self.assertGreater(text.count(f"{pathlib.Path(example).name}"), 1 if file == "e2e/example_test.py" else 0, f"{test}: {example}")
        # Programs and models beside the job files are what those run.
        jobs = "".join(path.read_text() for path in EXAMPLES.rglob("*") if path.is_file())
        for path in EXAMPLES.rglob("*.*"):
            if path.suffix not in (".yaml", ".md", ".txt"):
                self.assertRegex(jobs, rf"\b{path.stem}\b", f"{path}: nothing uses it")

    def test_every_example_is_valid(self):
        for path in sorted(EXAMPLES.rglob("*.yaml")):
            self.muster("run", "--dry-run", path, cwd=EXAMPLES)


class TrainingExampleTest(MusterTest):
    """The examples of the built-in trainer, with fewer steps and small data."""

    def train(self, path, **numbers):
        """Runs a copy of an example with other values of some keys and returns its output."""
        text = (EXAMPLES / path).read_text()
        for key, value in numbers.items():
            text, changed = re.subn(rf"\b{key}: \d+", f"{key}: {value}", text)
            self.assertGreater(changed, 0, f"{path} has no {key}")
        write_digits(self.dir / "data" / "mnist")
        result = self.muster("run", self.write("job.yaml", text), timeout=170)
        self.assertIn("Succeeded", result.stderr)
        return result.stdout

    def checkpoints(self, model_dir):
        entries = json.loads(self.muster("checkpoint", "list", "--json", model_dir).stdout)
        return {entry["step"]: entry["state"] for entry in entries}

    def test_mnist(self):
        output = self.train("mnist.yaml", steps=8, every_steps=4)
        self.assertRegex(output, r"chief:0 +\| step 8/8, loss")
        self.assertRegex(output, r"evaluator:0 +\| MNIST accuracy: [01]\.\d+, loss \S+ \(step 8, 128 examples of test\)")
        self.assertEqual(self.checkpoints("runs/mnist"), {4: "ok", 8: "ok"})

    def test_the_starter_file_is_the_example(self):
        said = self.muster("init", "mnist").stdout
        self.assertEqual(said.replace("run job.yaml", "run examples/mnist.yaml"), (EXAMPLES / "mnist.yaml").read_text())

    def test_embedding(self):
        output = self.train("embedding.yaml", steps=60, every_steps=30, vocabulary=1000, examples=2000)
        self.assertRegex(output, r"embedding accuracy: \S+, loss \S+ \(step 60, 400 examples of test\)")
        for server in (0, 1):
            self.assertRegex(output, rf"ps:{server} +\| holds \d+ parameters from step 0")

    def test_allreduce(self):
        output = self.train("allreduce.yaml", steps=3, every_steps=2, examples=100, batch_size=4)
        self.assertRegex(output, r"worker:0 \| allreduce accuracy: \S+, loss \S+ \(step 3, 20 examples of test\)")
        self.assertEqual(self.checkpoints("runs/allreduce"), {2: "ok", 3: "ok"})

    def test_torchscript(self):
        made = subprocess.run([PYTHON, EXAMPLES / "torchscript" / "make_model.py", "runs/torchscript/model.pt"],
                              cwd=self.dir, capture_output=True, text=True, timeout=120)
        if "No module named 'torch'" in made.stderr:
            self.skipTest("python3-torch is not installed")
        self.assertEqual(made.returncode, 0, made.stderr)
        output = self.train("torchscript/torchscript.yaml", steps=8, every_steps=4)
        self.assertRegex(output, r"MNIST accuracy: \S+, loss \S+ \(step 8, 128 examples of test\)")
        # Python reads a model that was trained without it.
        script = ("import torch; model = torch.jit.load('runs/torchscript/export/final/model.pt');"
                  "print(tuple(model(torch.zeros(3, 1, 28, 28)).shape))")
        loaded = subprocess.run([PYTHON, "-c", script], cwd=self.dir, capture_output=True, text=True, timeout=120)
        self.assertEqual(loaded.stdout, "(3, 10)\n", loaded.stderr)


if __name__ == "__main__":
    unittest.main()
