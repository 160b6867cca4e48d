"""A program with --job_name, --task_index, --ps_hosts and --worker_hosts: `run`, `show` until it runs, `logs`, edit, `run` again."""
import shutil
import unittest

from digits import write_digits
from hosts import own_hosts
from support import SOURCE, MusterTest, wait_until
from venvs import NEWEST, python_first, venv

FILES = SOURCE / "tests" / "seeds" / "003"
ACCURACY = r"MNIST accuracy: (0\.[89]\d*|1\.0+)\n"


class PageTest(MusterTest):
    def setUp(self):
        super().setUp()
        self.venv = venv(self, NEWEST)
        self.env = python_first(self.env, self.venv)
        self.work = self.dir / "work"
        shutil.copytree(FILES, self.work)
        write_digits(self.work / "data" / "mnist")

    def edit(self, old, new):
        text = (self.work / "main.yaml").read_text()
        self.assertIn(old, text)
        (self.work / "main.yaml").write_text(text.replace(old, new))

    def states(self, job):
        return {task["task"]: task["state"] for task in self.show(job)["tasks"]}

    def test_on_this_machine(self):
        result = self.muster("run", "./main.yaml", cwd=self.work, timeout=250)
        for worker in (0, 1):
            self.assertRegex(result.stdout, rf"worker:{worker} \| {ACCURACY}")
        self.assertIn("Succeeded", result.stderr)
        self.assertEqual(self.states("tensorflow"), {"ps:0": "Stopped", "worker:0": "Succeeded", "worker:1": "Succeeded"})

    def test_the_page_on_three_machines(self):
        bed = own_hosts(self, 3, share=[self.venv])
        self.addCleanup(self._end_everything)  # before the hosts end
        self.env.update(bed.environment)
        self.edit("python3", f"{self.venv}/bin/python3")
        self.edit("{task_flags}", "{task_flags} --steps 1000000000")
        run = "run", "-d", "--on", "ssh", "--hosts", ",".join(bed.hosts), "./main.yaml"
        self.muster(*run, cwd=self.work)

        # Show it until every task runs, then its machines and its tasks.
        wait_until(lambda: set(self.states("tensorflow").values()) == {"Running"}, "its tasks run", 60)
        shown = self.muster("show", "tensorflow").stdout
        self.assertRegex(shown, r"(?m)^MACHINE +.*ROLE.* +STATUS")
        for host in bed.hosts:
            self.assertRegex(shown, rf"(?m)^{host} .*Connected")
        for task in ("ps:0", "worker:0", "worker:1"):
            self.assertRegex(shown, rf"(?m)^.*\b{task} .*Running")

        # Edit the job and run it again: the difference is shown, and the tasks restart.
        wait_until(lambda: b"Extracting" in self.log(self.jobs()[0]["id"], "worker:1"), "it trains", 120)
        self.edit("1000000000", "200")
        changed = self.muster(*run, "--yes", cwd=self.work)
        said = changed.stdout + changed.stderr
        self.assertRegex(said, r"(?m)^ *-.*--steps 1000000000")
        self.assertRegex(said, r"(?m)^ *\+.*--steps 200")
        self.assertEqual(len(self.jobs()), 1)

        self.wait_state("tensorflow", "Succeeded", timeout=150)
        self.assertRegex(self.muster("logs", "tensorflow", "worker:0").stdout, ACCURACY)
        self.assertEqual(self.states("tensorflow")["ps:0"], "Stopped")


if __name__ == "__main__":
    unittest.main()
