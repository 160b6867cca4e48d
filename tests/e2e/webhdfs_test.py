"""The WebHDFS server of our tests, checked by third-party clients: npm's webhdfs and Debian's python3-fsspec."""
import importlib.util
import json
import os
import pathlib
import shutil
import subprocess
import unittest

from support import SOURCE, start_hdfs

CLIENT = SOURCE / "build" / "npm" / "node_modules"  # scripts/test installs it


class WebHdfsServerTest(unittest.TestCase):
    def setUp(self):
        for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
            os.environ.pop(name, None)

    def fsspec(self, port, **options):
        if importlib.util.find_spec("fsspec") is None or importlib.util.find_spec("requests") is None:
            self.skipTest("no python3-fsspec, or no python3-requests; scripts/test installs them")
        import fsspec
        return fsspec.filesystem("webhdfs", host="127.0.0.1", port=port, skip_instance_cache=True, **options)

    def test_npm_webhdfs(self):
        node = shutil.which("node")
        if not node or not (CLIENT / "webhdfs").is_dir():
            self.skipTest("no node with the package webhdfs; scripts/test installs it")
        port = start_hdfs(self)
        result = subprocess.run([node, "--no-deprecation", pathlib.Path(__file__).with_name("webhdfs_client.mjs"), str(port)],
                                env=dict(os.environ, NODE_PATH=str(CLIENT)), capture_output=True, text=True, timeout=60)
        self.assertEqual(result.returncode, 0, result.stderr)
        seen = json.loads(result.stdout)
        self.assertTrue(seen["same"])
        self.assertEqual((seen["length"], seen["owner"]), (300008, "carol"))
        self.assertEqual(seen["names"], [["b", "FILE", 300008, "600"]])
        self.assertIn("File does not exist: /npm/none", seen["absent"])
        self.assertIn("not empty", seen["refused"])
        self.assertEqual(seen["left"], [])

    def test_fsspec(self):
        files = self.fsspec(start_hdfs(self), user="alice")
        content = os.urandom(9_000_000)  # several chunks of these clients
        with files.open("/f/deep/a", "wb") as file:
            file.write(content)
        self.assertEqual(files.cat("/f/deep/a"), content)
        self.assertEqual(files.cat_file("/f/deep/a", 1000, 5_000_000), content[1000:5_000_000])
        info = files.info("/f/deep/a")
        self.assertEqual((info["type"], info["size"], info["owner"]), ("file", 9_000_000, "alice"))
        self.assertEqual(files.ls("/f"), ["/f/deep"])
        self.assertEqual(files.find("/f"), ["/f/deep/a"])
        files.makedirs("/f/other")
        files.mv("/f/deep/a", "/f/other/b")
        self.assertFalse(files.exists("/f/deep/a"))
        self.assertEqual(files.content_summary("/f")["length"], 9_000_000)
        with files.open("/f/other/b", "ab") as file:
            file.write(b"more")
        self.assertEqual(files.info("/f/other/b")["size"], 9_000_004)
        self.assertEqual(files.home_directory(), "/user/alice")
        with self.assertRaises(FileNotFoundError):
            files.info("/f/none")
        with self.assertRaises(RuntimeError):
            files.rm("/f")
        files.rm("/f", recursive=True)
        self.assertFalse(files.exists("/f"))

    def test_fsspec_users_and_tokens(self):
        port = start_hdfs(self)
        alice = self.fsspec(port, user="alice")
        alice.mkdir("/alices")
        with self.assertRaises(PermissionError):
            self.fsspec(port, user="bob").mkdir("/alices/b")
        alice.chmod("/alices", "777")
        self.fsspec(port, user="bob").mkdir("/alices/b")
        port = start_hdfs(self, "--token", "sesame")
        self.fsspec(port, token="sesame").pipe_file("/a", b"x" * 1000)
        self.assertEqual(self.fsspec(port, token="sesame").cat("/a"), b"x" * 1000)
        with self.assertRaises(Exception):
            self.fsspec(port, user="alice").info("/a")


if __name__ == "__main__":
    unittest.main()
