"""The built-in trainer as users run it: muster run, evaluate, predict, exports, summaries, manually started tasks."""
import csv
import json
import os
import random
import re
import textwrap
import unittest

import tfevents
from digits import write_digits
from support import SOURCE, free_ports, processes_with, wait_until
from training import TrainTest

ALONE = {"chief": {}}
PAIR = {"chief": {}, "worker": 1, "ps": 1}
FULL = {"chief": {}, "worker": 2, "ps": 2, "evaluator": {}}
MNIST = {"format": "mnist", "path": str(SOURCE / "data" / "mnist"), "examples": 600, "shape": None}


class RunTest(TrainTest):
    def test_every_task_succeeds_and_no_process_remains(self):
        before = set(os.listdir("/dev/shm"))
        job = self.train("job", roles=FULL)
        self.assertEqual({task["exit_code"] for task in self.show(job)["tasks"]}, {0})
        self.assertEqual(processes_with(f"MUSTER_JOB_ID={job}"), [])
        sockets = [path for path in self.home.rglob("*") if path.is_socket()]
        self.assertEqual(sockets, [])
        names = {path.name for path in self.dir.rglob("*") if path.is_file()}
        self.assertEqual({name for name in names if name.endswith((".new", ".tmp", ".partial"))}, set())
        self.assertEqual({name for name in set(os.listdir("/dev/shm")) - before if "torch" in name}, set())
        self.assertEqual(self.state("job")["step"], 200)

    def test_nothing_is_left_of_allreduce(self):
        job = self.train("job", roles={"chief": {}, "worker": 1})
        left = [path.name for path in (self.home / "jobs" / job / "sockets").glob("rendezvous-*")]
        self.assertEqual(left, [])
        self.assertEqual(processes_with(f"MUSTER_JOB_ID={job}"), [])

    def test_output_of_a_training(self):
        result = self.muster("run", self.job("job", roles=FULL))
        self.assertRegex(result.stdout, r"chief:0 +\| step 10/200, loss \d+\.\d{4}, \d+ examples/s")
        self.assertRegex(result.stdout, r"evaluator:0 +\| job accuracy: 0\.\d{4}, loss .* \(step 200, 102 examples of test\)")
        self.assertRegex(result.stderr, r"checkpoints: .*/runs/job/checkpoints \(latest step 200\)")
        self.assertRegex(result.stderr, r"job accuracy: 0\.\d{4} \(step 200\)")

    def test_progress(self):
        job = self.train("job", roles=PAIR)
        progress = json.loads((self.home / "jobs" / job / "run" / "chief-0" / "progress").read_text())
        self.assertEqual((progress["step"], progress["steps"]), (200, 200))
        self.assertGreater(progress["examples_per_second"], 0)
        self.assertLess(progress["loss"], 2.5)

    def test_it_learns(self):
        if not (SOURCE / "data" / "mnist").is_dir():
            self.skipTest("needs data/mnist: muster data fetch mnist")
        self.muster("run", self.job("job", roles=PAIR, train={"data": MNIST, "steps": 100, "batch_size": 16}))
        said = json.loads(self.muster("evaluate", "job", "--json").stdout)
        self.assertGreater(said["metrics"]["accuracy"], 0.6)
        self.assertEqual(said["step"], 100)

    def test_early_stopping(self):
        flat = {"optimizer": {"type": "sgd", "learning_rate": 0}, "early_stopping": {"patience": 20}}
        for name, roles in (("servers", FULL), ("reduced", {"chief": {}, "worker": 1, "evaluator": {}})):
            job = self.train(name, roles=roles, train=dict(flat, steps=10 ** 6))
            self.assertIn("stopping after step", self.text(job, "chief:0"))
            step = self.bytes_of(name)[0]
            self.assertLess(step, 10 ** 6)
            self.assertEqual(json.loads((self.model_dir(name) / "eval" / "latest.json").read_text())["step"], step)

    def test_a_resumed_job_goes_further(self):
        self.train("job", roles=FULL, train={"steps": 40})
        job = self.train("job", roles=FULL, train={"steps": 120})
        self.assertIn("restored step 40", self.text(job, "chief:0"))
        self.assertEqual(self.bytes_of("job")[0], 120)
        # The evaluator has waited for this checkpoint, and not used the last one of the earlier job.
        self.assertEqual(json.loads((self.model_dir("job") / "eval" / "latest.json").read_text())["step"], 120)

    def test_a_finished_job_has_nothing_to_do(self):
        self.train("job", roles=PAIR, train={"steps": 40})
        before = self.bytes_of("job")
        job = self.train("job", roles=PAIR, train={"steps": 40})
        self.assertIn("nothing to do", self.text(job, "chief:0"))
        self.assertEqual(self.bytes_of("job"), before)

    OTHER = {"steps": 40, "optimizer": {"type": "sgd", "learning_rate": 0.05}}

    def test_a_finished_job_with_other_settings_fails(self):
        first = self.train("job", roles=FULL, train={"steps": 40})
        before = self.bytes_of("job")
        result = self.muster("run", self.job("job", roles=FULL, train=self.OTHER), check=False)
        self.assertEqual(result.returncode, 1, result.stdout)
        self.assertRegex(result.stderr, f"cause +exit code 1: nothing was trained: .*/runs/job was trained to step 40 by {first} "
                                        "with other settings; start anew with `muster run --fresh`")
        self.assertIn("optimizer.learning_rate 0.05, was 0.001; optimizer.type sgd, was adam\n", result.stderr)
        summary = result.stderr[result.stderr.index(" Failed after "):]
        self.assertNotIn("accuracy", summary)  # of the first run
        self.assertNotIn("checkpoints: ", summary)
        self.assertNotIn("accuracy", result.stdout)  # including the evaluator's
        self.assertEqual(self.bytes_of("job"), before)

    def test_running_again_names_the_job_of_the_checkpoint(self):
        first = self.train("job", roles=PAIR, train={"steps": 40})
        result = self.muster("run", self.job("job", roles=PAIR, train={"steps": 40}))
        self.assertIn("nothing was trained: step 40 had already been reached", result.stderr)
        self.assertIn(f"(latest step 40, of {first})", result.stderr)
        self.assertNotIn("trained to step 40; ", result.stdout)

    def test_a_resumed_run_reports_changed_settings(self):
        self.train("job", roles=ALONE, train={"steps": 40})
        job = self.train("job", roles=ALONE, train=dict(self.OTHER, steps=60))
        self.assertRegex(self.text(job, "chief:0"), r"trained to step 40 by \S+ with other settings \(.*"
                                                    r"learning_rate 0\.05, was 0\.001.*\); continuing from there")

    def test_fresh(self):
        self.train("plain", roles=FULL, train=self.OTHER)
        self.train("job", roles=FULL, train={"steps": 60, "export": {"when": "final"}})
        old = {path.name for path in self.model_dir("job").iterdir()}
        said = self.muster("run", "--fresh", self.job("job", roles=FULL, train=self.OTHER)).stderr
        self.assertEqual(self.bytes_of("job"), self.bytes_of("plain"))
        self.assertIn("(latest step 40)", said)
        aside = self.model_dir("job") / "superseded-1"
        moved = {path.name for path in aside.iterdir()}
        self.assertLessEqual({"step-000000040", "step-000000060", "best.json", "eval", "export"}, moved)
        self.assertTrue({name for name in old if name.startswith("events.out.tfevents.")} <= moved)
        self.assertEqual(json.loads((self.model_dir("job") / "eval" / "latest.json").read_text())["step"], 40)
        self.assertTrue(list((self.model_dir("job") / "eval").glob("events.out.tfevents.*")))

    def test_fresh_applies_once_despite_restarts(self):
        self.train("job", roles=PAIR, train={"steps": 30})
        said = self.muster("run", "--fresh", "-d", self.job("job", roles=PAIR)).stdout
        job = re.search(r"Started (\S+) in", said).group(1)
        self.wait_checkpoint("job", 40)
        self.kill_task(job, "chief:0")
        self.succeed(job)
        self.assertEqual([path.name for path in self.model_dir("job").glob("superseded-*")], ["superseded-1"])
        self.assertEqual(self.bytes_of("job")[0], 200)

    def test_fresh_of_a_job_that_cannot_be(self):
        own = self.write("own.yaml", "name: own\nroles: {worker: {command: 'true'}}\n")
        self.assertIn("no `train` section", self.muster("run", "--fresh", own, check=False).stderr)
        job = self.launch("job", roles=ALONE, train={"steps": 10 ** 7})
        said = self.muster("run", "--fresh", self.job("job", roles=ALONE, train={"steps": 9}), check=False)
        self.assertIn(f"--fresh is for a new job, and {job} is running", said.stderr)

    def test_a_model_dir_of_its_own_for_every_run(self):
        dirs = set()
        for _ in range(2):
            job = self.train("job", roles=PAIR, model_dir="runs/{job_id}", train={"steps": 10})
            self.assertEqual(self.show(job)["model_dir"], str(self.dir / "runs" / job))
            self.assertTrue((self.dir / "runs" / job / "checkpoints" / "step-000000010").is_dir())
            dirs.add(self.show(job)["model_dir"])
        self.assertEqual(len(dirs), 2)
        self.muster("resume", job)
        resumed = next(other for other in self.jobs() if other["resumed_from"] == job)
        self.assertEqual(resumed["model_dir"], str(self.dir / "runs" / job))
        printed = self.env_of(self.dir / "job.yaml", "chief")
        self.assertEqual(printed["MUSTER_MODEL_DIR"], str(self.dir / "runs" / "job"))

    def test_a_running_job_keeps_the_model_dir_of_its_id(self):
        file = self.job("job", roles=ALONE, model_dir="runs/{job_id}", train={"steps": 10 ** 7})
        self.muster("run", "-d", file)
        self.assertIn("nothing changed", self.muster("run", "-d", file).stdout)

    def test_resumed_from_a_step(self):
        self.train("job", roles=PAIR)
        before = self.bytes_of("job")
        self.muster("resume", "job", "--from", "80")
        self.assertEqual(self.bytes_of("job"), before)
        self.assertTrue(list(self.model_dir("job").glob("superseded-*")))

    def test_warm_start(self):
        self.train("first", roles=PAIR, train={"steps": 60})
        job = self.train("second", roles=PAIR, train={"steps": 10, "warm_start": str(self.model_dir("first")),
                                                      "optimizer": {"type": "sgd", "learning_rate": 0}})
        self.assertRegex(self.text(job, "chief:0"), r"warm start from step 60 in .*: 6 of 6 tensors")
        self.assertEqual(self.bytes_of("second", ["model"])[1], self.bytes_of("first", ["model"])[1])


    NETS = """
import torch
for name in 'ab':
    torch.manual_seed(ord(name))
    net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(36, 16), torch.nn.ReLU(), torch.nn.Linear(16, 10))
    net[1].requires_grad_(False)
    torch.jit.script(net).save(name + '.pt')
"""

    def test_buffers_reach_every_task(self):
        self.python_torch(self.NETS)
        self.train("lender", roles=ALONE, train={"model": "./a.pt", "steps": 1, "optimizer": {"type": "sgd", "learning_rate": 0}})
        for roles in (PAIR, {"chief": {}, "worker": 1}):
            name = f"of{len(roles)}"
            self.train(f"own-{name}", roles=roles, train={"model": "./a.pt", "steps": 30})
            self.train(f"lent-{name}", roles=roles, train={"model": "./b.pt", "steps": 30,
                                                           "warm_start": str(self.model_dir("lender"))})
            self.assertEqual(self.bytes_of(f"own-{name}"), self.bytes_of(f"lent-{name}"))

    SPARSE = """
import torch
for sparse in (False, True):
    torch.manual_seed(3)
    net = torch.nn.Sequential(torch.nn.Embedding(300, 8, sparse=sparse), torch.nn.Flatten(), torch.nn.Linear(16 * 8, 2))
    torch.jit.script(net).save('sparse.pt' if sparse else 'dense.pt')
"""

    def test_sparse_gradients_of_a_torchscript_model(self):
        """They are sent whole, and the result equals that of sparse=False bit for bit."""
        self.python_torch(self.SPARSE)
        data = {"kind": "tokens", "vocabulary": 300, "shape": None}
        for name, roles, more in (("ps", {"chief": {}, "worker": 1, "ps": 2}, {}),
                                  ("clipped", PAIR, {"clip_norm": 0.1}),
                                  ("unguarded", PAIR, {"nan_guard": "off"}),
                                  ("reduced", {"chief": {}, "worker": 1}, {}),
                                  ("alone", ALONE, {"nan_guard": "off"})):
            for kind in ("dense", "sparse"):
                self.train(f"{kind}-{name}", roles=roles, train=dict(more, model=f"./{kind}.pt", steps=20, data=data))
            self.assertEqual(self.bytes_of(f"sparse-{name}"), self.bytes_of(f"dense-{name}"), name)

    BY_POSITION = textwrap.dedent("""
        import torch
        torch.manual_seed(3)
        class Net(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.fc = torch.nn.Linear(32 * 8, 6 * 8)
            def forward(self, x):
                return self.fc(x.flatten(1)).view(-1, 6, 8)
        torch.jit.trace(Net(), torch.zeros(2, 32, 8)).save('positions.pt')
        """)

    def test_predictions_of_a_class_for_each_position(self):
        self.python_torch(self.BY_POSITION)
        self.train("job", roles=ALONE, train={
            "model": "./positions.pt", "loss": "cross_entropy", "steps": 200, "optimizer": {"learning_rate": 0.01},
            "data": {"kind": "sequence", "shape": None}})
        self.muster("predict", "job", "--split", "train", "--to", "out.csv")
        with open(self.dir / "out.csv", newline="") as file:
            rows = list(csv.DictReader(file))
        self.assertEqual([(int(row["example"]), int(row["position"])) for row in rows],
                         [(example, position) for example in range(512) for position in range(8)])
        self.assertTrue({int(row["class"]) for row in rows} <= set(range(6)))
        self.assertGreater(len({row["class"] for row in rows}), 1)
        for row in rows:
            self.assertTrue(1 / 6 <= float(row["probability"]) <= 1, row)

    def test_evaluations_can_be_off(self):
        # There is no test split, which only an evaluation needs.
        write_digits(self.dir / "digits")
        for path in (self.dir / "digits").glob("t10k-*"):
            path.unlink()
        data = {"format": "mnist", "path": str(self.dir / "digits"), "examples": None, "shape": None}
        job = self.train("job", roles=ALONE, train={"steps": 10, "data": data, "evaluate": "off"})
        self.assertNotIn("accuracy", self.text(job, "chief:0"))
        self.assertFalse((self.model_dir("job") / "eval").exists())
        self.assertIn("(step 10, ", self.muster("evaluate", "job", "--split", "train").stdout)
        self.assertIn("test", self.fails("other", roles=ALONE, train={"steps": 10, "data": data}))

    def test_a_limited_evaluation_does_not_limit_predictions(self):
        self.train("job", roles=ALONE, train={"steps": 10, "evaluate": {"steps": 1, "batch_size": 10}})
        self.assertIn("10 examples of test", self.muster("evaluate", "job").stdout)
        self.muster("predict", "job", "--to", "all.csv")
        self.assertEqual(len((self.dir / "all.csv").read_text().splitlines()), 1 + 102)


