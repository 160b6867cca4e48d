"""Ceph's gateway as the S3 that real clusters have: every storage's rules, the commands, and a training on it."""
import os
import pathlib
import subprocess
import unittest

import storages
from remote_training import RemoteTest

STORAGE_TEST = pathlib.Path(os.environ["MUSTER"]).with_name("storage_test")


class RadosgwTest(RemoteTest):
    """One test, because a gateway takes long to come up."""

    def test_all(self):
        place = storages.use_radosgw(self)
        with self.subTest("what every storage must do"):
            result = subprocess.run([STORAGE_TEST, "--gtest_filter=Radosgw/*"], env={**self.env, "MUSTER_TEST_RADOSGW": f"{place}/conformance"},
                                    capture_output=True, text=True, timeout=300)
            self.assertEqual(result.returncode, 0, result.stdout)
            self.assertNotIn("SKIPPED", result.stdout)
            self.assertIn("[  PASSED  ] 20 tests.", result.stdout)
        with self.subTest("large files go in parts, and are the same when they come back"):
            content = os.urandom(1 << 20) * 40
            (self.dir / "large").write_bytes(content)
            self.muster("storage", "cp", "large", f"{place}/a b/ü%2F#?")
            self.muster("storage", "cp", f"{place}/a b/ü%2F#?", "back")
            self.assertEqual((self.dir / "back").read_bytes(), content)
        with self.subTest("mistakes are explained"):
            for variable, value in (("AWS_SECRET_ACCESS_KEY", "wrong"), ("AWS_ACCESS_KEY_ID", "NOBODY")):
                result = self.muster("storage", "ls", place, env={**self.env, variable: value}, check=False)
                self.assertEqual(result.returncode, 1)
                self.assertIn(variable, result.stderr)
            result = self.muster("storage", "ls", "s3://nowhere/x", check=False)
            self.assertIn("there is no bucket 'nowhere'", result.stderr)
        with self.subTest("the example trains"):
            self.train_example(place)


if __name__ == "__main__":
    unittest.main()
