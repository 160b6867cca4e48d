"""The committed page of the dashboard is what its sources build."""
import gzip
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

from support import SOURCE


def files_below(folder):
    """Returns the content of every file, by its path below the folder."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


class WebBuildTest(unittest.TestCase):
    def setUp(self):
        if shutil.which("npm") is None:
            self.skipTest("no npm")
        folder = tempfile.TemporaryDirectory(prefix="muster-web-")
        self.addCleanup(folder.cleanup)
        self.web = pathlib.Path(folder.name, "web")
        shutil.copytree(SOURCE / "web", self.web, ignore=shutil.ignore_patterns("node_modules", "dist"))
        installed = self.npm("ci", "--no-audit", "--no-fund", "--ignore-scripts")
        if installed.returncode != 0:
            self.skipTest(f"npm cannot install the packages: {installed.stderr[-500:]}")

    def npm(self, *arguments):
        return subprocess.run(["npm", *arguments], cwd=self.web, capture_output=True, text=True, timeout=300)

    def test_the_built_page_is_up_to_date(self):
        built = self.npm("run", "build")
        self.assertEqual(built.returncode, 0, built.stdout + built.stderr)
        fresh, committed = files_below(self.web / "dist"), files_below(SOURCE / "web" / "dist")
        self.assertEqual(sorted(fresh), sorted(committed), "run `npm run build` in web/ and commit web/dist")
        for name, content in fresh.items():
            self.assertEqual(content, committed[name], f"{name}: run `npm run build` in web/ and commit web/dist")

    def test_the_unit_tests_pass(self):
        tested = self.npm("test")
        self.assertEqual(tested.returncode, 0, tested.stdout + tested.stderr)


class WebFilesTest(unittest.TestCase):
    def test_the_page_is_small_and_asks_nobody_else(self):
        files = files_below(SOURCE / "web" / "dist")
        self.assertIn("index.html", files)
        self.assertLess(sum(len(gzip.compress(content)) for content in files.values()), 200_000)
        html = files["index.html"].decode()
        self.assertNotIn("<style", html)
        self.assertNotRegex(html, r"<script(?![^>]* src=)")
        self.assertNotRegex(html, r"\sstyle=|\son\w+=")
        for name, content in files.items():
            hosts = set(re.findall(rb"https?://[\w.-]+", content)) - {b"http://www.w3.org"}
            self.assertEqual(hosts, set(), name)

    def test_the_lock_file_names_no_registry(self):
        self.assertNotIn('"resolved"', (SOURCE / "web" / "package-lock.json").read_text())


if __name__ == "__main__":
    unittest.main()
