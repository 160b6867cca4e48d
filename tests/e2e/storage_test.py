"""muster storage: files by URL, on this machine, in a third-party S3 (npm's @20minutes/s3rver), and in test servers of Google Cloud Storage and HDFS (gs_server.mjs, webhdfs_server.py), checked with third-party clients (fsspec)."""
import hashlib
import importlib.util
import json
import os
import signal
import subprocess
import unittest

from storages import use_s3
from support import GsServer, MusterTest, start_hdfs, wait_until


class StorageCase(MusterTest):
    def setUp(self):
        super().setUp()
        for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
            self.env.pop(name, None)

    def storage(self, *args, check=True):
        return self.muster("storage", *args, check=check)

    def put(self, name, content):
        path = self.dir / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        return path

    def tree(self, folder):
        root = self.dir / folder
        return {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}

    def refused(self, *args, code=1):
        result = self.storage(*args, check=False)
        self.assertEqual(result.returncode, code, result.stderr)
        return result.stderr

    def round_trip(self, root):
        """Copies files of unusual names and sizes to `root` and back."""
        names = ["a", "b c", "100%", "x#y", "ä/日本", "deep/er/file", "deep/file"]
        for name in names:
            self.put(f"from/{name}", name.encode() * 1000)
        large = os.urandom(20 << 20)  # in parts
        self.put("from/large", large)
        self.assertIn("copied 8 files", self.storage("cp", "-r", "from", root).stdout)
        listed = json.loads(self.storage("ls", "-r", "--json", root).stdout)
        self.assertEqual(sorted(one["url"] for one in listed), sorted(f"{root}/{n}" for n in names + ["large"]))
        self.assertIn("copied 8 files", self.storage("cp", "-r", f"{root}/", "back").stdout)
        self.assertEqual(self.tree("back"), self.tree("from"))
        self.assertIn("copied 0 files, 0B; 8 already there", self.storage("cp", "-r", root, "back").stdout)
        self.assertIn("copied 0 files, 0B; 8 already there", self.storage("cp", "-r", "from", root).stdout)
        self.assertIn(f"{root}/deep/", self.storage("ls", root).stdout)
        stat = json.loads(self.storage("stat", "--json", f"{root}/a").stdout)[0]
        self.assertEqual((stat["bytes"], stat["md5"]), (1000, hashlib.md5(b"a" * 1000).hexdigest()))
        self.assertEqual(self.storage("cat", f"{root}/b ?").stdout, "b c" * 1000)
        self.assertIn("removed 1 file: ", self.storage("rm", f"{root}/a").stdout)
        self.assertIn("pass --yes", self.refused("rm", "-r", root))
        self.assertIn("removed 7 files in ", self.storage("rm", "-r", "-y", root).stdout)
        self.assertEqual(self.storage("ls", root.rsplit("/", 1)[0]).stdout, "")


