"""The README's console blocks are run, and must print what they show."""
import re
import unittest

from digits import write_digits
from support import SOURCE, MusterTest

BROKEN = """name: broken
roles:
  worker:
    replicas: 2
    command: |
      [ {index} = 0 ] && sleep 1000
      echo "ValueError: shapes (64, 784) and (100, 10) do not match"; exit 1
"""


def blocks():
    """The console blocks as lists of (command, shown output lines)."""
    text = (SOURCE / "README.md").read_text()
    for block in re.findall(r"```console\n(.*?)```", text, re.S):
        steps = []
        for line in block.splitlines():
            if line.startswith("$ "):
                steps.append((line[2:], []))
            else:
                steps[-1][1].append(line)
        yield steps


def normal(line):
    """What may differ from run to run is replaced."""
    line = re.sub(r"\b(mnist|broken)-[0-9a-z]{5}\b", r"\1-ID", line)
    line = re.sub(r"(?<=after )(\d+m)?[\d.]+s\b|[\d.]+s(?= after)", "TIME", line)
    line = re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", "DATE", line)
    # Of training: how far, how well, how fast, and where.
    line = re.sub(r"(?<=step )\d+(/\d+)?|(?<=loss )[\d.]+|(?<=accuracy: )[\d.]+|\d+(?= examples)", "N", line)
    return re.sub(r"(/\S*)?/(home/jobs|runs)/", r"DIR/\2/", line)


class ReadmeTest(MusterTest):
    def test_training_prints_what_is_shown(self):
        (fetch, shown), (run, expected) = list(blocks())[0]
        self.assertEqual((fetch, shown, run), ("muster data fetch mnist", [], "muster run examples/mnist.yaml"))
        # A shorter job on less data: its numbers differ, its words do not.
        write_digits(self.dir / "data" / "mnist")
        (self.dir / "examples").mkdir()
        text = (SOURCE / "examples/mnist.yaml").read_text()
        self.write("examples/mnist.yaml", re.sub(r"steps: \d+", lambda m: "steps: 4", text))
        self.check(run, expected)

    def test_a_failure_prints_what_is_shown(self):
        self.write("broken.yaml", BROKEN)
        ((run, expected),) = list(blocks())[1]
        self.check(run, expected)

    def check(self, command, expected):
        """Every line shown is printed, in whatever order the streams are read; `…` stands for others."""
        result = self.muster(*command.split()[1:], check=False)
        printed = [normal(line) for line in (result.stdout + result.stderr).splitlines()]
        for line in expected:
            if line != "…":
                self.assertIn(normal(line), printed)

    def test_is_short(self):
        self.assertLessEqual(len((SOURCE / "README.md").read_text().splitlines()), 150)


class DocumentsTest(unittest.TestCase):
    def test_sources_that_documents_name_exist(self):
        src = SOURCE / "src"
        pages = [SOURCE / "CONTRIBUTING.md", *(SOURCE / "docs").rglob("*.md"), *src.rglob("README.md")]
        named = [(page.relative_to(SOURCE), name) for page in pages
                 for name in re.findall(r"`(?:src/)?([a-z0-9_]+(?:/[a-z0-9_]+)+\.(?:cc|h))`", page.read_text())
                 if (src / name.split("/")[0]).is_dir()]
        self.assertGreater(len(named), 50)
        self.assertEqual([(str(page), name) for page, name in named if not (src / name).exists()], [])


if __name__ == "__main__":
    unittest.main()
