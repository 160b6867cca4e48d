"""Runs the console blocks of README.md and docs/why.md and compares their output with the text."""
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


def blocks(page="README.md"):
    """Returns the console blocks of a page as lists of (command, shown output lines)."""
    text = (SOURCE / page).read_text()
    for block in re.findall(r"```console\n(.*?)```", text, re.S):
        steps = []
        for line in block.splitlines():
            if line.startswith("$ "):
                steps.append((line[2:], []))
            else:
                steps[-1][1].append(line)
        yield steps


def normal(line):
    """Replaces the parts that differ from run to run."""
    line = re.sub(r"\b(mnist|broken)-[0-9a-z]{5}\b", r"\1-ID", line)
    line = re.sub(r"(?<=after )(\d+m)?[\d.]+s\b|[\d.]+s(?= after)", "TIME", line)
    line = re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", "DATE", line)
    # Numbers of training: step, loss, speed, path.
    line = re.sub(r"(?<=step )\d+(/\d+)?|(?<=loss )[\d.]+|(?<=accuracy: )[\d.]+|\d+(?= examples)", "N", line)
    return re.sub(r"(/\S*)?/(home/jobs|runs)/", r"DIR/\2/", line)


class PageTest(MusterTest):
    def check(self, command, expected):
        """Checks that every shown line is printed, in any order of the streams; `…` stands for other lines."""
        result = self.muster(*command.split()[1:], check=False)
        printed = [normal(line) for line in (result.stdout + result.stderr).splitlines()]
        for line in expected:
            if line != "…":
                self.assertIn(normal(line), printed)
        return result


class WhyTest(PageTest):
    def test_every_command_works(self):
        text = (SOURCE / "docs/why.md").read_text()
        for language, name in (("python", "train.py"), ("yaml", "job.yaml")):
            self.write(name, re.search(rf"```{language}\n(.*?)```", text, re.S).group(1))
        steps = [step for block in blocks("docs/why.md") for step in block]
        self.assertGreaterEqual(len(steps), 4)
        for command, expected in steps:
            self.assertEqual(self.check(command, expected).returncode, 0, command)


class ReadmeTest(PageTest):
    def test_training_prints_what_is_shown(self):
        (fetch, shown), (run, expected) = list(blocks())[0]
        self.assertEqual((fetch, shown, run), ("muster data fetch mnist", [], "muster run examples/mnist.yaml"))
        # A shorter job on less data: only its numbers differ.
        write_digits(self.dir / "data" / "mnist")
        (self.dir / "examples").mkdir()
        text = (SOURCE / "examples/mnist.yaml").read_text()
        self.write("examples/mnist.yaml", re.sub(r"steps: \d+", lambda m: "steps: 4", text))
        self.check(run, expected)

    def test_a_failure_prints_what_is_shown(self):
        self.write("broken.yaml", BROKEN)
        ((run, expected),) = list(blocks())[1]
        self.check(run, expected)

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

    def files_of_checklist(self, title):
        """Returns the files that a section of docs/checklists.md names."""
        page = (SOURCE / "docs/checklists.md").read_text()
        section = page.split(f"## {title}\n")[1].split("\n## ")[0]
        return set(re.findall(r"`((?:src|apps|docs|bench)/[\w./-]+\.\w+)`", section))

    def test_checklists_name_every_file_that_an_existing_one_needed(self):
        for title, word, own in (("A new field of the job file", "finish_grace", "src/platform/"),
                                 ("A new platform", "vertex", "src/platform/vertex/"),
                                 ("A new storage", "hdfs", "src/storage/hdfs/"),
                                 ("A new optimizer", "adagrad", "none")):
            with self.subTest(title):
                touched = {str(file.relative_to(SOURCE)) for folder in ("src", "apps")
                           for file in (SOURCE / folder).rglob("*")
                           if file.suffix in (".h", ".cc", ".txt", ".py") and word in file.read_text().lower()}
                # Tests and fakes may mention any platform, storage or optimizer.
                touched = {name for name in touched if not name.startswith(own) and not name.endswith("_test.cc")
                           and "testing" not in name}
                self.assertGreater(len(touched), 4)
                self.assertEqual(touched - self.files_of_checklist(title), set())


if __name__ == "__main__":
    unittest.main()