class EvaluateTest(TrainTest):
    def setUp(self):
        super().setUp()
        self.id = self.train("job", roles=FULL, train={"export": {"when": "final"}})

    def test_checkpoints_by_name(self):
        latest = self.muster("evaluate", "job").stdout
        self.assertRegex(latest, r"job accuracy: 0\.\d{4}, loss .*\(step 200, 102 examples of test\)")
        best = json.loads((self.model_dir("job") / "checkpoints" / "best.json").read_text())["step"]
        self.assertIn(f"(step {best}, ", self.muster("evaluate", "job", "--checkpoint", "best").stdout)
        steps = [int(path.name[5:]) for path in sorted((self.model_dir("job") / "checkpoints").glob("step-*"))]
        self.assertIn(f"(step {steps[0]}, 512 examples of train)",
                      self.muster("evaluate", "job", "--split", "train", "--checkpoint", steps[0]).stdout)
        missing = self.muster("evaluate", "job", "--checkpoint", "3", check=False)
        self.assertEqual(missing.returncode, 1)
        self.assertIn(f"no checkpoint of step 3; available: {', '.join(map(str, steps))}\n", missing.stderr)
        # The evaluator and `muster evaluate` agree.
        kept = json.loads((self.model_dir("job") / "eval" / "latest.json").read_text())
        said = json.loads(self.muster("evaluate", "job", "--json").stdout)
        self.assertEqual(said["metrics"], dict(kept["metrics"]))

    def test_files_are_replaced_on_request_only(self):
        self.write("out.csv", "precious")
        refused = self.muster("predict", "job", "--to", "out.csv", check=False)
        self.assertEqual(refused.returncode, 1)
        self.assertIn("out.csv: exists; --force replaces it", refused.stderr)
        self.assertEqual((self.dir / "out.csv").read_text(), "precious")
        self.muster("predict", "job", "--to", "out.csv", "--force")
        self.assertTrue((self.dir / "out.csv").read_text().startswith("example,"))

    def test_predictions_and_the_exported_model_agree(self):
        self.muster("predict", "job", "--to", "out.csv")
        with open(self.dir / "out.csv", newline="") as file:
            rows = list(csv.DictReader(file))
        self.assertEqual([int(row["example"]) for row in rows], list(range(102)))
        exported = self.model_dir("job") / "export" / "final" / "model.pt"
        weights = next(self.checkpoint("job").glob("model-*.safetensors"))
        # Compares with a model that is built from the checkpoint alone.
        said = self.python_torch("""
import json, struct, sys, torch
net = torch.jit.load(sys.argv[1])
data = open(sys.argv[2], "rb").read()
size = struct.unpack("<Q", data[:8])[0]
w = {}
for name, spec in json.loads(data[8:8 + size]).items():
    if name != "__metadata__":
        first, last = spec["data_offsets"]
        part = data[8 + size + first:8 + size + last]
        w[name] = torch.frombuffer(bytearray(part), dtype=torch.float32).reshape(spec["shape"])
torch.manual_seed(0)
for count in (1, 7):
    x = torch.randn(count, 1, 6, 6)
    h = x.flatten(1)
    for layer in ("fc1", "fc2"):
        h = torch.relu(h @ w[layer + ".weight"].T + w[layer + ".bias"])
    y = h @ w["fc3.weight"].T + w["fc3.bias"]
    assert torch.equal(net(x).argmax(1), y.argmax(1))
    assert torch.allclose(net(x), y, atol=1e-5)
print("same", not net.training)
""", exported, weights)
        self.assertEqual(said.strip(), "same True")


