"""A program that is edited while its job runs: muster run again, restarts by policy, --restart."""
import pathlib
import signal
import unittest

from support import MusterTest, is_alive, kill, wait_until

PROGRAM = """
    import os, pathlib, time
    import part
    out = pathlib.Path(f"out-{os.environ['MUSTER_INDEX']}.txt")
    with out.open("a") as file:
        file.write(f"{VERSION} {part.VERSION} {os.environ['MUSTER_ATTEMPT']} {os.getcwd()}\\n")
    time.sleep(600)
    """
JOB = """
    name: edited
    roles:
      worker: {replicas: 2, command: 'exec /usr/bin/python3 train.py', restart: on-failure}
      other: {command: 'exec sleep 600'}
    policies: {max_restarts: 5, backoff: 100ms}
    """


class EditTest(MusterTest):
    def setUp(self):
        super().setUp()
        self.program(1)
        self.write("part.py", "VERSION = 'p1'\n")
        self.write(".gitignore", "data\n")

    def program(self, version):
        self.write("train.py", "VERSION = 'v%d'\n" % version + PROGRAM.replace("\n    ", "\n"))

    def started(self, text=JOB):
        job = self.run_detached(text)
        self.wait_state(job, "Running")
        for index in (0, 1):
            self.wait_file(f"out-{index}.txt")
        return job

    def lines(self, index):
        path = self.dir / f"out-{index}.txt"
        return [line.split(" ", 3) for line in path.read_text().splitlines()]

    def again(self, *args, **kwargs):
        return self.muster("run", "-d", *args, self.dir / "job.yaml", **kwargs)

    def test_an_edit_is_shown_and_restarts_the_tasks_that_run_it(self):
        job = self.started()
        pids = self.pids(job)
        self.program(2)
        dry = self.again("--dry-run").stdout
        self.assertIn("changed: train.py", dry)
        self.assertRegex(dry, r"(?m)^-VERSION = 'v1'$")
        self.assertRegex(dry, r"(?m)^\+VERSION = 'v2'$")
        self.assertEqual(self.pids(job), pids)
        refused = self.again(check=False)
        self.assertEqual(refused.returncode, 1)
        self.assertIn("--yes", refused.stderr)
        self.assertEqual(self.pids(job), pids)
        self.assertIn("Changed " + job, self.again("--yes").stdout)
        for index in (0, 1):
            wait_until(lambda index=index: self.lines(index)[-1][:2] == ["v2", "p1"], "it runs the new version")
            self.assertEqual(self.lines(index)[-1][3], str(self.dir))
        self.assertIn("nothing changed", self.again().stdout)
        self.assertEqual(len(self.jobs()), 1)

    def test_an_edit_of_an_imported_file_and_a_removed_one(self):
        self.write("unused.py", "")
        self.started()
        self.write("part.py", "VERSION = 'p2'\n")
        (self.dir / "unused.py").unlink()
        self.write("new.py", "")
        said = self.again("--yes").stdout
        self.assertIn("added: new.py\nchanged: part.py\n", said)
        self.assertIn("removed: unused.py\n", said)
        wait_until(lambda: self.lines(0)[-1][:2] == ["v1", "p2"], "it runs the new version")

    def test_a_restart_by_policy_runs_the_version_of_the_start(self):
        (self.dir / "data").mkdir()
        job = self.started()
        self.program(2)
        self.write("part.py", "VERSION = 'p2'\n")
        (self.dir / "data" / "late").write_text("x")
        kill(self.pids(job)["worker:0"])
        # Appends to the file that the first attempt wrote in the working directory.
        wait_until(lambda: len(self.lines(0)) == 2, "it runs again")
        version, part, attempt, folder = self.lines(0)[1]
        self.assertEqual((version, part, attempt), ("v1", "p1", "1"))
        self.assertNotEqual(folder, str(self.dir))
        self.assertEqual((pathlib.Path(folder) / "data" / "late").read_text(), "x")
        notes = [event for event in self.events(job) if "was edited while the job ran" in event]
        self.assertEqual(len(notes), 1, self.events(job))
        self.assertIn("worker:0 part.py was edited", notes[0])
        # The other task still runs the first version, so there is one version in the job.
        self.assertEqual([line[0] for line in self.lines(1)], ["v1"])
        # Running it again applies the edit to both.
        self.again("--yes")
        for index in (0, 1):
            wait_until(lambda index=index: self.lines(index)[-1][:2] == ["v2", "p2"], "it runs the new version")
            self.assertEqual(self.lines(index)[-1][3], str(self.dir))

    def test_a_restart_without_an_edit_stays_in_the_directory(self):
        job = self.started()
        kill(self.pids(job)["worker:1"])
        wait_until(lambda: len(self.lines(1)) == 2, "it runs again")
        self.assertEqual(self.lines(1)[1], ["v1", "p1", "1", str(self.dir)])
        self.assertFalse([event for event in self.events(job) if "edited" in event])

    def test_an_edit_that_was_taken_back_is_no_edit(self):
        job = self.started()
        self.program(2)
        self.program(1)
        self.assertIn("nothing changed", self.again().stdout)
        kill(self.pids(job)["worker:1"])
        wait_until(lambda: len(self.lines(1)) == 2, "it runs again")
        self.assertEqual(self.lines(1)[1][3], str(self.dir))

    def test_files_that_tasks_write_are_not_edits(self):
        self.write("state.json", "{}")
        self.started()
        self.write("state.json", '{"step": 1}')
        self.write("second.yaml", "name: second\nroles: {worker: {command: 'true'}}\n")
        self.assertIn("nothing changed", self.again().stdout)

    def test_restart_without_a_change(self):
        job = self.started()
        pids = self.pids(job)
        said = self.again("--restart", "--yes").stdout
        self.assertIn("restart: worker:0, worker:1, other:0", said)
        wait_until(lambda: self.show(job)["state"] == "Running" and
                   all(pid and pid != pids[task] and is_alive(pid) for task, pid in self.pids(job).items()),
                   "all tasks run anew")
        self.assertIn("nothing changed", self.again().stdout)

    def test_restart_of_a_job_that_does_not_run_starts_it(self):
        self.write("job.yaml", "name: quick\nroles: {worker: {command: echo hi}}\n")
        self.assertIn("hi", self.muster("run", "--restart", self.dir / "job.yaml").stdout)

    def test_a_supervisor_without_the_version_does_not_run_another_one(self):
        job = self.started()
        for path in (self.home / "jobs" / job / "versions").glob("*/files.json"):
            path.write_text("{")
        self.program(2)
        kill(self.pids(job)["worker:0"])
        failed = self.wait_state(job, "Failed")
        self.assertIn("the program that the job was started with is lost", str(failed["failure"]))
        self.assertEqual([line[0] for line in self.lines(0)], ["v1"])

    def test_a_full_disk_is_reported_and_the_job_runs(self):
        self.home = self.dir / "disk" / "home"
        self.mount(self.dir / "disk", "4m")
        self.env["MUSTER_HOME"] = str(self.home)
        (self.dir / "large.py").write_text("#" * (8 << 20))
        said = self.muster("run", self.write("job.yaml", "name: full\nroles: {worker: {command: echo hi}}\n"))
        self.assertIn("cannot keep a copy of the program", said.stderr)
        self.assertIn("No space left", said.stderr)
        self.assertIn("hi", said.stdout)

    def test_an_interrupted_job_leaves_one_version(self):
        job = self.started()
        self.program(2)
        self.again("--yes")
        versions = list((self.home / "jobs" / job / "versions").iterdir())
        self.assertEqual(len(versions), 1)
        self.muster("stop", "--yes", job)
        self.muster("jobs", "prune", "--keep", "0", "--yes")
        self.assertEqual(list((self.home / "files").iterdir()), [])


if __name__ == "__main__":
    unittest.main()
