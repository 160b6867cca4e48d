"""Disks that are full or read-only, and a history that is damaged."""
import os
import pathlib
import resource
import shutil
import unittest

from support import PYTHON, MusterTest, is_alive, wait_until

NOBODY = 65534


class DiskTest(MusterTest):
    LOUD = f"""
        name: loud
        roles: {{worker: {{command: [{PYTHON}, -c, "import sys; [sys.stdout.write('x' * 99 + chr(10)) for _ in range(300000)]; open('done', 'w')"]}}}}
        """

    def test_a_full_disk_under_the_logs_does_not_stop_the_job(self):
        self.mount(self.home / "jobs", "4m")
        result = self.muster("run", self.write("job.yaml", self.LOUD), timeout=100)
        self.assertTrue((self.dir / "done").exists())
        self.assertIn("output is lost", result.stderr)
        self.assertIn("No space left", result.stderr)
        self.assertEqual(self.jobs()[0]["state"], "Succeeded")

    def test_a_file_size_limit_costs_output_and_not_the_job(self):
        limit = 4 << 20
        job = self.write("job.yaml", """
            name: loud
            roles: {worker: {command: "grep SigIgn /proc/self/status > signals; yes | head -c 20000000; touch done"}}
            """)
        result = self.muster("run", job, timeout=100,
                             preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)))
        self.assertTrue((self.dir / "done").exists())
        self.assertIn("output is lost", result.stderr)
        self.assertIn("File too large", result.stderr)
        self.assertEqual(self.jobs()[0]["state"], "Succeeded")
        self.assertRegex((self.dir / "signals").read_text(), r"SigIgn:\s+0+\n")  # the task has default signal handlers

    def test_a_full_disk_under_everything_ends_with_a_clear_reason(self):
        self.mount(self.home, "4m")
        result = self.muster("run", self.write("job.yaml", self.LOUD), check=False, timeout=120)
        self.assertTrue((self.dir / "done").exists())  # the task completed
        self.assertRegex(result.stderr, "(?i)no space left|disk.*full")
        self.assertNotRegex(result.stderr, r"loud-\w{5} Running\n")  # Running is no outcome
        supervisors = [job["supervisor_pid"] for job in self.jobs()]
        self.assertFalse(any(pid and is_alive(pid) for pid in supervisors))

    def test_a_full_disk_before_the_start(self):
        self.mount(self.home, "1m")
        filler = os.open(self.home / "filler", os.O_WRONLY | os.O_CREAT)
        with self.assertRaises(OSError):
            while True:
                os.write(filler, b"x" * 4096)
        os.close(filler)
        result = self.muster("run", self.write("job.yaml", self.LOUD), check=False, timeout=60)
        self.assertEqual(result.returncode, 1)
        self.assertRegex(result.stderr, "(?i)full|no space")
        self.assertFalse((self.dir / "done").exists())

    def as_nobody(self, *args):
        """Runs muster as a user without write access to MUSTER_HOME: this user, unless it is root."""
        drop = None
        if os.geteuid() == 0:
            self.dir.chmod(0o755)

            def drop():
                os.setgroups([])
                os.setgid(NOBODY)
                os.setuid(NOBODY)

        result = self.muster(*args, check=False, preexec_fn=drop)
        if os.geteuid() == 0 and "Permission denied" in result.stderr and "muster:" not in result.stderr:
            self.skipTest("nobody may not run the program where it is")
        return result

    def test_a_home_without_write_permission(self):
        self.home.mkdir()
        self.home.chmod(0o555)
        job = self.write("job.yaml", "name: j\nroles: {worker: {command: 'true'}}\n")
        job.chmod(0o644)
        for args in (("run", job), ("jobs",), ("show",)):
            result = self.as_nobody(*args)
            self.assertEqual(result.returncode, 1, args)
            self.assertIn(str(self.home), result.stderr, args)
            self.assertRegex(result.stderr, "(?i)not writable|permission denied", args)
        findings = self.as_nobody("doctor")
        self.assertEqual(findings.returncode, 1)
        self.assertIn("not writable", findings.stdout)

    def test_a_home_that_is_a_file(self):
        self.home.write_text("")
        self.assertEqual(self.muster("jobs", check=False).returncode, 1)
        self.home.unlink()

    def test_a_home_that_cannot_be_created(self):
        self.env["MUSTER_HOME"] = "/proc/muster"
        result = self.muster("jobs", check=False)
        self.assertEqual(result.returncode, 1)
        self.assertIn("/proc/muster", result.stderr)


