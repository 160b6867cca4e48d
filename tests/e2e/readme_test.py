"""The README's console blocks are run, and must print what they show."""
import re
import unittest

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
    line = re.sub(r"\b(train|broken)-[0-9a-z]{5}\b", r"\1-ID", line)
    line = re.sub(r"127\.0\.0\.1:\d+", "ADDRESS", line)
    line = re.sub(r"\d+\.\ds\b", "TIME", line)
    return re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", "DATE", line)


class ReadmeTest(MusterTest):
    def test_shown_output_is_printed(self):
        (first, second) = blocks()
        (command, shown), (run, expected) = first
        self.assertEqual(command, "cat job.yaml")
        self.write("job.yaml", "\n".join(shown) + "\n")
        self.check(run, expected)
        self.write("broken.yaml", BROKEN)
        ((run, expected),) = second
        self.check(run, expected)

    def check(self, command, expected):
        """Every line shown is printed, in whatever order the streams are read."""
        result = self.muster(*command.split()[1:], check=False)
        printed = [normal(line) for line in (result.stdout + result.stderr).splitlines()]
        for line in expected:
            self.assertIn(normal(line), printed)

    def test_is_short(self):
        self.assertLessEqual(len((SOURCE / "README.md").read_text().splitlines()), 150)


if __name__ == "__main__":
    unittest.main()
