"""The operator's policies, and jobs of v1alpha1, on a real API server without nodes: what becomes of pods the tests say themselves."""
import json
import unittest

try:
    from operators import PATCH, OperatorTest
except ImportError:
    from operator_test import PATCH, OperatorTest
from support import SOURCE, wait_until

EXAMPLE = SOURCE / "examples" / "kubernetes" / "distributed_mnist_v1alpha1.yaml"


class V1Alpha1Test(OperatorTest):
    def old_job(self, name):
        return self.api.ask("GET", f"/apis/tensorflow.org/v1alpha1/namespaces/{self.namespace}/tfjobs/{name}")[1]

    def wait_phase(self, name, phase, state):
        wait_until(lambda: (status := self.old_job(name).get("status", {})) and (status.get("phase"), status.get("state")) == (phase, state),
                   f"{name} is {phase}, {state}", 30)

    def test_the_example_from_creation_to_success(self):
        self.operate()
        self.kubectl("apply", "-f", EXAMPLE)
        # One of the same name, of the other kind: neither disturbs the other.
        self.create("distributed-mnist", {"Worker": {"template": {"spec": {"containers": [{"name": "tensorflow", "image": "tf:1"}]}}}})
        tasks = [f"distributed-mnist-{task}" for task in ("master-5oz2-0", "ps-5oz2-0", "worker-5oz2-0", "worker-5oz2-1")]
        board, other = "distributed-mnist-tensorboard-5oz2", "distributed-mnist-worker-0"
        self.wait_pods(*tasks, board, other)
        self.assertEqual(set(self.all("services")), set(self.all("pods")))
        self.wait_phase("distributed-mnist", "Creating", "Unknown")
        pod = self.all("pods")[tasks[3]]
        env = {variable["name"]: variable["value"] for variable in pod["spec"]["containers"][0]["env"]}
        self.assertEqual(json.loads(env["TF_CONFIG"]), {
            "cluster": {"master": [f"{tasks[0]}:2222"], "ps": [f"{tasks[1]}:2222"], "worker": [f"{name}:2222" for name in tasks[2:]]},
            "task": {"type": "worker", "index": 1}, "environment": "cloud"})
        for name in self.all("pods"):
            self.set_phase(name, "Running")
        self.wait_phase("distributed-mnist", "Running", "Running")
        self.set_phase(tasks[0], "Succeeded")
        self.wait_phase("distributed-mnist", "Done", "Succeeded")
        self.wait_pods(tasks[0], board, other)
        self.assertEqual(self.conditions("distributed-mnist"), ["Created", "Running"])  # the other's
        self.kubectl("delete", "tfjobs.tensorflow.org", "distributed-mnist")
        self.wait_pods(other)


if __name__ == "__main__":
    unittest.main()
