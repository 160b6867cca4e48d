"""Jobs on Vertex AI with faults: lost responses, concurrent commands, services that reject requests or are slow."""
import json
import os
import re
import shutil
import signal
import subprocess
import time
import unittest

from support import MUSTER, wait_until
from vertex_support import COMMANDS, JOB, GoogleTest

PLACE = ("--scale-tier", "STANDARD_1", "--bucket", "bucket")


def called(name):
    return JOB.replace("mnist\n", f"{name}\n", 1)


class VertexFaultTest(GoogleTest):
    def fault(self, match, status=None, message="no", **more):
        """Sets the fault of the next matching request."""
        body = {"error": {"code": status, "message": message, "status": more.pop("name", "PERMISSION_DENIED"), **more.pop("error", {})}}
        kind = {"kind": "status", "status": status, "body": body} if status else {}
        self.google.ask("faults", [{"match": match, **kind, **more}])

    def states(self):
        return {job["displayName"]: job["state"].removeprefix("JOB_STATE_") for job in self.vertex()["jobs"]}

    def kill_at_the_submission(self, name):
        """Starts a run with that id and kills it during the request for its job, which is not created."""
        self.google.ask("faults", [{"kind": "stall", "method": "POST", "match": "customJobs"}])
        run = self.start("run", self.file(), "--on", "vertex", "-d", *PLACE, "--job-id", name, cwd=self.work)
        wait_until(lambda: any("POST /v1" in request for request in self.google.ask("state")["requests"]), "the job is being made")
        run.kill()
        run.wait()
        self.google.ask("faults", [])

    # ---- resume

    def test_nothing_is_resumed_while_a_job_of_its_chain_runs_wherever_that_is(self):
        self.serve()
        self.submit("--job-id", "eu", "--region", "europe-west4")
        self.become("eu", "RUNNING")
        said = self.refuse(*PLACE, "--job-id", "eu2", "--resume", "eu", text=called("second"))
        self.assertIn("muster stop eu --on vertex --project project --region europe-west4", said)
        self.become("eu", "SUCCEEDED")
        self.submit("--job-id", "eu2", "--resume", "eu", text=called("second"))
        # Another user resumed the same job.
        self.assertIn("eu2 has not ended and still writes to gs://bucket/muster_eu",
                      self.refuse(*PLACE, "--job-id", "eu3", "--resume", "eu", text=called("third")))
        self.become("eu2", "FAILED")
        # An evaluation only reads.
        self.muster("evaluate", "-d", "--train-folder", "gs://bucket/muster_eu", "--job-id", "measured")
        self.fault("customJobs\\?", 403)
        said = self.refuse(*PLACE, "--job-id", "eu3", "--resume", "eu", text=called("third"))
        self.assertIn("cannot determine whether a job still writes to gs://bucket/muster_eu", said)
        self.submit("--job-id", "eu3", "--resume", "eu2", text=called("third"))
        self.assertEqual(self.states()["eu3"], "PENDING")

    def test_one_of_two_concurrent_resumes_succeeds(self):
        self.serve()
        self.submit("--job-id", "first")
        self.become("first", "FAILED")
        # The second has checked before the first job exists, and uploads its files meanwhile.
        self.google.ask("faults", [{"kind": "status", "status": 503, "match": "muster_slow", "method": "POST", "times": 6}])
        slow = self.start("run", self.file(called("slow")), "--on", "vertex", "-d", *PLACE, "--job-id", "slow", "--resume", "first", cwd=self.work)
        wait_until(lambda: self.muster("show", "slow", check=False).returncode == 0, "it is on its way")
        self.submit("--job-id", "quick", "--resume", "first", text=called("quick"))
        slow.communicate(timeout=120)
        self.assertNotEqual(slow.returncode, 0)
        self.assertEqual(set(self.states()), {"first", "quick"})

    # ---- lost responses, ids in use

    def test_a_job_whose_creation_got_no_response_and_is_listed_late(self):
        self.serve()
        self.google.ask("faults", [{"kind": "loseResponse", "method": "POST", "match": "customJobs"},
                                   {"kind": "status", "method": "GET", "status": 200, "match": "customJobs\\?", "times": 4, "body": {}}])
        said = self.refuse(*PLACE, "--job-id", "lost")
        self.assertIn("the job may or may not have been created", said)
        self.assertIn("bucket/muster_lost/job.json", self.objects())
        shown = self.show("lost")
        self.assertEqual(shown["state"], "Unreachable", shown)
        # The job exists.
        self.become("lost", "RUNNING")
        self.assertEqual(self.show("lost")["state"], "Running")
        self.assertIn("the job id 'lost' is taken", self.refuse(*PLACE, "--job-id", "lost"))
        self.muster("stop", "--yes", "lost")
        self.assertEqual(self.states(), {"lost": "CANCELLED"})

    def test_a_late_job_whose_id_was_taken_ends_itself(self):
        self.serve()
        self.google.ask("faults", [{"kind": "loseResponse", "method": "POST", "match": "customJobs"},
                                   {"kind": "status", "method": "GET", "status": 200, "match": "customJobs\\?", "times": 6, "body": {}}])
        self.refuse(*PLACE, "--job-id", "again", text=COMMANDS.replace("own", "mnist", 1))
        orphan = self.nonce("again")
        self.submit("--job-id", "again", text=COMMANDS.replace("own", "mnist", 1))
        self.assertEqual(len(self.vertex()["jobs"]), 2)
        cluster = {"workerpool0": ["a:2222"], "workerpool1": ["b:2222"]}
        refused = self.run_task("again", "workerpool0", 0, cluster, nonce=orphan)
        self.assertNotEqual(refused.returncode, 0)
        self.assertIn("belongs to another submission", refused.stderr)
        self.assertEqual(self.run_task("again", "workerpool0", 0, cluster).returncode, 0)

    def test_an_earlier_submission_that_did_create_a_job_is_not_replaced(self):
        self.serve()
        self.google.ask("faults", [{"kind": "loseResponse", "method": "POST", "match": "customJobs"},
                                   {"kind": "status", "method": "GET", "status": 200, "match": "customJobs\\?", "times": 5, "body": {}}])
        self.refuse(*PLACE, "--job-id", "again")
        said = self.refuse(*PLACE, "--job-id", "again")
        self.assertIn("has reached Vertex AI after all", said)
        self.become("again", "RUNNING")
        self.assertEqual(self.show("again")["state"], "Running")
        self.assertEqual(len(self.vertex()["jobs"]), 1)

    def test_the_same_id_in_another_users_bucket(self):
        self.serve(buckets=["bucket", "other"])
        self.submit("--job-id", "same")
        self.become("same", "RUNNING")
        self.env["MUSTER_HOME"] = str(self.dir / "another-home")
        self.fault("customJobs", 503, method="POST", name="UNAVAILABLE")
        options = ("--scale-tier", "STANDARD_1", "--bucket", "other", "--job-id", "same")
        self.assertIn("the job may or may not have been created", self.refuse(*options))
        self.muster("stop", "--yes", "same", check=False)
        self.assertEqual(self.states(), {"same": "RUNNING"})
        self.train(*options)
        self.assertEqual(len(self.vertex()["jobs"]), 2)

    def test_a_dry_run_or_a_mistake_does_not_forget_an_earlier_try(self):
        self.serve()
        self.kill_at_the_submission("again")
        options = (*PLACE, "--job-id", "again")
        self.assertIn("Would start", self.train(*options, "--dry-run", detach=False).stdout)
        self.refuse("--bucket", "bucket", "--job-id", "again", code=2)
        self.assertEqual(self.show("again")["id"], "again")
        self.assertIn("may be running", self.refuse(*PLACE))
        self.assertIn("Started again", self.train(*options).stdout)
        self.assertEqual(self.states(), {"again": "PENDING"})

    def test_the_id_of_a_local_job_is_taken(self):
        self.serve()
        local = self.write("local.yaml", "name: local\nroles: {worker: {command: 'false'}}\n")
        self.muster("run", local, check=False)
        job = json.loads(self.muster("jobs", "--json").stdout)[0]["id"]
        self.assertIn("is taken", self.refuse(*PLACE, "--job-id", job))
        self.assertEqual(self.show(job)["platform"], "local")

    # ---- concurrent commands

    def test_a_local_job_does_not_wait_for_a_submission_to_vertex(self):
        self.serve()
        self.google.ask("faults", [{"kind": "stall", "match": "^/token", "times": 50}])
        run = self.start("run", self.file(), "--on", "vertex", "-d", *PLACE, cwd=self.work)
        wait_until(lambda: any("/token" in request for request in self.google.ask("state")["requests"]), "it signs in")
        local = self.write("local.yaml", "name: local\nroles: {worker: {command: 'true'}}\n")
        begin = time.monotonic()
        self.muster("run", local)
        self.assertLess(time.monotonic() - begin, 10)
        self.assertIsNone(run.poll())
        run.kill()
        run.wait()

    def test_ctrl_c_while_files_are_sent_ends_it(self):
        self.serve()
        self.google.ask("faults", [{"kind": "stall", "match": "muster_packages", "times": 50}])
        run = self.start("run", self.file(), "--on", "vertex", *PLACE, "--job-id", "slow", cwd=self.work)
        wait_until(lambda: any("muster_packages" in request for request in self.google.ask("state")["requests"]), "it sends")
        run.send_signal(signal.SIGINT)
        run.communicate(timeout=10)
        self.assertNotEqual(run.returncode, 0)
        self.google.ask("faults", [])
        shown = self.show("slow")
        self.assertEqual((shown["state"], shown["reason"]), ("Failed", "it never started: `muster run` was interrupted"))
        self.assertEqual((self.objects(), self.states()), (set(), {}))
        self.submit("--job-id", "slow")

    def test_a_package_that_another_sends_meanwhile(self):
        self.serve()
        (self.work / "large").write_bytes(os.urandom(24 << 20))
        self.submit("--job-id", "first")
        self.become("first", "SUCCEEDED")
        # It did not exist at the check.
        self.fault("muster_packages", 404, method="GET", name="NOT_FOUND", times=2)
        self.submit("--job-id", "second")

    def test_showing_another_users_job_does_not_reserve_its_name(self):
        self.serve()
        pool = {"machineSpec": {"machineType": "n1-standard-4"}, "replicaCount": "1", "containerSpec": {"imageUri": "i"}}
        self.vertex({"jobs": [{"job": {"displayName": "mnist", "jobSpec": {"workerPoolSpecs": [pool]}}}]})
        self.become("mnist", "RUNNING")
        self.muster("show", self.number("mnist"), "--on", "vertex")
        local = self.write("local.yaml", "name: mnist\nroles: {worker: {command: 'true'}}\n")
        self.muster("run", local)
        self.submit()

    def test_a_machine_without_the_trainer_may_submit(self):
        self.serve()
        alone = self.dir / "alone"
        alone.mkdir()
        shutil.copy(MUSTER, alone / "muster")
        result = subprocess.run([alone / "muster", "run", self.file(), "--on", "vertex", "-d", *PLACE], cwd=self.work, env=self.env,
                                capture_output=True, text=True, timeout=60)
        self.assertEqual(result.returncode, 0, result.stderr)

    def test_options_for_a_job_that_runs_already(self):
        self.serve()
        job = self.submit()
        self.become(job, "RUNNING")
        self.assertIn(f"--job-id is for a new job, and {job} is running", self.refuse(*PLACE, "--job-id", "second"))
        for options in (("--scale-tier", "PREMIUM_1"), ("--bucket", "elsewhere"), ("--image", "x:2"), ("--rebuild",)):
            self.assertIn("cannot be changed", self.refuse(*options))
        self.assertIn("nothing changed", self.train(*PLACE).stdout)
        self.assertEqual(self.states(), {job: "RUNNING"})

    # ---- errors that do not end a job

    def test_a_job_briefly_not_found_has_not_ended(self):
        self.serve()
        job = self.submit()
        self.become(job, "RUNNING")
        number = self.number(job)
        for times, message, state in ((9, "Project 123 was not found", "Unreachable"), (1, f"customJobs/{number} was not found", "Running"),
                                      (2, f"customJobs/{number} was not found", "Stopped")):
            self.fault("customJobs", 404, message, method="GET", name="NOT_FOUND", times=times)
            self.assertEqual(self.show(job)["state"], state)

    def test_denied_requests_name_the_account_and_the_remedy(self):
        self.serve()
        options = (*PLACE, "--job-id", "again")
        self.fault("customJobs", 403, "Permission denied", method="POST")
        self.assertIn(f"--member=serviceAccount:{json.loads(self.key.read_text())['client_email']}", self.refuse(*options))
        self.fault("customJobs", 403, "This API method requires billing to be enabled.", method="POST", error={"details": [{"reason": "BILLING_DISABLED"}]})
        self.assertIn("gcloud billing projects link project", self.refuse(*options))
        self.fault("customJobs", 400, "Machine type is not supported.", method="POST", name="INVALID_ARGUMENT")
        self.assertIn("Machine type is not supported.", self.refuse(*options))

    # ---- output

    def at(self, seconds):
        now = time.time() + seconds
        return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(now)) + f".{int(now % 1 * 1e6):06}Z"

    def lines(self, text):
        return [line.split(" :: ", 1)[1] for line in text.splitlines()]

    def test_output_that_comes_late_is_not_lost_and_none_comes_twice(self):
        self.serve()
        job = self.submit()
        self.become(job, "RUNNING")
        self.say(job, {"message": "early", "timestamp": self.at(-200)}, {"message": "now", "timestamp": self.at(-20)})
        self.assertEqual(self.lines(self.muster("logs", job).stdout), ["early", "now"])
        self.say(job, {"message": "late", "task": "workerpool1-1", "timestamp": self.at(-30)})
        self.assertEqual(sorted(self.lines(self.muster("logs", job).stdout)), ["early", "late", "now"])
        self.become(job, "SUCCEEDED", endTime=self.at(-25))
        self.assertEqual(self.show(job)["state"], "Succeeded")
        self.say(job, {"message": "after the end", "timestamp": self.at(-26)})
        self.assertEqual(sorted(self.lines(self.muster("logs", job).stdout)), ["after the end", "early", "late", "now"])

    def test_all_output_is_read_once_more_minutes_after_the_end(self):
        self.serve()
        job = self.submit()
        self.become(job, "RUNNING")
        self.say(job, {"message": "one", "timestamp": self.at(-900)}, {"message": "three", "timestamp": self.at(-700)})
        self.assertEqual(self.lines(self.muster("logs", job).stdout), ["one", "three"])
        self.say(job, {"message": "two", "timestamp": self.at(-800)})
        self.assertEqual(self.lines(self.muster("logs", job).stdout), ["one", "three"])
        self.become(job, "SUCCEEDED")
        for _ in range(2):
            self.assertEqual(sorted(self.lines(self.muster("logs", job).stdout)), ["one", "three", "two"])
        self.assertEqual(len(self.vertex()["filters"]), 3)

    def test_a_follower_waits_for_the_last_output(self):
        self.serve()
        job = self.submit()
        self.become(job, "RUNNING")
        follow = self.start("logs", "-f", "--polling-interval", "200ms", job)
        wait_until(lambda: self.vertex()["filters"], "it looks")
        begin = time.monotonic()
        self.become(job, "SUCCEEDED", endTime=self.at(0))
        self.say(job, {"message": "last words", "timestamp": self.at(-1)})
        time.sleep(8)
        self.say(job, {"message": "eight seconds late", "timestamp": self.at(-9)})
        out, _ = follow.communicate(timeout=60)
        self.assertGreater(time.monotonic() - begin, 10)
        self.assertEqual(self.lines(out), ["last words", "eight seconds late"])

    def test_a_follower_reports_denied_output_once(self):
        self.serve()
        job = self.submit()
        self.become(job, "RUNNING")
        follow = self.start("logs", "-f", "--polling-interval", "100ms", job)
        wait_until(lambda: len(self.vertex()["filters"]) > 1, "it looks")
        self.fault("entries:list", 403, times=1000)
        asked = lambda: sum("entries:list" in request for request in self.google.ask("state")["requests"])
        before = asked()
        wait_until(lambda: asked() > before + 5, "it is refused several times")
        follow.send_signal(signal.SIGINT)
        _, err = follow.communicate(timeout=30)
        self.assertEqual(err.count("roles/logging.viewer"), 2, err)  # in one line: the role, and the command that grants it

    def test_jobs_and_show_do_not_wait_for_output(self):
        self.serve(entriesPerPage=10)
        job = self.submit()
        self.become(job, "RUNNING")
        self.say(job, *(f"line {i}" for i in range(100)))
        self.become(job, "SUCCEEDED")
        self.muster("jobs")
        self.assertEqual(self.vertex()["filters"], [])
        # The last lines of a failure are requested once.
        failed = self.submit(text=called("failing"))
        self.say(failed, *({"message": f"line {i}", "task": "workerpool1-0"} for i in range(30)), "another task")
        self.become(failed, "FAILED", error={"code": 3, "message": "The replica workerpool1-0 exited with a non-zero status of 3."})
        said = self.muster("show", failed).stdout
        self.assertIn("line 29", said)
        self.assertNotIn("line 19\n", said)
        self.assertEqual(len(self.vertex()["filters"]), 1)
        slow = self.submit(text=called("slow"))
        self.become(slow, "FAILED", error={"code": 3, "message": "The replica workerpool1-0 exited with a non-zero status of 3."})
        self.google.ask("faults", [{"kind": "stall", "match": "entries:list", "times": 50}])
        begin = time.monotonic()
        self.assertEqual(self.show(slow)["state"], "Failed")
        self.assertLess(time.monotonic() - begin, 20)


if __name__ == "__main__":
    unittest.main()
