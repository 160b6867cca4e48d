"""TensorBoard itself opens the event files of the trainer: scalars, histograms, and the graph with its devices."""
import json
import re
import subprocess
import unittest
import urllib.parse
import urllib.request

from support import PYTHON, SOURCE, wait_until
from training import TrainTest
from venvs import NEWEST, venv

HISTOGRAMS = {"steps": 40, "summary": {"every_steps": 20, "histograms": True}, "checkpoint": {"every_steps": 20}}


def parse_graph(text):
    """Returns the nodes of a GraphDef in protobuf's text format, {name: node}."""
    nodes = {}
    for block in re.findall(r"^node \{\n(.*?)^\}", text, re.M | re.S):
        fields = re.findall(r'^  (name|op|input|device): "(.*)"$', block, re.M)
        node = {key: value for key, value in fields if key != "input"}
        node["inputs"] = [value for key, value in fields if key == "input"]
        nodes[node["name"]] = node
    return nodes


class TensorBoardTest(TrainTest):
    def setUp(self):
        super().setUp()
        self.venv = venv(self, NEWEST)

    def open(self, folder):
        """Starts TensorBoard on a folder and waits until it has loaded the runs."""
        command = [self.venv / "bin/python3", "-m", "tensorboard.main", "--logdir", folder, "--host", "127.0.0.1", "--port", "0",
                   "--load_fast", "false", "--reload_interval", "1"]
        output = self.dir / "tensorboard.txt"
        with open(output, "wb") as file:
            server = subprocess.Popen(command, env=self.env, stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.STDOUT)
        self.addCleanup(server.wait)
        self.addCleanup(server.kill)
        found = wait_until(lambda: server.poll() is not None or re.search(r"at http://127\.0\.0\.1:(\d+)/", output.read_text()),
                           "TensorBoard listens", 100)
        self.assertIsNone(server.poll(), output.read_text())
        self.port = int(found.group(1))
        wait_until(lambda: {".", "eval"} <= set(self.ask("runs")), "TensorBoard has loaded the files", 60)

    def ask(self, path, **query):
        """Returns the response of TensorBoard's HTTP API."""
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        address = f"http://127.0.0.1:{self.port}/data/{path}?{urllib.parse.urlencode(query)}"
        with opener.open(address, timeout=60) as answer:
            body = answer.read().decode()
        return json.loads(body) if answer.headers["Content-Type"].startswith("application/json") else body

    def graph(self):
        self.assertTrue(self.ask("plugin/graphs/info")["."]["run_graph"])
        return parse_graph(self.ask("plugin/graphs/graph", run=".", conceptual="false"))

    def check_closed(self, nodes):
        for name, node in nodes.items():
            for source in node["inputs"]:
                self.assertIn(source, nodes, f"an input of {name}")

    def test_scalars_histograms_and_the_graph(self):
        self.muster("run", self.job("job", roles={"chief": {}, "worker": 1, "ps": 2, "evaluator": {}}, train=HISTOGRAMS))
        self.open(self.model_dir("job"))

        self.assertIn("loss", self.ask("plugin/scalars/tags")["."])
        losses = self.ask("plugin/scalars/scalars", run=".", tag="loss")
        self.assertEqual([step for _, step, _ in losses], [20, 40])
        self.assertTrue(all(0 < loss < 5 for _, _, loss in losses), losses)
        evaluated = self.ask("plugin/scalars/scalars", run="eval", tag="accuracy")
        self.assertEqual(evaluated[-1][1], 40)

        self.assertIn("fc1.weight", self.ask("plugin/histograms/tags")["."])
        histograms = self.ask("plugin/histograms/histograms", run=".", tag="fc3.bias")
        self.assertEqual([step for _, step, _ in histograms], [20, 40])
        self.assertEqual(sum(count for _, _, count in histograms[-1][2]), 10)  # [left, right, count]

        nodes = self.graph()
        self.check_closed(nodes)
        # The layers of both tasks, operation by operation.
        for task, device in (("chief_0", "/job:chief/task:0"), ("worker_0", "/job:worker/task:0")):
            self.assertEqual(nodes[f"{task}/fc1/addmm"]["device"], device)
            self.assertEqual(nodes[f"{task}/relu"]["inputs"], [f"{task}/fc1/addmm"])
            self.assertEqual(nodes[f"{task}/loss"]["device"], device)
        # Variables and their slices are on the servers, values go to the tasks, and gradients return.
        variables = {name: node["device"] for name, node in nodes.items() if node["op"] == "VariableV2"}
        self.assertEqual(set(variables.values()), {"/job:ps/task:0", "/job:ps/task:1"})
        self.assertIn("fc2/weight/part_1", variables)
        for name, device in variables.items():
            update = nodes[f"train/{name}"]
            self.assertEqual((update["op"], update["device"]), ("ApplyAdam", device))
            self.assertEqual([nodes[source]["device"] for source in update["inputs"]],
                             [device, "/job:chief/task:0", "/job:worker/task:0"])

    def test_the_graph_of_a_torchscript_model(self):
        made = subprocess.run([PYTHON, SOURCE / "examples/torchscript/make_model.py", self.dir / "model.pt"],
                              capture_output=True, text=True, timeout=120, env=self.env)
        if "No module named 'torch'" in made.stderr:
            self.skipTest("python3-torch is not installed")
        self.assertEqual(made.returncode, 0, made.stderr)
        self.muster("run", self.job("script", roles={"chief": {}}, train={
            "model": str(self.dir / "model.pt"), "steps": 2, "data": {"examples": 32, "shape": [1, 28, 28]}}))
        self.open(self.model_dir("script"))
        nodes = self.graph()
        self.check_closed(nodes)
        variables = {name for name, node in nodes.items() if node["op"] == "VariableV2"}
        used = {source for node in nodes.values() if not node["op"].startswith("Apply") for source in node["inputs"]}
        self.assertGreater(len(variables), 2)
        # BatchNorm counts batches in a buffer that no operation reads.
        self.assertEqual([name for name in variables - used if not name.endswith("/num_batches_tracked")], [])
        self.assertTrue({"convolution", "batch_norm", "relu", "linear"} <= {node["op"] for node in nodes.values()}, sorted(nodes))


if __name__ == "__main__":
    unittest.main()