class ExportTest(TrainTest):
    def test_safetensors(self):
        self.train("job", roles=ALONE, train={"steps": 40, "export": {"when": "best", "format": "safetensors"}})
        path = self.model_dir("job") / "export" / "best" / "model.safetensors"
        size = int.from_bytes(path.read_bytes()[:8], "little")
        self.assertIn("fc1.weight", json.loads(path.read_bytes()[8:8 + size]))

    def test_a_table_that_the_chief_evaluates(self):
        """The chief trains with a part of the rows, and evaluates with all of them."""
        self.muster("run", self.job("job", roles=PAIR, train={
            "model": "embedding", "steps": 60,
            "data": {"kind": "tokens", "vocabulary": 300, "shape": None}}))
        kept = json.loads((self.model_dir("job") / "eval" / "latest.json").read_text())
        said = json.loads(self.muster("evaluate", "job", "--json").stdout)
        self.assertEqual((said["step"], said["metrics"]), (60, dict(kept["metrics"])))


class SummaryTest(TrainTest):
    def event_file(self, folder, suffix):
        return [event for path in sorted(folder.glob(f"events.out.tfevents.*{suffix}")) for event in tfevents.events(path)]

    def test_scalars_histograms_and_the_graph(self):
        self.train("job", roles=FULL, train={"steps": 60, "summary": {"every_steps": 20, "histograms": True}})
        events = self.event_file(self.model_dir("job"), "train")
        values = [(event.get("step", 0), value) for event in events for value in event.get("summary", {}).get("value", [])]
        losses = {step: value["simple_value"] for step, value in values if value["tag"] == "loss"}
        self.assertEqual(sorted(losses), [20, 40, 60])
        self.assertTrue(all(0 < loss < 3 for loss in losses.values()))
        histograms = {value["tag"]: value["histo"] for step, value in values if "histo" in value and step == 60}
        self.assertEqual(histograms["fc3.bias"]["num"], 10)
        nodes = {node["name"]: node for event in events for node in event.get("graph_def", {}).get("node", [])}
        devices = {node["device"] for node in nodes.values() if node["op"] == "VariableV2"}
        self.assertEqual(devices, {"/job:ps/task:0", "/job:ps/task:1"})
        self.assertEqual(nodes["chief_0/loss"]["device"], "/job:chief/task:0")
        self.assertEqual(nodes["worker_0/fc1/addmm"]["device"], "/job:worker/task:0")
        evaluated = self.event_file(self.model_dir("job") / "eval", "eval")
        self.assertIn((60, "accuracy"), [(event.get("step", 0), value["tag"]) for event in evaluated
                                         for value in event.get("summary", {}).get("value", [])])


    def test_async_writes_as_many_summaries(self):
        job = self.train("job", roles=PAIR, train={"strategy": "async", "steps": 300, "log_every_steps": 20,
                                                   "summary": {"every_steps": 20}})
        losses = [event.get("step", 0) for event in self.event_file(self.model_dir("job"), "train")
                  for value in event.get("summary", {}).get("value", []) if value["tag"] == "loss"]
        said = re.findall(r"^step (\d+)/", self.text(job, "chief:0"), re.M)
        self.assertGreaterEqual(len(losses), len(said) - 1, (losses, said))  # the last step is always logged


