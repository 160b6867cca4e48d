"""The project's own scripts on machines with other tools."""
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

from support import PYTHON, SOURCE

# One line each: tests/CMakeLists.txt finds the tests of this file by line.
_SKIPPING = ("import unittest\nclass Skips(unittest.TestCase):\n"
             "    def test_a(self):\n        self.skipTest('there is no cluster here')\n"
             "    def test_b(self):\n        pass\n")
_SUITE = ("[ RUN      ] StorageTest.Reads\n[       OK ] StorageTest.Reads (3 ms)\n" * 30 +
          "[ RUN      ] StorageTest.Copies\nfile.cc:7: Skipped\nno node\n\n[  SKIPPED ] StorageTest.Copies (0 ms)\n"
          "[ RUN      ] StorageTest.Mounts\nfile.cc:9: Skipped\nno disk\n\n[  SKIPPED ] StorageTest.Mounts (0 ms)\n"
          "[  SKIPPED ] 2 tests, listed below:\n[  SKIPPED ] StorageTest.Copies\n[  SKIPPED ] StorageTest.Mounts\n")
_CTEST = """
add_test(e2e.some_test.Skips.test_a %(python)s -m unittest --verbose some_test.Skips.test_a)
add_test(e2e.some_test.Skips.test_b %(python)s -m unittest --verbose some_test.Skips.test_b)
set_tests_properties(e2e.some_test.Skips.test_a e2e.some_test.Skips.test_b PROPERTIES SKIP_REGULAR_EXPRESSION "skipped=[1-9]")
add_test(storage_test.StorageTest /bin/cat suite.txt)
add_test(storage_test.All/Conformance /bin/echo "file.cc:7: Skipped\nno node\n\n[  SKIPPED ] All/Conformance.Reads/0 (0 ms)")
"""


class ScriptsTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.dir = pathlib.Path(folder.name)

    def run_in(self, *command, env=None):
        result = subprocess.run([str(word) for word in command], cwd=self.dir, env=env, capture_output=True, text=True)
        return result.returncode, result.stdout + result.stderr

    def other_tools(self, *names):
        """Returns an environment in which failing programs of these names come first in PATH."""
        for name in names:
            tool = self.dir / "bin" / name
            tool.parent.mkdir(exist_ok=True)
            tool.write_text("#!/bin/sh\necho go version go1.26 other-$0\nexit 9\n")
            tool.chmod(0o755)
        return os.environ | {"PATH": f"{self.dir / 'bin'}:{os.environ['PATH']}", "GOROOT": str(self.dir), "CXX": "other", "CPATH": "other"}

    def test_debians_tools_come_before_others_of_their_names(self):
        tools = ("python3", "cmake", "ninja", "gcc", "g++", "go", "clang-14")
        env = self.other_tools(*tools)
        code, said = self.run_in("bash", "-c", f"source {SOURCE}/scripts/common.sh; command -v {' '.join(tools)}; echo CXX ${{CXX-unset}} ${{CPATH-unset}}", env=env)
        self.assertEqual(code, 0, said)
        self.assertIn("CXX unset unset", said)
        self.assertNotIn(str(self.dir), said)

    def test_python_packages_that_cannot_be_fetched_leave_nothing(self):
        folder = self.dir / "tests" / "venv"
        folder.mkdir(parents=True)
        shutil.copy(SOURCE / "tests/venv/install", folder)
        (folder / "sample.txt").write_text("no-such-package==1.0\n")
        env = os.environ | {"MUSTER_TEST_CACHE": str(self.dir / "cache"), "PIP_INDEX_URL": "http://127.0.0.1:1/simple", "PIP_CONFIG_FILE": os.devnull}
        code, said = self.run_in(folder / "install", env=env)
        self.assertEqual(code, 1, said)
        self.assertIn("sample could not be installed", said)
        self.assertEqual([path.name for path in (self.dir / "cache/venv").iterdir()], ["lock"])
        self.assertEqual(list((self.dir / "build").iterdir()), [])

    def test_a_newer_go_in_path_does_not_build_the_old_kubernetes(self):
        code, said = self.run_in(SOURCE / "tests/cluster/build", "--check", env=self.other_tools("go", "gcc"))
        self.assertNotIn("1.26", said)
        self.assertIn(code, (0, 1), said)
        if code == 1:
            self.assertIn("not made yet", said)
        else:
            self.assertIn("_go1.19", said)

    def test_in_ci_a_cluster_that_cannot_be_built_ends_the_run(self):
        script = (f"source {SOURCE}/scripts/common.sh; cd {self.dir}; cluster_log=log; (echo no compiler; exit 3) >log & "
                  "cluster=$!; await_cluster; await_cluster; echo went on")
        for ci, expected in (("true", 1), ("", 0)):
            with self.subTest(ci=ci):
                code, said = self.run_in("bash", "-c", script, env=os.environ | {"CI": ci})
                self.assertEqual(code, expected, said)
                self.assertEqual(said.count("no compiler"), 1, said)
                self.assertEqual("went on" in said, expected == 0, said)

    def test_a_storage_server_that_cannot_be_had_is_no_failure(self):
        env = self.other_tools("go", "mvn") | {"MUSTER_TEST_CACHE": str(self.dir / "cache")}
        build = SOURCE / "tests/servers/build"
        code, said = self.run_in(build, "--check", env=env)
        self.assertEqual(code, 1)
        for server in ("hadoop", "minio", "fake-gcs-server"):
            self.assertIn(f"{server} is not there; run tests/servers/build", said)
        code, said = self.run_in(build, "hadoop", env=env)  # mvn fails
        self.assertEqual(code, 1)
        self.assertEqual(sorted(path.name for path in (self.dir / "cache" / "servers").iterdir()), ["lock"])
        self.assertEqual(self.run_in(build, "nginx", env=env)[0], 2)
        code, said = self.run_in("bash", "-c", f"source {SOURCE}/scripts/common.sh; cd {self.dir}; servers_log=log; "
                                 "(echo no registry; exit 1) >log & servers=$!; await_servers; echo went on", env=os.environ | {"CI": "true"})
        self.assertEqual((code, said), (0, "no registry\nwent on\n"))

    def test_skipped_tests_are_listed_by_reason(self):
        (self.dir / "some_test.py").write_text(_SKIPPING)
        (self.dir / "suite.txt").write_text(_SUITE)
        (self.dir / "CTestTestfile.cmake").write_text(_CTEST % {"python": PYTHON})
        self.run_in("ctest", "--test-output-size-passed", "1000000", "--output-junit", "tests.xml")
        code, said = self.run_in(SOURCE / "scripts/skipped", "tests.xml", "missing.xml")
        self.assertEqual(code, 0, said)
        self.assertEqual(said.splitlines(), [
            "skipped tests: 4", "  2: no node", "    Conformance (1), StorageTest (1)", "  1: there is no cluster here",
            "    e2e.some_test (1)", "  1: no disk", "    StorageTest (1)"])

    def run_tests(self, *commands, repeat=1):
        """Runs scripts/test with tests that run these commands."""
        build = self.dir / "build" / "dev"
        build.mkdir(parents=True)
        (build / "CTestTestfile.cmake").write_text("".join(
            f"add_test(test{i} /bin/sh -c [[{command}]])\n" for i, command in enumerate(commands)))
        return self.run_in("bash", "-c", f"source {SOURCE}/scripts/common.sh; cd {self.dir}; root={self.dir}; mkdir scripts; "
                           f"ln -s {SOURCE}/scripts/skipped scripts; repeat={repeat}; run_tests dev -j 4")

    def test_a_test_that_fails_once_is_run_again_and_listed(self):
        code, said = self.run_tests("true", f"test -e {self.dir}/once || {{ touch {self.dir}/once; exit 1; }}")
        self.assertEqual(code, 0, said)
        self.assertRegex(said, r"== failed at the first run, and run again one at a time\ntest1\n(?s:.*)100% tests passed, 0 tests failed out of 1")

    def test_a_test_that_fails_twice_fails_the_run(self):
        code, said = self.run_tests("true", "exit 3")
        self.assertNotEqual(code, 0, said)
        self.assertEqual(said.count("test1 ..."), 2, said)

    def test_a_search_for_unstable_tests_runs_none_again(self):
        code, said = self.run_tests(f"test -e {self.dir}/once || {{ touch {self.dir}/once; exit 1; }}", repeat=20)
        self.assertNotEqual(code, 0, said)
        self.assertNotIn("run again", said)


if __name__ == "__main__":
    unittest.main()
