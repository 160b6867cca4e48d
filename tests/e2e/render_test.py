"""muster render: manifests of every form of job file."""
import json
import unittest

from support import SOURCE, MusterTest

EXAMPLES = SOURCE / "src" / "manifest" / "testdata"


class RenderTest(MusterTest):
    JOB = {"name": "a", "image": "busybox:1", "roles": {"worker": {"replicas": 2, "command": "echo {index}"}}}

    def job(self, **changes):
        return self.write("job.yaml", json.dumps({**self.JOB, **changes}))

    def test_to_a_file_that_others_cannot_read(self):
        result = self.muster("render", self.job(notebook={"password": "hunter2"}), "-o", "out.yaml")
        self.assertEqual(result.stdout, "")
        self.assertIn("kubectl apply -f out.yaml", result.stderr)
        text = (self.dir / "out.yaml").read_text()
        self.assertNotIn("hunter2", text)
        self.assertEqual((self.dir / "out.yaml").stat().st_mode & 0o777, 0o600)
        self.assertEqual(text.count("kind: Job\n"), 2)

    def test_options(self):
        result = self.muster("render", self.job(), "-n", "mine", "--create-namespace", "--domain", "my.domain")
        self.assertIn("kind: Namespace\nmetadata:\n  name: mine\n", result.stdout)
        self.assertIn("a-worker-1.mine.svc.my.domain:2222", result.stdout)

    def test_the_same_every_time(self):
        once, twice = (self.muster("render", self.job()).stdout for _ in range(2))
        self.assertEqual(once, twice)

    def test_fields_that_kubernetes_would_drop_are_told(self):
        job = ("apiVersion: kubeflow.org/v1\nkind: TFJob\nmetadata: {name: j}\nspec:\n  tfReplicaSpecs:\n    Worker:\n      template:\n        spec:\n"
               "          containers:\n            - {name: tensorflow, image: tf, command: [a], imagePullPolciy: Always}\n")
        path = self.write("job.yaml", job)
        warning = f"{path}:10:59: unknown field 'imagePullPolciy' in the template of 'Worker' (did you mean 'imagePullPolicy'?); Kubernetes ignores it"
        for command in (("render",), ("run", "--dry-run"), ("explain",)):
            self.assertIn(f"warning: {warning}", self.muster(*command, path).stderr, command)
        native = self.write("native.yaml", "name: n\nimage: i\nkubernetes: {pod: {nodeSelctor: {a: b}}}\nroles: {worker: {command: a}}\n")
        self.assertIn("unknown field 'nodeSelctor' in 'pod' of kubernetes (did you mean 'nodeSelector'?)", self.muster("render", native).stderr)
        wrong = self.write("wrong.yaml", "name: n\nimage: i\nkubernetes: {container: {volumeMounts: 5}}\nroles: {worker: {command: a}}\n")
        refused = self.muster("render", wrong, check=False)
        self.assertEqual(refused.returncode, 2)
        self.assertIn("'volumeMounts' in 'container' of kubernetes must be a list, not the number 5", refused.stderr)

    def test_mistakes(self):
        del self.JOB["image"]
        self.addCleanup(self.JOB.__setitem__, "image", "busybox:1")
        refused = self.muster("render", self.job(), check=False)
        self.assertEqual((refused.returncode, refused.stdout), (2, ""))
        self.assertIn("role 'worker' has no image", refused.stderr)
        refused = self.muster("render", self.job(image="i", kubernetes={"pods": {}}), check=False)
        self.assertIn("unknown key 'pods' in kubernetes", refused.stderr)
        self.assertEqual(self.muster("render", self.job(image="i"), "-o", "no/such/folder/x", check=False).returncode, 1)


if __name__ == "__main__":
    unittest.main()