class ByHandTest(TrainTest):
    """Tasks started one by one, as on separate machines, in any order."""

    def ends_well(self, processes):
        for process in processes:
            self.expect_exit(process, 0)

    def test_with_tf_config(self):
        ports = free_ports(4)
        file = self.job("hand", roles={"chief": {"port": ports[0]}, "worker": {"replicas": 2, "port": ports[1]},
                                       "ps": {"port": ports[3]}, "evaluator": {}})
        tasks = [("chief", 0), ("worker", 0), ("worker", 1), ("ps", 0), ("evaluator", 0)]
        random.shuffle(tasks)
        self.ends_well([self.by_hand(self.env_of(file, role, index)) for role, index in tasks])
        self.train("plain", roles={"chief": {}, "worker": 2, "ps": 1})
        self.assertEqual(self.bytes_of("hand"), self.bytes_of("plain"))
        self.assertEqual(json.loads((self.model_dir("hand") / "eval" / "latest.json").read_text())["step"], 200)

    def test_with_the_four_flags(self):
        ports = free_ports(3)
        address = [f"127.0.0.1:{port}" for port in ports]
        env = {name: value for name, value in self.env_of(self.job("hand", roles=ALONE), "chief").items()
               if name != "TF_CONFIG" and not name.startswith("MUSTER_") or name == "MUSTER_TRAIN_CONFIG"}
        tasks = [("ps", 0), ("worker", 0), ("worker", 1)]
        random.shuffle(tasks)
        processes = [self.by_hand(env, f"--job_name={role}", f"--task_index={index}", f"--ps_hosts={address[0]}",
                                  f"--worker_hosts={address[1]},{address[2]}", f"--model_dir={self.model_dir('hand')}")
                     for role, index in tasks]
        self.ends_well(processes)
        self.assertEqual(self.bytes_of("hand")[0], 200)
        leader = processes[tasks.index(("worker", 0))]
        self.assertRegex(leader.output(), r"accuracy: 0\.\d+.*\(step 200")

    def test_allreduce(self):
        ports = free_ports(2)
        file = self.job("hand", roles={"worker": {"replicas": 2, "port": ports[0]}}, train={"strategy": "allreduce"})
        order = [0, 1]
        random.shuffle(order)
        self.ends_well([self.by_hand(self.env_of(file, "worker", index)) for index in order])
        self.assertEqual(self.bytes_of("hand")[0], 200)

    def test_a_worker_that_starts_late(self):
        ports = free_ports(3)
        file = self.job("hand", roles={"chief": {"port": ports[0]}, "worker": {"port": ports[1]}, "ps": {"port": ports[2]}},
                        train={"strategy": "async", "steps": 1500})
        first = [self.by_hand(self.env_of(file, role)) for role in ("ps", "chief")]
        wait_until(lambda: "step 10/" in first[1].output(), "the chief trains")
        late = self.by_hand(self.env_of(file, "worker"))
        self.ends_well([*first, late])
        self.assertEqual(self.bytes_of("hand")[0], 1500)
        self.assertGreater(min(self.state("hand")["cursors"]), 0)


if __name__ == "__main__":
    unittest.main()
