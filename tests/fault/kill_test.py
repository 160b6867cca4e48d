"""Processes are killed at the worst moment: no process may outlive its job, and reported states are true."""
import json
import os
import pathlib
import random
import signal
import subprocess
import threading
import time
import unittest

from support import MUSTER, MusterTest, is_alive, kill, wait_until

# Two daemons per task, started as usual with two forks and their own session; one of them without
# the environment variables that identify its job.
DAEMONS = """
    ( setsid env -i /bin/sh -c 'echo $$ > bare.'$1'; exec sleep 600' & )
    ( setsid /bin/sh -c 'echo $$ > daemon.'$1'; exec sleep 600' & )
    until [ -s bare.$1 ] && [ -s daemon.$1 ]; do sleep 0.01; done
    echo ready
    """
JOB = """
    name: haunted
    roles: {worker: {replicas: 2, command: [/bin/sh, daemons.sh, "{index}"]}}
    policies: {backoff: 0s, stop_grace: 2s}
    """


def parent_of(pid):
    return int(pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1])


class DaemonTest(MusterTest):
    """A job whose tasks have started daemons."""

    def start_job(self, ending="exec sleep 600", job=JOB):
        self.write("daemons.sh", DAEMONS + "    " + ending + "\n")
        self.job = self.run_detached(job)
        wait_until(lambda: all(b"ready" in self.log(self.job, f"worker:{i}") for i in (0, 1)), "the daemons run")
        self.supervisor = self.show(self.job)["supervisor_pid"]
        self.guard = parent_of(self.supervisor)
        self.tasks = [pid for pid in self.pids(self.job).values() if pid]
        self.daemons = [int(self.wait_file(f"daemon.{i}")) for i in (0, 1)]
        self.bare = [int(self.wait_file(f"bare.{i}")) for i in (0, 1)]
        self.addCleanup(lambda: [kill(pid) for pid in self.bare])

    def assert_all_gone(self, *groups):
        for pid in [pid for group in groups for pid in group]:
            wait_until(lambda pid=pid: not is_alive(pid), f"process {pid} is gone", 15)

    def test_the_supervisor_is_killed(self):
        self.start_job()
        kill(self.supervisor)
        self.assert_all_gone([self.supervisor, self.guard], self.tasks, self.daemons, self.bare)
        job = self.jobs()[0]
        self.assertEqual(job["state"], "Failed")
        self.assertIn("supervisor died", job["reason"])
        self.assertEqual({(task["state"], task["pid"]) for task in self.show(self.job)["tasks"]}, {("Lost", None)})
        self.assertIn("supervisor died", self.muster("show", self.job).stdout)

    def test_the_guard_is_killed(self):
        self.start_job()
        kill(self.guard)
        state = self.wait_state(self.job, "Stopped", "Failed", timeout=30)
        self.assertIn("SIGTERM", state["reason"])
        self.assert_all_gone([self.supervisor], self.tasks, self.daemons, self.bare)

    def test_both_are_killed_and_the_next_command_cleans_up(self):
        self.start_job()
        os.kill(self.guard, signal.SIGSTOP)  # so that it cannot clean up first
        kill(self.supervisor)
        kill(self.guard)
        wait_until(lambda: not is_alive(self.supervisor) and not is_alive(self.guard), "both are dead", 10)
        job = self.jobs()[0]
        self.assertEqual(job["state"], "Failed")
        self.assert_all_gone(self.tasks, self.daemons)

    def test_the_supervisor_is_asked_to_end(self):
        self.start_job()
        kill(self.supervisor, signal.SIGTERM)
        state = self.wait_state(self.job, "Stopped", timeout=30)
        self.assertIn("SIGTERM", state["reason"])
        self.assert_all_gone([self.supervisor, self.guard], self.tasks, self.daemons, self.bare)

    def test_daemons_end_with_a_stop(self):
        self.start_job()
        self.muster("stop", self.job)
        self.assert_all_gone(self.tasks, self.daemons, self.bare)

    def test_daemons_end_when_the_job_succeeds(self):
        self.start_job(ending="until [ -e go ]; do sleep 0.02; done")
        self.write("go", "")
        self.wait_state(self.job, "Succeeded", timeout=30)
        self.assert_all_gone(self.daemons, self.bare)

    def test_daemons_end_with_their_attempt(self):
        self.start_job(ending='until [ -e go.$1.$MUSTER_ATTEMPT ]; do sleep 0.02; done; exit 200')
        self.write("go.0.0", "")
        wait_until(lambda: self.task(self.job, "worker:0")["attempt"] == 2, "worker:0 was started again", 30)
        self.assert_all_gone(self.daemons[:1])
        self.assertTrue(is_alive(self.daemons[1]), "the other task's daemon")

    def test_daemons_of_a_killed_task_end(self):
        self.start_job(job=JOB.replace("backoff: 0s", "backoff: 300s"))
        kill(self.tasks[0])
        wait_until(lambda: self.task(self.job, "worker:0")["state"] == "Restarting", "its end was seen", 30)
        self.assert_all_gone(self.daemons[:1])


