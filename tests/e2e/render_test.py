"""muster render: manifests of every form of job file."""
import json
import unittest

from support import SOURCE, MusterTest

EXAMPLES = SOURCE / "src" / "launch" / "kubernetes" / "testdata"


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