class StorageTest(StorageCase):
    def test_ls(self):
        self.put("d/b", b"12345")
        self.put("d/a/x y", b"")
        said = self.storage("ls", "d").stdout.splitlines()
        self.assertEqual([line.split("  ")[-1].strip() for line in said], ["d/a/", "d/b"])
        self.assertRegex(said[1], r"^ +5B  \d{4}-\d\d-\d\d \d\d:\d\d:\d\d  d/b$")
        listed = json.loads(self.storage("ls", "-r", "--json", "d").stdout)
        self.assertEqual([(one["url"], one["bytes"], one["folder"]) for one in listed],
                         [("d/a/x y", 0, False), ("d/b", 5, False)])
        self.assertEqual(json.loads(self.storage("ls", "--json", "d").stdout)[0],
                         {"url": "d/a/", "folder": True, "bytes": None, "md5": None,
                          "modified": json.loads(self.storage("ls", "--json", "d").stdout)[0]["modified"]})
        self.assertIn("d/b", self.storage("ls", "d/*").stdout)
        self.assertIn("d/b", self.storage("ls", f"file://{self.dir}/d/b").stdout)
        self.assertIn("does not exist", self.refused("ls", "none"))
        self.assertIn("nothing matches", self.refused("ls", "d/z*"))
        (self.dir / "empty").mkdir()
        self.assertEqual(self.storage("ls", "empty").stdout, "")

    def test_cat_and_stat(self):
        content = os.urandom(100_000)
        self.put("a", content)
        self.put("b", b"b")
        result = subprocess.run([os.environ["MUSTER"], "storage", "cat", "a", "[b]"], cwd=self.dir, env=self.env,
                                capture_output=True, timeout=60, check=True)
        self.assertEqual(result.stdout, content + b"b")
        self.assertIn("size      100000 bytes (98KiB)", self.storage("stat", "a").stdout)
        self.assertEqual(json.loads(self.storage("stat", "--json", "a", "b").stdout)[1]["bytes"], 1)
        self.assertIn("absent: does not exist", self.refused("cat", "absent"))
        (self.dir / "d").mkdir()
        self.assertIn("d: is a folder", self.refused("cat", "d"))
        self.assertIn("muster storage ls", self.refused("stat", "d"))

    def test_cp(self):
        self.put("from/a", b"a")
        self.put("from/deep/b c%#", b"bc")
        self.assertIn("copied 1 file, 1B", self.storage("cp", "from/a", "one").stdout)
        self.assertEqual((self.dir / "one").read_bytes(), b"a")
        self.assertIn("-r copies what is in it", self.refused("cp", "from", "to"))
        self.assertIn("copied 2 files, 3B", self.storage("cp", "-r", "from", "to").stdout)
        self.assertEqual(self.tree("to"), self.tree("from"))
        self.assertEqual(self.storage("cp", "-r", "from", "to/").stdout, "copied 0 files, 0B; 2 already there\n")
        (self.dir / "to/a").write_bytes(b"z")
        self.assertIn("copied 1 file, 1B; 1 already there", self.storage("cp", "-r", "from", "to").stdout)
        self.assertEqual(self.tree("to"), self.tree("from"))
        self.storage("cp", "one", "from/a", "into/")
        self.storage("cp", "from/*", "glob")
        self.assertEqual(self.tree("glob"), {"a": b"a"})

    def test_cp_with_invalid_arguments(self):
        self.put("a", b"a")
        self.put("d/a", b"b")
        for args, text in ((["a"], "FROM… TO"), (["a", "a"], "to itself"), (["a", "d/a", "to"], "two files would"),
                           (["a", "s4://b/x"], "did you mean 's3'"), (["a", "s3://k:hunter2@b/x"], "credentials")):
            said = self.refused("cp", *args, code=2)
            self.assertIn(text, said)
            self.assertNotIn("hunter2", said)
        self.assertIn("does not exist", self.refused("cp", "absent", "x"))
        self.assertFalse((self.dir / "to").exists())

    def test_cp_continues_after_a_failed_file(self):
        self.put("from/a", b"a")
        self.put("from/b", b"b")
        (self.dir / "to/a").mkdir(parents=True)
        said = self.refused("cp", "-r", "from", "to")
        self.assertIn("to/a: is a folder", said)
        self.assertEqual((self.dir / "to/b").read_bytes(), b"b")

    def test_rm(self):
        for name in ("d/a", "d/b1", "d/b2", "d/e/f", "keep"):
            self.put(name, b"x")
        os.symlink(self.dir / "keep", self.dir / "d/link")
        self.assertIn("removed 2 files: d/b*", self.storage("rm", "d/b*").stdout)
        self.assertIn("-r removes what is in it", self.refused("rm", "d"))
        self.assertEqual(self.storage("rm", "-r", "-y", "d").stdout, "removed d\n")
        self.assertFalse((self.dir / "d").exists())
        self.assertTrue((self.dir / "keep").exists())
        self.assertIn("does not exist", self.refused("rm", "d"))
        self.assertIn("is the root of the file system", self.refused("rm", "-r", "///", code=2))
        self.put("kept/file", b"x")
        self.assertIn("pass --yes", self.refused("rm", "-r", "kept"))
        self.assertTrue((self.dir / "kept/file").exists())
        self.put("asked/x", b"x")
        terminal = self.terminal("storage", "rm", "-r", "asked")
        terminal.expect("Remove asked and everything in it?")
        terminal.send("n\n")
        self.assertEqual(terminal.wait(), 1)
        self.assertTrue((self.dir / "asked/x").exists())

    def test_an_interrupted_cp_leaves_no_partial_file(self):
        with open(self.put("large", b""), "wb") as file:
            file.truncate(20 << 30)  # sparse: takes no space, but long to read
        process = self.start("storage", "cp", "large", "to/copy")
        wait_until(lambda: list((self.dir / "to").glob(".muster-tmp-*")), "it has begun")
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(60), -signal.SIGINT)
        self.assertEqual(list((self.dir / "to").iterdir()), [])

    def test_usage(self):
        for args, text in (([], "muster storage ls URL"), (["ls"], "URL"), (["cp", "-j", "x", "a", "b"], "--parallel"),
                           (["mv", "a", "b"], "mv")):
            self.assertIn(text, self.refused(*args, code=2))