class StopTest(MusterTest):
    def test_a_task_that_ignores_term_is_killed_after_the_grace(self):
        job = self.run_detached("""
            name: deaf
            roles: {worker: {command: 'trap "" TERM; echo ready; while :; do sleep 0.1; done'}}
            policies: {stop_grace: 500ms}
            """)
        wait_until(lambda: self.log(job, "worker:0"), "it is deaf")
        pid = self.pids(job)["worker:0"]
        begin = time.monotonic()
        self.muster("stop", job, timeout=30)
        self.assertGreaterEqual(time.monotonic() - begin, 0.5)
        self.assertFalse(is_alive(pid))
        self.assertEqual(self.task(job, "worker:0")["exit_code"], 137)
        self.assertEqual(self.show(job)["state"], "Stopped")

    def test_a_task_that_was_suspended_ends_too(self):
        job = self.run_detached("name: frozen\nroles: {worker: {command: 'exec sleep 600'}}\npolicies: {stop_grace: 500ms}\n")
        self.wait_state(job, "Running")
        pid = self.pids(job)["worker:0"]
        os.kill(pid, signal.SIGSTOP)
        self.muster("stop", job, timeout=30)
        self.assertFalse(is_alive(pid))

    def test_now_does_not_wait(self):
        job = self.run_detached("""
            name: deaf
            roles: {worker: {replicas: 3, command: 'trap "" TERM; echo ready; while :; do sleep 0.1; done'}}
            policies: {stop_grace: 300s}
            """)
        wait_until(lambda: all(self.log(job, f"worker:{i}") for i in range(3)), "they are deaf")
        self.muster("stop", "--now", job, timeout=30)
        self.assertEqual(self.show(job)["state"], "Stopped")

    def test_stop_now_shortens_a_pending_stop(self):
        job = self.run_detached("""
            name: deaf
            roles: {worker: {command: 'trap "" TERM; echo ready; while :; do sleep 0.1; done'}}
            policies: {stop_grace: 300s}
            """)
        wait_until(lambda: self.log(job, "worker:0"), "it is deaf")
        patient = self.start("stop", job)
        self.assertIn("stops", patient.stdout.readline())
        self.muster("stop", "--now", job, timeout=30)
        self.assertEqual(patient.wait(30), 0)

    def test_during_the_start(self):
        job = self.run_detached("""
            name: starting
            roles: {worker: {replicas: 2, command: 'exec sleep 600', ready: listening}}
            policies: {start_timeout: 300s}
            """)
        self.assertEqual(self.show(job)["state"], "Starting")
        self.muster("stop", job, timeout=30)
        self.assertEqual(self.show(job)["state"], "Stopped")

    def test_while_a_task_waits_to_be_started_again(self):
        job = self.run_detached("name: waits\nroles: {worker: {command: 'exit 200'}}\npolicies: {backoff: 300s, max_backoff: 300s}\n")
        wait_until(lambda: self.task(job, "worker:0")["state"] == "Restarting", "it waits")
        self.muster("stop", job, timeout=30)
        self.assertEqual(self.show(job)["state"], "Stopped")

    def test_a_supervisor_that_hangs_does_not_hang_the_others(self):
        job = self.run_detached("name: hung\nroles: {worker: {command: 'exec sleep 600'}}\n")
        self.wait_state(job, "Running")
        supervisor = self.show(job)["supervisor_pid"]
        os.kill(supervisor, signal.SIGSTOP)
        self.addCleanup(kill, supervisor, signal.SIGCONT)
        self.assertEqual(self.jobs()[0]["state"], "Running")
        result = self.muster("stop", job, check=False, timeout=60)
        self.assertEqual(result.returncode, 1)
        self.assertIn("did not respond", result.stderr)
        kill(supervisor, signal.SIGCONT)


