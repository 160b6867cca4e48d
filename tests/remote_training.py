"""Training with data and model dir in a storage."""
import json
import re

import storages
from digits import write_digits
from support import SOURCE
from training import TrainTest

EXAMPLE = SOURCE / "examples" / "mnist.yaml"


class RemoteTest(TrainTest):
    def setUp(self):
        super().setUp()
        self.env["MUSTER_CACHE"] = str(self.dir / "cache")

    def use(self, storage):
        """Starts that storage for the rest of the test. Returns the URL of a folder in it."""
        return getattr(storages, f"use_{storage}")(self)

    def entries(self, place):
        listed = json.loads(self.muster("checkpoint", "list", "--json", place).stdout)
        return {entry["step"]: entry for entry in listed}

    def names(self, place):
        """Returns all files at a URL, as names relative to it."""
        listed = json.loads(self.muster("storage", "ls", "-r", "--json", place).stdout)
        return sorted(entry["url"][len(place):].lstrip("/") for entry in listed)

    def weights(self, place):
        self.muster("checkpoint", "export", place, "--to", "weights.safetensors", "--force")
        return (self.dir / "weights.safetensors").read_bytes()

    def left_here(self):
        return list((self.dir / "cache" / "runs").glob("*"))

    def train_example(self, place):
        """Returns the example's job file with other numbers of steps, data and model dir."""
        write_digits(self.dir / "digits")
        self.muster("storage", "cp", "-r", "digits", f"{place}/data")
        text = EXAMPLE.read_text().replace("runs/mnist", f"{place}/run").replace("data/mnist", f"{place}/data")
        for old, new in (("steps: 500", "steps: 20"), ("every_steps: 250", "every_steps: 10")):
            self.assertIn(old, text)
            text = text.replace(old, new)
        result = self.muster("run", self.write("job.yaml", text), timeout=170)
        self.assertRegex(result.stderr, rf"checkpoints: {re.escape(place)}/run/checkpoints \(latest step 20\)")
        self.assertRegex(result.stderr, r"MNIST accuracy: \d\.\d+ \(step 20\)")
        found = self.entries(f"{place}/run")
        self.assertEqual({step: entry["state"] for step, entry in found.items()}, {10: "ok", 20: "ok"})
        self.assertTrue(found[20]["final"])
        self.assertEqual(sum(entry["best"] for entry in found.values()), 1)
        names = self.names(f"{place}/run")
        for pattern in (r"events\.out\.tfevents\..*train", r"eval/events\..*", r"eval/latest\.json", r"checkpoints/best\.json"):
            self.assertTrue(any(re.fullmatch(pattern, name) for name in names), f"{pattern}: {names}")
        self.assertEqual(self.left_here(), [])
        self.assertRegex(self.muster("evaluate", "mnist", "--checkpoint", "10").stdout, r"accuracy: .*\(step 10,")
        self.assertIn("ok", self.muster("checkpoint", "verify", f"{place}/run").stdout)
        self.muster("predict", "mnist", "--to", f"{place}/predictions.csv")
        predicted = self.muster("storage", "cat", f"{place}/predictions.csv").stdout.splitlines()
        self.assertEqual(predicted[0], "example,class,probability")
        self.assertEqual(len(predicted), 1 + 128)
        self.muster("checkpoint", "export", f"{place}/run", "--to", f"{place}/weights.safetensors")
        self.muster("storage", "cp", f"{place}/weights.safetensors", "there.safetensors")
        self.assertEqual((self.dir / "there.safetensors").read_bytes(), self.weights(f"{place}/run"))
        again = self.muster("checkpoint", "export", f"{place}/run", "--to", f"{place}/weights.safetensors", check=False)
        self.assertEqual(again.returncode, 1)
        self.assertIn("exists; --force replaces it", again.stderr)
