"""Storages as others implement them (Ceph's gateway, MinIO, fake-gcs-server, Hadoop): the conformance tests, the
commands, and a training on each."""
import os
import pathlib
import re
import subprocess
import unittest

from remote_training import RemoteTest

STORAGE_TEST = pathlib.Path(os.environ["MUSTER"]).with_name("storage_test")


class StorageServersTest(RemoteTest):
    """One test a server, because some take long to start."""

    def check_all(self, place):
        with self.subTest("what every storage must do"):
            result = subprocess.run([STORAGE_TEST, "--gtest_filter=Server/*"], env={**self.env, "MUSTER_TEST_STORAGE": f"{place}/conformance"},
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
        with self.subTest("the example trains"):
            self.train_example(place)

    def check_mistake(self, text, *command, **env):
        result = self.muster(*command, env={**self.env, **env}, check=False)
        self.assertEqual(result.returncode, 1)
        self.assertIn(text, result.stderr)

    def check_s3(self, place):
        self.check_all(place)
        for variable, value in (("AWS_SECRET_ACCESS_KEY", "wrong"), ("AWS_ACCESS_KEY_ID", "NOBODY")):
            self.check_mistake(variable, "storage", "ls", place, **{variable: value})
        self.check_mistake("there is no bucket 'nowhere'", "storage", "ls", "s3://nowhere/x")

    def test_radosgw(self):
        self.check_s3(self.use("radosgw"))

    def test_minio(self):
        self.check_s3(self.use("minio"))

    def test_fake_gcs_server(self):
        self.check_all(self.use("fake_gcs"))
        self.check_mistake("there is no bucket 'nowhere'", "storage", "ls", "gs://nowhere/x")

    def test_hadoop(self):
        place = self.use("hadoop")
        self.assertEqual(self.muster("storage", "mb", place).stdout, f"made {place}\n")
        self.check_all(place)
        site = pathlib.Path(self.env["HADOOP_CONF_DIR"], "core-site.xml").read_text()
        rpc = re.search(r"<name>fs\.defaultFS</name><value>([^<]+)", site)[1]
        web = re.search(r"<name>dfs\.namenode\.http-address</name><value>([^<]+)", site)[1]
        for other in (f"{rpc}/runs/run", f"hdfs://{web}/runs/run"):
            self.assertEqual(self.names(other), self.names(f"{place}/run"))
        self.assertEqual(self.muster("storage", "ls", "-r", "dfs:///runs").stdout, self.muster("storage", "ls", "-r", place).stdout)
        self.check_mistake("HADOOP_CONF_DIR is not set", "storage", "ls", place, HADOOP_CONF_DIR="")
        self.check_mistake("is Hadoop's RPC port", "storage", "ls", f"{rpc}/runs", HADOOP_CONF_DIR="")
        self.check_mistake("this user lacks the permission", "storage", "cp", "large", f"{place}/theirs", HADOOP_USER_NAME="mallory")
        self.write("job.yaml", f"{{name: j, model_dir: {place}/new, command: 'true', roles: {{worker: 1}}}}")
        self.assertRegex(self.muster("doctor", "job.yaml").stdout, f"model dir +ok +{place}/new: can be written as user ")
        self.assertNotIn("new", self.muster("storage", "ls", place).stdout)
        said = self.muster("doctor", "job.yaml", env={**self.env, "HADOOP_USER_NAME": "mallory"}, check=False)
        self.assertEqual(said.returncode, 1)
        self.assertIn("hdfs dfs -setfacl -m user:mallory:rwx /runs/ (as user mallory)", said.stdout)


if __name__ == "__main__":
    unittest.main()
