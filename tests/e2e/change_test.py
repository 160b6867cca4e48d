"""muster run of a running job: only changed tasks restart."""
import json
import unittest

from support import MusterTest, free_ports, is_alive, wait_until

JOB = """
    name: changed
    roles:
      chief: {{command: 'exec sleep {chief}', addresses: ["127.0.0.1:{p0}"]}}
      worker: {{replicas: {workers}, command: 'exec sleep {worker}', port: {p1}}}
    policies: {{max_restarts: {restarts}}}
    """


class ChangeTest(MusterTest):
    def setUp(self):
        super().setUp()
        ports = free_ports(4)
        self.values = dict(chief=600, worker=601, workers=2, restarts=3, p0=ports[0], p1=ports[1])

    def text(self, **changes):
        return JOB.format(**{**self.values, **changes})

    def started(self):
        job = self.run_detached(self.text())
        self.wait_state(job, "Running")
        return job, self.pids(job)

    def change(self, *args, text=None, **changes):
        return self.muster("run", "-d", "--yes", *args, self.write("job.yaml", text or self.text(**changes)))

    def test_nothing_changed(self):
        job, pids = self.started()
        said = self.change().stdout
        self.assertIn("nothing changed", said)
        self.assertIn(job, said)
        self.assertEqual(self.pids(job), pids)
        self.assertEqual(len(self.jobs()), 1)

    def test_a_comment_restarts_nothing(self):
        job, pids = self.started()
        self.assertIn("nothing changed", self.change(text="# a remark\n" + self.text()).stdout)
        self.assertEqual(self.pids(job), pids)

    def test_only_the_role_that_changed_restarts(self):
        job, pids = self.started()
        said = self.change(worker=602).stdout
        self.assertRegex(said, r"(?m)^-.*sleep 601")
        self.assertRegex(said, r"(?m)^\+.*sleep 602")
        self.assertIn("restart: worker:0, worker:1", said)
        self.assertIn("keep:    chief:0", said)
        wait_until(lambda: self.show(job)["state"] == "Running" and
                   all(pid and is_alive(pid) and pid != pids[task]
                       for task, pid in self.pids(job).items() if task != "chief:0"), "the workers run anew")
        self.assertEqual(self.pids(job)["chief:0"], pids["chief:0"])
        self.assertTrue(is_alive(pids["chief:0"]))
        self.assertFalse(is_alive(pids["worker:0"]))
        self.assertIn("602", self.task(job, "worker:1")["command"])
        self.assertEqual(len(self.jobs()), 1)
        self.assertIn("nothing changed", self.change(worker=602).stdout)

    def test_an_added_replica_starts(self):
        job, _ = self.started()
        self.assertIn("start:   worker:2", self.change(workers=3).stdout)
        wait_until(lambda: len(self.show(job)["tasks"]) == 3 + 1 and self.show(job)["state"] == "Running", "it runs")
        self.assertTrue(is_alive(self.pids(job)["worker:2"]))
        config = json.loads(json.loads(self.muster("env", job, "chief", "0", "--format", "json").stdout)["TF_CONFIG"])
        self.assertEqual(len(config["cluster"]["worker"]), 3)

    def test_an_added_replica_with_a_picked_port_starts(self):
        job = self.run_detached("name: grows\nroles: {worker: {replicas: 1, command: 'exec sleep 600'}}\n")
        self.wait_state(job, "Running")
        said = self.muster("run", "-dy", self.write("job.yaml", "name: grows\nroles: {worker: {replicas: 2, command: 'exec sleep 600'}}\n"))
        self.assertIn("worker:1", said.stdout)
        wait_until(lambda: self.show(job)["state"] == "Running" and len(self.show(job)["tasks"]) == 2, "both run")

    def test_a_removed_replica_is_stopped(self):
        job, pids = self.started()
        self.assertIn("stop:    worker:1", self.change(workers=1).stdout)
        wait_until(lambda: not is_alive(pids["worker:1"]), "worker:1 is gone")
        wait_until(lambda: [task["task"] for task in self.show(job)["tasks"]] == ["chief:0", "worker:0"],
                   "it is not shown any more")
        self.assertNotEqual(self.show(job)["state"], "Failed")

    def test_policies_change_without_a_restart(self):
        job, pids = self.started()
        said = self.change(restarts=7).stdout
        self.assertIn("policies change without a restart", said)
        self.assertIn("keep:    chief:0, worker:0, worker:1", said)
        self.assertEqual(self.pids(job), pids)
        self.assertIn("nothing changed", self.change(restarts=7).stdout)

    def test_a_dry_run_changes_nothing(self):
        job, pids = self.started()
        said = self.change("--dry-run", worker=602).stdout
        self.assertIn("restart: worker:0, worker:1", said)
        self.assertEqual(self.pids(job), pids)
        self.assertIn("restart: worker:0, worker:1", self.change("--dry-run", worker=602).stdout)

    def test_asks_on_a_terminal_in_colour(self):
        job, pids = self.started()
        path = self.write("job.yaml", self.text(worker=602))
        terminal = self.terminal("run", "-d", path)
        terminal.expect("Apply these changes? [y/n]")
        self.assertRegex(terminal.output, r"\x1b\[32m\+.*602")
        self.assertRegex(terminal.output, r"\x1b\[31m-.*601")
        terminal.send("n\n")
        self.assertEqual(terminal.wait(), 0)
        self.assertIn("Nothing was changed", terminal.output)
        self.assertEqual(self.pids(job), pids)
        terminal = self.terminal("run", "-d", path)
        terminal.expect("[y/n]")
        terminal.send("y\n")
        self.assertEqual(terminal.wait(), 0)
        wait_until(lambda: self.pids(job)["worker:0"] not in (None, pids["worker:0"]), "worker:0 runs anew")

    def test_nothing_changes_without_confirmation(self):
        job, pids = self.started()
        result = self.muster("run", "-d", self.write("job.yaml", self.text(worker=602)), check=False)
        self.assertEqual(result.returncode, 1)
        self.assertIn("restart: worker:0, worker:1", result.stdout)
        self.assertIn("--yes", result.stderr)
        self.assertEqual(self.pids(job), pids)
        self.assertIn("restart: worker:0, worker:1", self.change("--dry-run", worker=602).stdout)

    def test_another_working_directory_is_reported(self):
        job, _ = self.started()
        other = self.dir / "other"
        other.mkdir()
        said = self.muster("run", "--dry-run", self.dir / "job.yaml", cwd=other).stdout
        self.assertIn(f"working directory: {other} instead of {self.dir}\n", said)
        self.assertNotIn("working directory", self.change("--dry-run", worker=602).stdout)

    def test_an_invalid_change_is_rejected_and_the_job_continues(self):
        job, pids = self.started()
        result = self.muster("run", "-d", self.write("job.yaml", self.text() + "    oops: 1\n"), check=False)
        self.assertEqual(result.returncode, 2)
        self.assertEqual(self.pids(job), pids)

    def test_an_impossible_change_is_rejected_and_the_job_continues(self):
        job, pids = self.started()
        result = self.muster("run", "-dy", self.write("job.yaml", self.text().replace("127.0.0.1", "192.0.2.1")), check=False)
        self.assertNotEqual(result.returncode, 0)
        self.assertIn("192.0.2.1", result.stderr)
        self.assertEqual(self.pids(job), pids)
        self.assertIn("nothing changed", self.change().stdout)

    def test_the_change_is_followed_to_the_verdict(self):
        job = self.run_detached("name: ends\nroles: {worker: {command: 'exec sleep 600'}}\n")
        self.wait_state(job, "Running")
        result = self.muster("run", "--yes", self.write("job.yaml", "name: ends\nroles: {worker: {command: 'echo new'}}\n"))
        self.assertIn("worker:0 | new", result.stdout)
        self.assertEqual(self.show(job)["state"], "Succeeded")

    def test_after_the_end_the_name_starts_a_new_job(self):
        job, _ = self.started()
        self.muster("stop", job)
        self.change()
        self.assertEqual(len(self.jobs()), 2)


if __name__ == "__main__":
    unittest.main()