class S3Test(StorageCase):
    """The same program against a third-party server."""

    def setUp(self):
        super().setUp()
        use_s3(self)

    def test_round_trip(self):
        self.round_trip("s3://bucket/x")

    def test_a_bucket_is_made_and_a_job_checked(self):
        job = self.put("job.yaml", b"{name: j, model_dir: s3://new/runs, command: 'true', roles: {worker: 1}}")
        said = self.muster("doctor", job, check=False)
        self.assertEqual(said.returncode, 1)
        self.assertIn("there is no bucket 'new'; make it with: muster storage mb s3://new (as access key S3RVER of the environment)", said.stdout)
        self.assertEqual(self.storage("mb", "s3://new/runs").stdout, "made s3://new/\n")
        self.assertEqual(self.storage("mb", "s3://new").stdout, "exists already: s3://new/\n")
        self.assertIn("s3://new/runs: can be written as access key S3RVER", self.muster("doctor", job).stdout)
        self.assertEqual(self.storage("ls", "-r", "s3://new").stdout, "")

    def test_errors_are_explained_and_show_no_secret(self):
        self.put("a", b"a")
        self.assertIn("there is no bucket 'nowhere'", self.refused("ls", "s3://nowhere/x"))
        self.assertIn("s3://bucket/x: does not exist", self.refused("cat", "s3://bucket/x"))
        self.env["AWS_SECRET_ACCESS_KEY"] = "hunter2-hunter2"
        for args in (["ls", "s3://bucket"], ["cp", "a", "s3://bucket/a"], ["rm", "s3://bucket/a"], ["cat", "s3://bucket/a"]):
            said = self.refused(*args)
            self.assertIn("check AWS_SECRET_ACCESS_KEY", said)
            self.assertNotIn("hunter2", said)
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            del self.env[name]
        self.env.update(AWS_EC2_METADATA_DISABLED="true", HOME=str(self.dir))
        self.assertIn("no credentials for S3", self.refused("ls", "s3://bucket"))
        folder = self.dir / ".aws"
        folder.mkdir()
        (folder / "credentials").write_text("[mine]\naws_access_key_id = S3RVER\naws_secret_access_key = S3RVER\n")
        self.env["AWS_PROFILE"] = "mine"
        self.storage("ls", "s3://bucket")