class SubmissionTest(MusterTest):
    def test_a_killed_run_leaves_no_orphan_and_no_stuck_job(self):
        job = self.write("job.yaml", "name: cut\nroles: {worker: {replicas: 2, command: 'exec sleep 600'}}\n")
        random.seed(os.getpid())
        for _ in range(20):
            run = subprocess.Popen([MUSTER, "run", "-d", job], cwd=self.dir, env=self.env,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            time.sleep(random.uniform(0, 0.04))  # a random moment
            run.kill()
            run.wait()
            # The job can be handled immediately in any state: its name resolves, and stop works.
            wait_until(lambda: all(j["state"] not in ("Pending",) for j in self.jobs()), "no job is stuck", 10)
            active = [j["id"] for j in self.jobs() if j["state"] in ("Starting", "Running")]
            self.assertLessEqual(len(active), 1)
            self.muster("run", "-d", job, timeout=30)
            self.muster("stop", "--now", "cut", timeout=30)
            self.assertEqual({j["state"] for j in self.jobs()} - {"Stopped", "Failed"}, set())

    def test_runs_of_one_name_at_the_same_moment_make_one_job(self):
        job = self.write("job.yaml", "name: once\nroles: {worker: {command: 'exec sleep 600'}}\n")
        for _ in range(5):
            runs = [self.start("run", "-d", job) for _ in range(6)]
            output = [run.communicate(timeout=60) for run in runs]
            self.assertEqual([run.returncode for run in runs], [0] * 6, output)
            active = [j["id"] for j in self.jobs() if j["state"] in ("Starting", "Running")]
            self.assertEqual(len(active), 1, output)
            self.muster("stop", "--now", "once")

    def test_a_resume_and_a_run_at_the_same_moment_make_one_job(self):
        job = self.write("job.yaml", "name: once\nroles: {worker: {command: 'exec sleep 600'}}\n")
        self.muster("run", "-d", job)
        for _ in range(5):
            self.muster("stop", "--now", "once")
            both = [self.start("run", "-d", job), self.start("resume", "-d", "once")]
            for process in both:
                process.communicate(timeout=60)
            self.assertEqual(len([j for j in self.jobs() if j["state"] in ("Starting", "Running")]), 1)


class BystanderTest(MusterTest):
    """Read-only commands must not affect a job."""

    def test_listing_starting_jobs_does_not_end_them(self):
        job = "name: {}\nroles: {{worker: {{replicas: 2, command: [sleep, '0.3']}}}}\n"
        stop = threading.Event()

        def look():
            while not stop.is_set():
                self.muster("jobs", check=False)

        lookers = [threading.Thread(target=look) for _ in range(3)]
        for looker in lookers:
            looker.start()
        try:
            for number in range(25):
                self.muster("run", "-d", self.write("job.yaml", job.format(f"job{number}")))
            wait_until(lambda: all(j["finished"] for j in self.jobs()), "every job has ended")
        finally:
            stop.set()
            for looker in lookers:
                looker.join()
        self.assertEqual([j["reason"] for j in self.jobs() if j["state"] != "Succeeded"], [])

    def test_another_pid_namespace_concludes_nothing(self):
        elsewhere = ["unshare", "--pid", "--fork", "--mount-proc"]
        if subprocess.run([*elsewhere, "true"], capture_output=True).returncode != 0:
            self.skipTest("pid namespaces are not to be had here")
        job = self.run_detached("name: seen\nroles: {worker: {command: [sleep, '600']}}\n")
        self.wait_state(job, "Running")
        shown = subprocess.run([*elsewhere, MUSTER, "jobs", "--json"], env=self.env, cwd=self.dir,
                               capture_output=True, text=True, check=True)
        self.assertEqual(json.loads(shown.stdout)[0]["state"], "Running")
        self.assertEqual(self.show(job)["state"], "Running")


if __name__ == "__main__":
    unittest.main()