class HistoryTest(MusterTest):
    SLEEPER = "name: kept\nroles: {worker: {command: 'until [ -e go ]; do sleep 0.05; done; echo the end'}}\n"

    def damage(self):
        for suffix in ("", "-wal"):
            path = pathlib.Path(f"{self.home}/history.db{suffix}")
            if path.exists():
                with open(path, "r+b") as file:
                    file.write(os.urandom(max(path.stat().st_size, 4096)))

    def test_damage_while_a_job_runs(self):
        job = self.run_detached(self.SLEEPER)
        self.wait_state(job, "Running")
        self.damage()
        result = self.muster("jobs")
        self.assertIn("history.db was damaged; moved to", result.stderr)
        self.assertIn(job, result.stdout)
        self.assertEqual(len(list(self.home.glob("history.db.damaged-*"))) > 0, True)
        self.write("go", "")
        self.wait_state(job, "Succeeded")
        self.assertEqual([task["state"] for task in self.show(job)["tasks"]], ["Succeeded"])
        self.assertIn("the end", self.muster("logs", job).stdout)
        self.assertEqual(self.muster("jobs").stderr, "")

    def test_a_job_can_be_stopped_after_the_damage(self):
        job = self.run_detached(self.SLEEPER)
        self.wait_state(job, "Running")
        self.damage()
        self.muster("jobs")
        self.muster("stop", job, timeout=60)
        self.assertEqual(self.show(job)["state"], "Stopped")

    def test_a_run_of_the_name_after_the_damage_does_not_start_a_second(self):
        job = self.run_detached(self.SLEEPER)
        self.wait_state(job, "Running")
        self.damage()
        self.muster("run", "-d", self.dir / "job.yaml", check=False)
        self.assertEqual([j["id"] for j in self.jobs()], [job])

    def test_a_missing_history_is_made_from_the_folders(self):
        self.muster("run", self.write("job.yaml", "name: old\nroles: {worker: {command: 'echo hi'}}\n"))
        for path in self.home.glob("history.db*"):
            path.unlink()
        result = self.muster("jobs")
        self.assertIn("missing", result.stderr)
        self.assertIn("old-", result.stdout)
        self.assertIn("hi", self.muster("logs", "old").stdout)

    def test_recovered_finished_jobs_do_not_block_their_names(self):
        for name in ("one", "two", "three"):
            self.muster("run", self.write(f"{name}.yaml", f"name: {name}\nroles: {{worker: {{command: 'echo hi'}}}}\n"))
        for path in self.home.glob("history.db*"):
            path.unlink()
        self.muster("jobs")
        self.assertIn("worker:0 | hi", self.muster("run", "one.yaml").stdout)
        self.assertIn("worker:0 | hi", self.muster("resume", "two").stdout)
        self.muster("stop", "three")
        self.muster("jobs", "prune", "--keep", "0", "--yes")
        self.assertEqual(self.jobs(), [])

    def test_a_history_file_that_is_empty_or_not_a_database(self):
        self.home.mkdir()
        for content in (b"", b"not a database" * 100):
            (self.home / "history.db").write_bytes(content)
            self.assertEqual(self.jobs(), [])

    def test_the_job_folder_is_removed_while_it_runs(self):
        job = self.run_detached(self.SLEEPER)
        self.wait_state(job, "Running")
        pid = self.pids(job)["worker:0"]
        supervisor = self.show(job)["supervisor_pid"]
        shutil.rmtree(self.home / "jobs" / job)
        self.assertEqual(self.jobs()[0]["state"], "Running")
        self.write("go", "")
        wait_until(lambda: not is_alive(pid) and not is_alive(supervisor), "the job has ended")
        self.assertEqual(self.show(job)["state"], "Succeeded")


if __name__ == "__main__":
    unittest.main()