class GsTest(StorageCase):
    def setUp(self):
        super().setUp()
        self.env.update(HOME=str(self.dir), NO_GCE_CHECK="true")
        for name in ("GOOGLE_APPLICATION_CREDENTIALS", "CLOUDSDK_CONFIG", "STORAGE_EMULATOR_HOST"):
            self.env.pop(name, None)

    def test_round_trip(self):
        self.env["STORAGE_EMULATOR_HOST"] = GsServer(self, pageSize=3).address
        self.round_trip("gs://bucket/x")

    def test_signed_in_and_not(self):
        server = GsServer(self, auth=True)
        self.env["CLOUDSDK_API_ENDPOINT_OVERRIDES_STORAGE"] = f"{server.address}/storage/v1/"
        self.put("a", b"content")
        self.assertIn("no credentials for Google Cloud: set GOOGLE_APPLICATION_CREDENTIALS",
                      self.refused("ls", "gs://bucket"))
        user = server.ask("authorized_user")
        path = self.put(".config/gcloud/application_default_credentials.json", json.dumps(user).encode())
        self.storage("cp", "a", "gs://bucket/a")
        self.assertEqual(self.storage("cat", "gs://bucket/a").stdout, "content")
        self.assertIn("there is no bucket 'nowhere'", self.refused("ls", "gs://nowhere/x"))
        self.assertIn("gs://bucket/x: does not exist", self.refused("cat", "gs://bucket/x"))
        path.write_text(json.dumps(user | {"refresh_token": "hunter2-wrong"}))
        for args in (["ls", "gs://bucket"], ["cp", "a", "gs://bucket/a"], ["rm", "gs://bucket/a"], ["cat", "gs://bucket/a"]):
            said = self.refused(*args)
            self.assertIn("gcloud auth application-default login", said)
            self.assertNotIn("hunter2", said)

    def test_an_interrupted_cp_leaves_no_upload(self):
        server = GsServer(self)
        self.env["STORAGE_EMULATOR_HOST"] = server.address
        with open(self.put("large", b""), "wb") as file:
            file.truncate(20 << 30)  # sparse: takes no space, but long to send
        process = self.start("storage", "cp", "large", "gs://bucket/copy")
        wait_until(lambda: server.ask("state")["openUploads"] == 1, "it has begun")
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(60), -signal.SIGINT)
        self.assertEqual(server.ask("state")["openUploads"], 0)
        self.assertEqual(self.storage("ls", "gs://bucket").stdout, "")


class HdfsTest(StorageCase):
    def setUp(self):
        super().setUp()
        for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
            os.environ.pop(name, None)  # fsspec's
        self.port = start_hdfs(self)
        self.at = f"hdfs://127.0.0.1:{self.port}"
        self.env["HADOOP_USER_NAME"] = "alice"

    def test_round_trip(self):
        names = ["a", "b c", "100%", "x#y", "q?=&+;", "ä/日本", "deep/er/file", "deep/file"]
        for name in names:
            self.put(f"from/{name}", name.encode() * 1000)
        self.put("from/large", os.urandom(40 << 20))  # in pieces
        self.assertIn("copied 9 files", self.storage("cp", "-r", "from", f"{self.at}/x").stdout)
        listed = json.loads(self.storage("ls", "-r", "--json", f"{self.at}/x").stdout)
        self.assertEqual(sorted(one["url"] for one in listed), sorted(f"{self.at}/x/{n}" for n in names + ["large"]))
        self.assertIn("copied 9 files", self.storage("cp", "-r", f"{self.at}/x/", "back").stdout)
        self.assertEqual(self.tree("back"), self.tree("from"))
        self.assertIn("copied 0 files, 0B; 9 already there", self.storage("cp", "-r", "from", f"{self.at}/x").stdout)
        self.assertIn(f"{self.at}/x/deep/", self.storage("ls", f"{self.at}/x").stdout)
        self.assertEqual(json.loads(self.storage("stat", "--json", f"{self.at}/x/a").stdout)[0]["bytes"], 1000)
        self.assertEqual(self.storage("cat", f"{self.at}/x/b ?").stdout, "b c" * 1000)
        self.assertIn("removed 1 file: ", self.storage("rm", f"{self.at}/x/a").stdout)
        self.assertIn("removed 8 files in ", self.storage("rm", "-r", "-y", f"{self.at}/x").stdout)
        self.assertEqual(self.storage("ls", "-r", "--json", f"{self.at}/").stdout, "[]\n")

    def test_another_client_reads_and_writes(self):
        if importlib.util.find_spec("fsspec") is None or importlib.util.find_spec("requests") is None:
            self.skipTest("no python3-fsspec, or no python3-requests; scripts/test installs them")
        import fsspec
        files = fsspec.filesystem("webhdfs", host="127.0.0.1", port=self.port, user="alice")
        content = os.urandom(20 << 20)
        for name in ("plain", "odd %41 #ä"):
            self.put("mine", content)
            self.storage("cp", "mine", f"{self.at}/d/{name}")
            self.assertEqual(files.cat(f"/d/{name}"), content)
            files.pipe_file(f"/theirs/{name}", content)
            self.storage("cp", f"{self.at}/theirs/{name}", "back")
            self.assertEqual((self.dir / "back").read_bytes(), content)
        self.assertEqual(files.find("/d"), ["/d/odd %41 #ä", "/d/plain"])
        files.makedirs("/d/kept")
        self.storage("rm", "-r", "-y", f"{self.at}/d")
        self.storage("rm", "-r", "-y", f"{self.at}/theirs")
        self.assertEqual(files.ls("/", detail=False), ["/d"])  # the folder remains without its files

    def test_a_folder_is_made_and_a_job_checked(self):
        self.put("conf/core-site.xml", b"<configuration><property><name>fs.defaultFS</name><value>hdfs://127.0.0.1:8020</value></property></configuration>")
        self.put("conf/hdfs-site.xml", f"""<configuration><property><name>dfs.namenode.http-address</name><value>0.0.0.0:{self.port}</value>
                                           </property></configuration>""".encode())
        self.env["HADOOP_CONF_DIR"] = str(self.dir / "conf")
        self.assertEqual(self.storage("mb", "hdfs:///alices/runs").stdout, "made hdfs:///alices/runs\n")
        self.assertEqual(self.storage("mb", f"{self.at}/alices/runs/").stdout, f"exists already: {self.at}/alices/runs/\n")
        job = self.put("job.yaml", b"{name: j, model_dir: 'dfs:///alices/runs/a/b', command: 'true', roles: {worker: 1}}")
        self.assertIn("dfs:///alices/runs/a/b: can be written as user alice", self.muster("doctor", job).stdout)
        self.assertIn("does not exist", self.refused("ls", "hdfs:///alices/runs/"))
        self.env["HADOOP_USER_NAME"] = "bob"
        said = self.muster("doctor", job, check=False)
        self.assertEqual(said.returncode, 1)
        self.assertIn("hdfs dfs -setfacl -m user:bob:rwx /alices/runs/ (as user bob)", said.stdout)
        self.env["HADOOP_CONF_DIR"] = ""
        self.assertIn("hdfs:///x: names no namenode, and HADOOP_CONF_DIR is not set", self.refused("ls", "hdfs:///x"))

    def test_errors_are_explained(self):
        self.put("a", b"a")
        self.assertIn(f"{self.at}/x: does not exist", self.refused("cat", f"{self.at}/x"))
        self.storage("cp", "a", f"{self.at}/alices/a")
        self.env["HADOOP_USER_NAME"] = "bob"
        said = self.refused("cp", "a", f"{self.at}/alices/b")
        self.assertIn("this user lacks the permission", said)
        self.assertIn("user=bob", said)
        self.assertIn("colon", self.refused("cp", "a", f"{self.at}/b:c"))
        self.at = f"hdfs://127.0.0.1:{start_hdfs(self, '--token', 'hunter2')}"
        self.assertIn("the cluster requires Kerberos", self.refused("ls", self.at))
        self.env["MUSTER_HDFS_TOKEN"] = "hunter3"
        said = self.refused("ls", self.at)
        self.assertIn("the token is invalid or has expired", said)
        self.assertNotIn("hunter", said)
        self.env["MUSTER_HDFS_TOKEN"] = "hunter2"
        self.storage("cp", "a", f"{self.at}/a")


if __name__ == "__main__":
    unittest.main()
