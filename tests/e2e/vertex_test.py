"""muster run --on vertex, and the other commands on such a job, on the Google of our tests (vertex_api.mjs). There are no machines: the tests set the state of jobs themselves."""
import hashlib
import io
import json
import os
import re
import tarfile
import unittest

from support import SOURCE, wait_until
from vertex_support import COMMANDS, JOB, GoogleTest


class VertexTest(GoogleTest):
    # ---- from submission to the end

    def test_from_submission_to_success(self):
        self.serve()
        job = self.submit()
        self.assertRegex(job, r"^train_\d{8}_\d{6}$")
        body = self.vertex()["created"][0]
        pools = body["jobSpec"]["workerPoolSpecs"]
        self.assertEqual([pool["replicaCount"] for pool in pools], ["1", "2", "1"])
        self.assertEqual(pools[2]["machineSpec"], {"machineType": "n1-standard-4"})
        self.assertEqual(pools[0]["containerSpec"]["command"] + pools[0]["containerSpec"]["args"],
                         ["muster", "vertex-task", f"gs://bucket/muster_{job}", self.nonce(job),
                          hashlib.sha256(self.object(f"muster_{job}/job.json")).hexdigest()])
        self.assertIn(f"bucket/muster_{job}/config.yml", self.objects())
        self.assertIn(b"batch_size: 64", self.object(f"muster_{job}/config.yml"))
        self.assertEqual(self.show(job)["state"], "Starting")
        self.become(job, "RUNNING")
        shown = self.show(job)
        self.assertEqual((shown["state"], shown["model_dir"]), ("Running", f"gs://bucket/muster_{job}"))
        self.assertEqual({task["task"]: task["state"] for task in shown["tasks"]},
                         {"chief:0": "Running", "worker:0": "Running", "worker:1": "Running", "ps:0": "Running"})
        self.assertIn("vertex", self.muster("jobs", "--running").stdout)
        self.become(job, "SUCCEEDED")
        self.assertEqual(self.show(job)["state"], "Succeeded")

    def test_a_run_waits_for_the_end_and_prints_the_output(self):
        self.serve()
        run = self.start("run", self.file(), "--on", "vertex", "--bucket", "bucket", "--scale-tier", "STANDARD_1", "--job-id", "mine",
                         cwd=self.work)
        wait_until(lambda: self.vertex()["jobs"], "the job is there")
        self.become("mine", "RUNNING")
        self.say("mine", "step 1", {"message": "what a worker says", "task": "workerpool1-1", "severity": "WARNING"},
                 {"message": "Job is running.", "task": "service", "text": True})
        self.become("mine", "SUCCEEDED")
        out, err = run.communicate(timeout=60)
        self.assertEqual(run.returncode, 0, err)
        self.assertIn("chief:0  | INFO :: step 1\n", out)
        self.assertIn("worker:1 | WARNING :: what a worker says\n", out)
        self.assertIn("[Vertex AI] Job is running.", out)
        self.assertIn("Succeeded", err)

    def test_a_failure_names_the_task_and_its_last_lines(self):
        self.serve()
        job = self.submit()
        self.say(job, {"message": "no such file: data", "task": "workerpool1-0", "severity": "ERROR"})
        self.become(job, "FAILED", error={"code": 3, "message": "The replica workerpool1-0 exited with a non-zero status of 3."})
        said = self.muster("show", job).stdout
        self.assertIn("worker:0", said)
        self.assertIn("no such file: data", said)
        self.assertEqual(self.task(job, "worker:0")["exit_code"], 3)

    def test_the_bucket_is_made_when_there_is_none(self):
        self.serve(buckets=[])
        said = self.train("--scale-tier", "STANDARD_1", "--region", "europe-west4")
        job = re.search(r"Started (\S+) in", said.stdout).group(1)
        self.assertIn(f"muster-project/muster_{job}/job.json", self.objects())
        self.assertIn("/locations/europe-west4/", self.vertex()["jobs"][0]["name"])

    def test_a_changed_file_is_sent_with_few_others(self):
        self.serve()
        for number in range(40):
            (self.work / f"{number}").write_bytes(os.urandom(600_000))

        def packages():
            return {name for name in self.objects() if "muster_packages/" in name}
        self.become(self.submit(), "SUCCEEDED")
        before = packages()
        self.assertGreater(len(before), 2)
        (self.work / "7").write_bytes(b"changed")
        self.submit("--job-id", "again")
        self.assertEqual(len(packages() - before), 1)

    def test_files_that_are_there_are_not_sent_again(self):
        self.serve()
        (self.work / ".gitignore").write_text("secret\n")
        (self.work / "secret").write_text("do not send\n")
        (self.work / "large.bin").write_bytes(os.urandom(5 << 20))
        os.chmod(self.work / "hello.txt", 0o755)
        self.submit("--job-id", "one", text=JOB.replace("mnist\n", "one\n", 1))
        packages = [name for name in self.objects() if "muster_packages/" in name]
        self.assertEqual(len(packages), 2)  # a large file has its own package
        first = self.object(packages[0].split("/", 1)[1])
        names = {}
        for package in packages:
            with tarfile.open(fileobj=io.BytesIO(self.object(package.split("/", 1)[1]))) as tar:
                names.update({member.name: (member.mode, member.mtime, member.uid) for member in tar})
        self.assertEqual(set(names), {"hello.txt", "large.bin", "config.yml", ".gitignore"})
        self.assertEqual(names["hello.txt"][0], 0o755)
        self.assertEqual({(mtime, uid) for _, mtime, uid in names.values()}, {(315532800, 0)})

        before = len([request for request in self.uploads()])
        self.become("one", "SUCCEEDED")
        said = self.train("--bucket", "bucket", "--scale-tier", "STANDARD_1", "--job-id", "two", text=JOB.replace("mnist\n", "one\n", 1))
        self.assertIn("all already in the bucket", said.stderr)
        self.assertEqual([name for name in self.objects() if "muster_packages/" in name and name not in packages], [])
        self.assertEqual(len(self.uploads()) - before, 3)  # job.json, config.yml, tls.json
        self.become("two", "SUCCEEDED")
        said = self.train("--bucket", "bucket", "--scale-tier", "STANDARD_1", "--job-id", "three", "--rebuild",
                          text=JOB.replace("mnist\n", "one\n", 1))
        self.assertIn("5.0MiB sent", said.stderr)
        self.assertEqual(self.object(packages[0].split("/", 1)[1]), first)
        # Only the changed package is sent.
        self.become("three", "SUCCEEDED")
        (self.work / "hello.txt").write_text("changed\n")
        said = self.train("--bucket", "bucket", "--scale-tier", "STANDARD_1", "--job-id", "four", text=JOB.replace("mnist\n", "one\n", 1))
        self.assertNotIn("MiB sent", said.stderr)

    def test_the_key_is_not_sent_along(self):
        self.serve()
        key = self.work / "key.json"
        self.key.rename(key)
        self.env.update({"GOOGLE_APPLICATION_CREDENTIALS": str(key), "MUSTER_HOME": str(self.work / "home")})
        said = self.train("--bucket", "bucket", "--scale-tier", "STANDARD_1")
        self.assertIn("key.json is not sent with the job", said.stderr)
        self.assertEqual(self.sent(), ["config.yml", "hello.txt"])

    def sent(self):
        """Returns the names of all files in packages."""
        return sorted(member for package in self.objects() if "muster_packages/" in package
                      for member in tarfile.open(fileobj=io.BytesIO(self.object(package.split("/", 1)[1]))).getnames())

    def test_credentials_stay_here_and_are_named(self):
        self.serve()
        for name in (".aws/credentials", ".kube/config", ".env", "sub/.netrc", ".ssh/id_rsa", ".cache/huggingface/token", ".docker/config.json"):
            (self.work / name).parent.mkdir(parents=True, exist_ok=True)
            (self.work / name).write_text("secret\n")
        said = self.train("--bucket", "bucket", "--scale-tier", "STANDARD_1")
        self.assertEqual(self.sent(), ["config.yml", "hello.txt"])
        self.assertIn("contain credentials: .aws, .cache/huggingface, .docker, .env, .kube, .ssh, sub/.netrc;", said.stderr)
        self.become(self.jobs()[0]["id"], "SUCCEEDED")
        (self.work / ".gitignore").write_text("!.env\n")
        self.train("--bucket", "bucket", "--scale-tier", "STANDARD_1")
        self.assertIn(".env", self.sent())
        self.assertNotIn("sub/.netrc", self.sent())

    def test_a_home_folder_is_sent_on_request_only(self):
        self.serve()
        self.env["HOME"] = str(self.work)
        refused = self.train("--bucket", "bucket", "--scale-tier", "STANDARD_1", check=False)
        self.assertEqual(refused.returncode, 1)
        self.assertIn("your home folder", refused.stderr)
        self.assertIn("--send-home", refused.stderr)
        self.assertEqual(self.jobs(), [])
        self.assertEqual([name for name in self.objects() if "muster_" in name], [])
        self.train("--bucket", "bucket", "--scale-tier", "STANDARD_1", "--send-home")
        self.assertIn("hello.txt", self.sent())

    def test_custom_machines_and_counts(self):
        self.serve()
        self.submit("--scale-tier", "CUSTOM", "--master-type", "complex_model_m_gpu", "--worker-type", "standard_v100", "--worker-count", "5",
                    "--parameter-server-type", "n1-highmem-4", "--parameter-server-count", "2", "--dataset", "gs://bucket/other",
                    "--image", "registry/image:7")
        pools = self.vertex()["created"][0]["jobSpec"]["workerPoolSpecs"]
        self.assertEqual([pool["replicaCount"] for pool in pools], ["1", "5", "2"])
        self.assertEqual(pools[0]["machineSpec"], {"machineType": "n1-standard-16", "acceleratorType": "NVIDIA_TESLA_T4", "acceleratorCount": 4})
        self.assertEqual(pools[2]["machineSpec"], {"machineType": "n1-highmem-4"})
        self.assertEqual(pools[1]["containerSpec"]["imageUri"], "registry/image:7")
        run = next(name for name in self.objects() if name.endswith("job.json")).split("/", 1)[1]
        self.assertEqual(json.loads(self.object(run))["spec"]["train"]["data"]["path"], "gs://bucket/other")

    def test_counts_and_defaults_of_the_retired_tool(self):
        self.serve()
        one = JOB.replace("      worker: {replicas: 2}\n      ps: {}\n", "")
        said = self.train("--bucket", "bucket", "--scale-tier", "CUSTOM", "--worker-count", "2", "--parameter-server-count", "1",
                          "--dataset", "bucket/tfrecords", "--job-id", "grown", text=one).stderr
        pools = self.vertex()["created"][0]["jobSpec"]["workerPoolSpecs"]
        self.assertEqual([pool["replicaCount"] for pool in pools], ["1", "2", "1"])
        self.assertEqual([pool["machineSpec"]["machineType"] for pool in pools], ["n1-standard-8", "n1-standard-8", "n1-highmem-8"])
        self.assertIn("the GPUs of CUSTOM will be idle", said)
        train = json.loads(self.object("muster_grown/job.json"))["spec"]["train"]
        self.assertEqual((train["data"]["path"], train["strategy"]), ("gs://bucket/tfrecords", "sync"))

    def test_bucket_and_folder_names_can_be_set(self):
        self.serve(buckets=["ours"])
        self.env.update({"MUSTER_VERTEX_BUCKET": "ours", "MUSTER_VERTEX_FOLDER_PREFIX": "lumi_"})
        self.train("--scale-tier", "STANDARD_1", "--job-id", "first")
        self.become("first", "SUCCEEDED")
        self.assertIn("ours/lumi_first/job.json", self.objects())
        # A later run, without the variables, finds the folder by the id alone.
        self.env.pop("MUSTER_VERTEX_FOLDER_PREFIX")
        self.train("--scale-tier", "STANDARD_1", "--job-id", "second", "--resume", "first")
        second = json.loads(self.object("muster_second/job.json", bucket="ours"))
        self.assertEqual(second["spec"]["model_dir"], "gs://ours/lumi_first")

    def test_several_files_are_one_job(self):
        self.serve()
        (self.work / "a.yml").write_text("name: joined\ntrain: {model: cnn, steps: 5, data: {format: mnist, path: 'gs://bucket/d'}}\n"
                                         "roles: {worker: {}}\n")
        (self.work / "b.yml").write_text("train: {steps: 7}\n")
        self.muster("run", "-c", "a.yml", "-c", "b.yml", "--on", "vertex", "-d", "--bucket", "bucket", "--job-id", "joined", cwd=self.work)
        train = json.loads(self.object("muster_joined/job.json"))["spec"]["train"]
        self.assertEqual((train["steps"], train["model"]), (7, "cnn"))
        # The default is one machine with a GPU.
        pools = self.vertex()["created"][0]["jobSpec"]["workerPoolSpecs"]
        self.assertEqual(pools[0]["machineSpec"]["acceleratorType"], "NVIDIA_TESLA_T4")

    # ---- jobs, logs, stop

    def test_jobs_of_all_users_are_listed_in_pages(self):
        self.serve(jobsPerPage=2)
        self.assertIn("no jobs yet", self.muster("jobs", "--on", "vertex").stdout)
        pool = {"machineSpec": {"machineType": "n1-standard-4"}, "replicaCount": "1", "containerSpec": {"imageUri": "i"}}
        self.vertex({"jobs": [{"job": {"displayName": f"other{i}", "jobSpec": {"workerPoolSpecs": [pool]}}} for i in range(5)]})
        self.submit("--job-id", "mine")
        self.become("other3", "RUNNING")
        self.become("other1", "SUCCEEDED")
        listed = json.loads(self.muster("jobs", "--on", "vertex", "--json").stdout)
        self.assertEqual({job["name"] for job in listed}, {"mine", *(f"other{i}" for i in range(5))})
        running = json.loads(self.muster("jobs", "--on", "vertex", "--running", "--json").stdout)
        self.assertNotIn("other1", {job["name"] for job in running})
        # A job of another user is shown, read and stopped like one's own.
        number = self.number("other3")
        self.say("other3", "what it says")
        self.assertIn("INFO :: what it says", self.muster("logs", number, "--on", "vertex").stdout)
        self.muster("stop", "--yes", number, "--on", "vertex")
        self.assertEqual(self.show(number)["state"], "Stopped")

    def test_logs_are_whole_and_in_order_also_with_equal_times(self):
        self.serve(entriesPerPage=3)
        job = self.submit()
        self.become(job, "RUNNING")
        time = "2026-01-01T00:00:31.000000001Z"
        self.say(job, *({"message": f"line {i}", "timestamp": time, "insertId": f"a{i:02}"} for i in range(7)))
        follow = self.start("logs", "-f", "--polling-interval", "100ms", job)
        lines = []
        while len(lines) < 7:
            lines.append(follow.stdout.readline().rstrip("\n").split(" | ", 1)[1])
        self.say(job, *({"message": f"line {i}", "timestamp": time, "insertId": f"a{i:02}"} for i in range(7, 12)),
                 {"message": "two\nlines", "timestamp": "2026-01-01T00:00:31.000000002Z"})
        self.become(job, "SUCCEEDED")
        rest, _ = follow.communicate(timeout=60)  # it ends with the job
        self.assertEqual(follow.returncode, 0)
        lines += [line.split(" | ", 1)[1] for line in rest.splitlines()]
        expected = [f"INFO :: line {i}" for i in range(12)] + ["INFO :: two", "INFO :: lines"]
        self.assertEqual(lines, expected)
        # They are stored, and not requested again.
        asked = len(self.vertex()["filters"])
        again = self.muster("logs", job).stdout
        self.assertEqual([line.split(" | ", 1)[1] for line in again.splitlines()], expected)
        self.assertEqual(len(self.vertex()["filters"]), asked)

    def test_logs_take_the_job_as_an_option(self):
        self.serve()
        job = self.submit()
        self.become(job, "RUNNING")
        self.say(job, "first")
        self.assertIn("first", self.muster("logs", "--job-id", job).stdout)
        self.assertIn("first", self.muster("logs", "--job-id", job, "chief:0").stdout)
        missing = self.muster("logs", check=False)
        self.assertEqual(missing.returncode, 2)
        self.assertIn("missing JOB", missing.stderr)

    def test_logs_that_could_not_be_read_are_read_the_next_time(self):
        self.serve(entriesPerPage=2)
        job = self.submit()
        self.say(job, *(f"line {i}" for i in range(6)))
        refused = {"error": {"code": 403, "message": "Permission denied", "status": "PERMISSION_DENIED"}}
        self.google.ask("faults", [{"kind": "status", "status": 403, "match": "entries:list", "skip": 1, "times": 1, "body": refused}])
        first = self.muster("logs", job)
        self.assertIn("roles/logging.viewer", first.stderr)
        second = self.muster("logs", job)
        self.assertEqual(second.stdout.count("line "), 6, second.stdout)
        self.assertEqual(second.stderr, "")

    def test_stop_cancels(self):
        self.serve()
        job = self.submit()
        self.become(job, "RUNNING")
        self.muster("stop", "--yes", job)
        self.assertEqual(self.show(job)["state"], "Stopped")
        self.assertEqual(self.vertex()["jobs"][0]["state"], "JOB_STATE_CANCELLED")
        self.assertIn("is not running", self.muster("stop", "--yes", job).stdout)

    def test_a_service_that_does_not_respond_does_not_end_the_job(self):
        self.serve()
        job = self.submit()
        self.become(job, "RUNNING")
        self.assertEqual(self.show(job)["state"], "Running")
        denied = {"error": {"code": 403, "message": "no", "status": "PERMISSION_DENIED"}}
        self.google.ask("faults", [{"kind": "status", "status": 403, "match": "customJobs", "times": 1, "body": denied}])
        shown = self.show(job)
        self.assertEqual(shown["state"], "Unreachable")
        self.assertIn("roles/aiplatform.user", shown["reason"])
        self.assertEqual(self.show(job)["state"], "Running")

    def test_a_job_out_of_reach_for_good_can_be_forgotten(self):
        self.serve()
        job = self.submit()
        self.become(job, "RUNNING")
        denied = {"error": {"code": 403, "message": "no", "status": "PERMISSION_DENIED"}}
        self.google.ask("faults", [{"kind": "status", "status": 403, "match": "customJobs", "times": 99, "body": denied}])
        stopped = self.muster("stop", "--yes", job, check=False)
        for said in (self.refuse("--bucket", "bucket"), stopped.stderr):
            self.assertIn(f"muster jobs rm {job}", said)
            self.assertIn("on Vertex AI, in project", said)
        self.muster("jobs", "rm", "--yes", job)
        self.assertEqual(self.jobs(), [])
        self.google.ask("faults", [])
        self.assertIn(job, self.muster("show", job, "--on", "vertex").stdout)
        refused = self.muster("jobs", "rm", "--yes", job, check=False)
        self.assertIn("reachable", refused.stderr)
        self.muster("jobs", "rm", "--yes", "--force", job)
        self.assertEqual(self.vertex()["jobs"][0]["state"], "JOB_STATE_RUNNING")

    def test_a_short_outage_and_a_revoked_token_are_retried(self):
        self.serve()
        job = self.submit()
        self.become(job, "RUNNING")
        self.google.ask("faults", [{"kind": "status", "status": 503, "match": "customJobs", "times": 2}])
        self.assertEqual(self.show(job)["state"], "Running")
        # A token that is revoked early is replaced.
        self.google.ask("faults", [{"kind": "status", "status": 401, "match": "customJobs", "times": 1}])
        self.assertEqual(self.show(job)["state"], "Running")

    # ---- resume

    def test_resuming_a_resumed_job_uses_the_first_folder(self):
        self.serve()
        self.submit("--job-id", "first")
        self.become("first", "SUCCEEDED")
        self.submit("--job-id", "second", "--resume", "first")
        self.become("second", "FAILED")
        self.submit("--job-id", "third", "--resume", "second")
        third = json.loads(self.object("muster_third/job.json"))
        self.assertEqual(third["spec"]["model_dir"], "gs://bucket/muster_first")
        self.assertEqual(self.show("third")["resumed_from"], "second")
        self.assertEqual(self.vertex()["created"][2]["jobSpec"]["baseOutputDirectory"], {"outputUriPrefix": "gs://bucket/muster_first"})
        self.become("third", "SUCCEEDED")
        # The same with `muster resume`.
        self.muster("resume", "-d", "third", cwd=self.work)
        self.assertEqual(self.vertex()["created"][3]["jobSpec"]["baseOutputDirectory"], {"outputUriPrefix": "gs://bucket/muster_first"})

    def test_a_folder_of_another_tool_is_continued_by_its_program_alone(self):
        self.serve()
        config = self.write("their.yml", "train: {job_dir: jobs}\n")
        self.muster("storage", "cp", config, "gs://bucket/lumi_train_1/config.yml")
        said = self.refuse("--bucket", "bucket", "--scale-tier", "STANDARD_1", "--resume", "train_1")
        self.assertIn("gs://bucket/lumi_train_1 was written by another tool", said)
        self.submit("--job-id", "goes-on", "--resume", "train_1", text=COMMANDS)
        self.assertEqual(self.vertex()["created"][0]["jobSpec"]["baseOutputDirectory"], {"outputUriPrefix": "gs://bucket/lumi_train_1"})

    def test_jobs_that_cannot_be_resumed(self):
        self.serve()
        said = self.refuse("--bucket", "bucket", "--scale-tier", "STANDARD_1", "--resume", "nobody")
        self.assertIn("there is no job 'nobody' to resume", said)
        self.assertIn("--bucket", said)
        self.submit("--job-id", "runs")
        self.become("runs", "RUNNING")
        said = self.refuse("--bucket", "bucket", "--scale-tier", "STANDARD_1", "--resume", "runs", text=JOB.replace("mnist\n", "other\n", 1))
        self.assertIn("muster stop runs", said)

    # ---- errors

    def test_a_region_that_does_not_exist(self):
        self.serve()
        said = self.refuse("--region", "us-central", "--scale-tier", "STANDARD_1", code=2)
        self.assertIn("unknown region 'us-central' (did you mean 'us-central1'?)", said)
        self.assertIn("europe-west4", said)
        self.assertEqual(self.google.ask("state")["requests"], [])
        # Vertex AI decides whether the region exists; nothing is created before its response.
        said = self.refuse("--region", "us-centrall1", "--scale-tier", "STANDARD_1")
        self.assertIn("unknown region 'us-centrall1' (did you mean 'us-central1'?)", said)
        self.assertIn("no region us-centrall1", said)
        self.assertEqual(self.objects(), set())
        self.submit("--region", "northamerica-south1")

    def test_known_and_unknown_machine_types(self):
        self.serve()
        custom = ("--scale-tier", "CUSTOM", "--bucket", "bucket", "--job-id", "again", "--master-type")
        said = self.refuse(*custom, "n1-standard-3")
        self.assertIn('Machine type "n1-standard-3" is not supported', said)
        self.assertIn("failed at the submission to Vertex AI", said)
        # Every machine type that a name of Cloud ML Engine maps to exists.
        manual = (SOURCE / "docs" / "vertex.md").read_text()
        types = re.findall(r"^\| `[a-z0-9_]+` \| ([a-z0-9]+-\S+) \|", manual, re.M)
        self.assertEqual(len(types), 14)
        self.vertex({"jobs": [{"job": {"displayName": kind, "jobSpec": {"workerPoolSpecs": [
            {"machineSpec": {"machineType": kind}, "replicaCount": "1", "containerSpec": {"imageUri": "i"}}]}}} for kind in types]})
        self.train("--scale-tier", "CUSTOM", "--bucket", "bucket", "--job-id", "again", "--master-type", "e2-highmem-8", text=COMMANDS)

    def test_unused_gpus_are_reported(self):
        self.serve()
        one = JOB.replace("      worker: {replicas: 2}\n      ps: {}\n", "")
        self.assertIn("uses only CPUs, so the GPUs of BASIC_GPU will be idle", self.train("--bucket", "bucket", "--dry-run", text=one).stderr)
        self.assertNotIn("GPUs", self.train("--bucket", "bucket", "--dry-run", "--scale-tier", "BASIC", text=one).stderr)

    def test_credentials_missing_malformed_expired_and_without_permission(self):
        self.serve()
        options = ("--scale-tier", "STANDARD_1", "--bucket", "bucket")
        key = self.key.read_text()
        for text, words in (("not json", "is not a JSON file with credentials"), ('{"type": "service_account"}', "has no client_email"),
                            (json.dumps({**json.loads(key), "private_key": "x"}), "key")):
            self.key.write_text(text)
            said = self.refuse(*options)
            self.assertIn("credentials: ", said)
            self.assertIn(words, said)
        self.key.unlink()
        self.assertIn("which does not exist", self.refuse(*options))
        del self.env["GOOGLE_APPLICATION_CREDENTIALS"]
        said = self.refuse(*options)
        self.assertIn("no credentials for Google Cloud: set GOOGLE_APPLICATION_CREDENTIALS", said)
        self.env["GOOGLE_APPLICATION_CREDENTIALS"] = str(self.key)
        self.key.write_text(json.dumps({**self.google.ask("authorized_user"), "refresh_token": "revoked", "project_id": "project"}))
        said = self.refuse(*options)
        self.assertIn("gcloud auth application-default login", said)
        # The credentials are valid, but lack the permission.
        self.key.write_text(key)
        said = self.refuse(*options, "--project", "another")
        self.assertIn("gcloud projects add-iam-policy-binding another", said)
        self.assertEqual(self.vertex()["jobs"], [])

    def test_a_missing_project(self):
        self.serve(credentials="authorized_user")
        self.assertIn("--project", self.refuse("--scale-tier", "STANDARD_1", code=2))

    def test_every_failed_step_is_reported_and_does_not_block_a_retry(self):
        self.serve(forbidden=["theirs"])
        google = lambda status, name, message, **more: {"error": {"code": status, "status": name, "message": message, **more}}
        options = ("--scale-tier", "STANDARD_1", "--job-id", "again", "--bucket", "bucket")
        quota = google(429, "RESOURCE_EXHAUSTED", "The following quota metrics exceed quota limits: custom_model_training_cpus")
        disabled = google(403, "PERMISSION_DENIED", "Vertex AI API has not been used in project 1 before or it is disabled.",
                          details=[{"reason": "SERVICE_DISABLED"}])
        denied = google(403, "PERMISSION_DENIED", "Permission 'aiplatform.customJobs.create' denied")
        submission = "failed at the submission to Vertex AI"
        for fault, words in (
                ({"match": "/storage/v1/b/bucket(/o)?\\?", "status": 403, "times": 2}, ("failed at the bucket", "roles/storage.admin")),
                ({"match": "muster_packages", "status": 403}, ("failed at the package of the working directory",)),
                ({"method": "POST", "match": "job.json", "status": 403}, ("failed at the folder of the run",)),
                ({"method": "POST", "match": "config.yml", "status": 403}, ("failed at the folder of the run",)),
                ({"method": "POST", "match": "customJobs", "status": 429, "times": 9, "body": quota}, (submission, "quota", "gcloud")),
                ({"method": "POST", "match": "customJobs", "status": 403, "body": disabled},
                 (submission, "gcloud services enable aiplatform.googleapis.com --project=project")),
                ({"method": "POST", "match": "customJobs", "status": 403, "body": denied}, (submission, "roles/aiplatform.user"))):
            self.google.ask("faults", [{"kind": "status", **fault}])
            said = self.refuse(*options)
            for word in words:
                self.assertIn(word, said)
            self.assertFalse([name for name in self.objects() if "muster_again" in name], words)
            self.assertEqual(self.vertex()["jobs"], [])
            self.assertEqual(self.show("again")["state"], "Failed")
        self.google.ask("faults", [])
        self.assertIn("may not use it", self.refuse("--scale-tier", "STANDARD_1", "--job-id", "again", "--bucket", "theirs"))
        self.assertIn("Started again", self.train(*options).stdout)

    def test_a_submission_that_was_killed_does_not_block_the_next_try(self):
        self.serve()
        self.google.ask("faults", [{"kind": "stall", "method": "POST", "match": "customJobs"}])
        options = ("--on", "vertex", "-d", "--bucket", "bucket", "--scale-tier", "STANDARD_1", "--job-id", "again")
        run = self.start("run", self.file(), *options, cwd=self.work)
        wait_until(lambda: any("POST /v1" in request for request in self.google.ask("state")["requests"]), "the job is being made")
        run.kill()
        run.wait()
        self.assertIn("bucket/muster_again/job.json", self.objects())
        self.google.ask("faults", [])
        self.assertIn("Started again", self.muster("run", "config.yml", *options, cwd=self.work).stdout)
        self.assertEqual(len(self.vertex()["jobs"]), 1)

    def test_submitting_needs_no_access_to_the_bucket_metadata(self):
        self.serve()
        self.google.ask("faults", [{"kind": "status", "status": 403, "match": "/storage/v1/b/bucket\\?", "times": 9}])
        self.submit()

    def test_a_job_with_a_lost_response_is_looked_up(self):
        self.serve()
        self.google.ask("faults", [{"kind": "loseResponse", "method": "POST", "match": "customJobs"}])
        job = self.submit()
        self.assertEqual(len(self.vertex()["jobs"]), 1)
        self.become(job, "RUNNING")
        self.assertEqual(self.show(job)["state"], "Running")

    def test_an_id_that_is_taken(self):
        self.serve()
        self.submit("--job-id", "mine")
        other = JOB.replace("mnist\n", "other\n", 1)
        self.assertIn("the job id 'mine' is taken", self.refuse("--scale-tier", "STANDARD_1", "--bucket", "bucket", "--job-id", "mine", text=other))
        # By another user.
        self.env["MUSTER_HOME"] = str(self.dir / "another-home")
        said = self.refuse("--scale-tier", "STANDARD_1", "--bucket", "bucket", "--job-id", "mine", text=other)
        self.assertIn("the job id 'mine' is taken by gs://bucket/muster_mine", said)
        self.assertIn("bucket/muster_mine/job.json", self.objects())
        self.assertEqual(len(self.vertex()["jobs"]), 1)
        self.assertIn("a-z, 0-9", self.refuse("--job-id", "Not/This", code=2))

    def test_options_that_do_not_apply_are_errors(self):
        self.serve()
        for options, words in (
                (("--worker-type", "standard"), "--worker-type requires --scale-tier CUSTOM"),
                (("--scale-tier", "STANDARD_1", "--parameter-server-count", "2"), "--parameter-server-count requires --scale-tier CUSTOM"),
                (("--scale-tier", "CUSTOM", "--master-type", "standart"), "did you mean 'standard'?"),
                (("--scale-tier", "BASIC_TPU"), "TPU"),
                ((), "scale tier BASIC_GPU has one machine"),
                (("--scale-tier", "STANDARD_1", "--dataset", "./data/here"), "must be a URL"),
                (("--scale-tier", "STANDARD_1", "--folder-prefix", "a/b"), "folder prefix 'a/b'"),
                (("--scale-tier", "STANDARD_1", "-n", "ml"), "is for jobs on Kubernetes")):
            self.assertIn(words, self.refuse(*options, code=2))
        for arguments, words in (
                (("run", "config.yml", "--scale-tier", "BASIC"), "--scale-tier is for jobs on Vertex AI: add --on vertex"),
                (("run", "config.yml", "--project", "p"), "add --on vertex"),
                (("jobs", "--region", "us-central1"), "add --on vertex"),
                (("logs", "x", "--polling-interval", "5s"), "logs -f"),
                (("run", "config.yml", "--on", "vertex", "--trainer-image", "x:1"), "--trainer-image is for jobs on Kubernetes (--on kubernetes), not for --on vertex"),
                (("evaluate", "x", "--bucket", "b"), "--train-folder")):
            result = self.muster(*arguments, cwd=self.work, check=False)
            self.assertEqual(result.returncode, 2, arguments)
            self.assertIn(words, result.stderr)
        self.assertEqual(self.vertex()["jobs"], [])

    def test_a_command_without_an_image_is_rejected(self):
        self.serve()
        own = COMMANDS.replace("    image: python:3\n", "")
        self.assertIn("no image", self.refuse("--scale-tier", "STANDARD_1", text=own, code=2))
        self.submit("--image", "python:3", text=own)

    def test_data_that_is_not_sent_is_an_error_with_a_remedy(self):
        self.serve()
        local = JOB.replace("gs://bucket/data/mnist", "data/mnist")
        said = self.refuse("--scale-tier", "STANDARD_1", text=local, code=2)
        self.assertIn("--dataset gs://BUCKET/data", said)
        (self.work / "data" / "mnist").mkdir(parents=True)
        (self.work / "data" / "mnist" / "train").write_text("x")
        self.submit(text=local)

    def test_a_running_job_is_not_changed(self):
        self.serve()
        job = self.submit()
        self.become(job, "RUNNING")
        self.assertIn("nothing changed", self.train("--scale-tier", "STANDARD_1").stdout)
        said = self.refuse("--scale-tier", "STANDARD_1", text=JOB.replace("steps: 10", "steps: 20"))
        self.assertIn(f"--resume {job}", said)

    def test_an_edited_file_is_named_and_not_applied(self):
        self.serve()
        (self.work / "net.py").write_text("first")
        job = self.submit()
        self.become(job, "RUNNING")
        self.assertIn("nothing changed", self.train("--scale-tier", "STANDARD_1").stdout)
        (self.work / "net.py").write_text("second")
        said = self.refuse("--scale-tier", "STANDARD_1")
        self.assertIn(f"net.py changed; {job} is running, and a job on Vertex AI cannot be changed", said)

    def test_show_lists_the_machines(self):
        self.serve()
        job = self.submit()
        self.become(job, "RUNNING")
        shown = self.muster("show", job).stdout
        self.assertRegex(shown, r"MACHINE +ROLE +PROVIDER +REGION +SIZE +PUBLIC IP +STATUS\n"
                                r"workerpool0-0 +chief +Google Cloud +us-central1 +n1-\S+ +Running\n")
        self.assertRegex(shown, r"workerpool2-0 +ps +Google Cloud +us-central1 +n1-standard-4 +Running\n")
        self.assertEqual([machine["machine"] for machine in self.show(job)["machines"]],
                         ["workerpool0-0", "workerpool1-0", "workerpool1-1", "workerpool2-0"])
        self.assertEqual(self.muster("logs", job, "workerpool1-1").stdout, self.muster("logs", job, "worker:1").stdout)

    def test_a_dry_run_changes_nothing(self):
        self.serve()
        said = self.train("--scale-tier", "STANDARD_1", "--dry-run", detach=False).stdout
        self.assertIn("on Vertex AI, in project 'project', region us-central1", said)
        self.assertEqual((self.objects(), self.vertex()["jobs"]), (set(), []))

    # ---- evaluate, explain

    def test_an_evaluation_is_a_job_whose_result_is_printed(self):
        self.serve()
        self.submit("--job-id", "trained")
        self.become("trained", "SUCCEEDED")
        run = self.start("evaluate", "--train-folder", "gs://bucket/muster_trained/", "--split", "val", "--job-id", "measured")
        wait_until(lambda: len(self.vertex()["jobs"]) == 2, "the job is there")
        body = self.vertex()["created"][1]
        self.assertEqual(len(body["jobSpec"]["workerPoolSpecs"]), 1)
        self.assertEqual(body["jobSpec"]["workerPoolSpecs"][0]["machineSpec"]["acceleratorType"], "NVIDIA_TESLA_T4")
        job = json.loads(self.object("muster_measured/job.json"))
        command = job["spec"]["roles"][0]["command"]
        self.assertEqual(command[:4], ["muster-trainer", "evaluate", "--split", "val"])
        self.assertEqual(command[-4:], ["--to", "gs://bucket/muster_measured/result.json",
                                        "--to", "gs://bucket/muster_trained/eval/measured.json"])
        self.assertEqual(job["target"]["packages"], json.loads(self.object("muster_trained/job.json"))["target"]["packages"])
        result = self.write("result.json", json.dumps({"step": 10, "split": "val", "examples": 100, "metrics": {"accuracy": 0.875, "loss": 0.5}}))
        self.muster("storage", "cp", result, command[-1])
        self.become("measured", "SUCCEEDED")
        out, err = run.communicate(timeout=60)
        self.assertEqual(run.returncode, 0, err)
        self.assertIn("Step 10, split val, 100 examples; gs://bucket/muster_trained/eval/measured.json", out)
        self.assertRegex(out, r"accuracy +0\.875\n")
        self.assertRegex(out, r"loss +0\.5\n")

    def test_an_evaluation_uses_the_newest_configuration_and_writes_to_the_bucket(self):
        self.serve(buckets=["bucket", "results"])
        self.submit("--job-id", "first")
        self.become("first", "SUCCEEDED")
        self.submit("--job-id", "second", "--resume", "first", "--dataset", "bucket/newer")
        self.become("second", "SUCCEEDED")
        # The folder is given as in the original: bucket included, with or without the scheme.
        said = self.muster("evaluate", "-d", "--train-folder", "bucket/muster_first", "--bucket", "gs://results", "--job-id", "measured", cwd=self.work)
        job = json.loads(self.object("muster_measured/job.json", bucket="results"))
        self.assertEqual(job["spec"]["train"]["data"]["path"], "gs://bucket/newer")
        command = job["spec"]["roles"][0]["command"]
        self.assertEqual(command[-4:], ["--to", "gs://results/muster_measured/result.json", "--to", "gs://bucket/muster_first/eval/measured.json"])
        self.assertIn("GPUs of BASIC_GPU will be idle", said.stderr)
        # A pointer to the run of somebody else is ignored.
        self.submit("--job-id", "foreign", text=JOB.replace("mnist\n", "other\n", 1))
        self.become("foreign", "SUCCEEDED")
        forged = self.write("newest", "gs://bucket/muster_foreign")
        self.muster("storage", "rm", "-y", "gs://bucket/muster_first/newest")
        self.muster("storage", "cp", forged, "gs://bucket/muster_first/newest")
        self.muster("evaluate", "-d", "--train-folder", "gs://bucket/muster_first", "--job-id", "again", cwd=self.work)
        job = json.loads(self.object("muster_again/job.json"))
        self.assertEqual(job["spec"]["model_dir"], "gs://bucket/muster_first")

    def test_jobs_that_cannot_be_evaluated(self):
        self.serve()
        for folder, words in (("gs://bucket/nothing", "muster_ID"), ("gs://absent/x", "bucket")):
            result = self.muster("evaluate", "--train-folder", folder, check=False)
            self.assertEqual(result.returncode, 1)
            self.assertIn(words, result.stderr)
        self.submit("--job-id", "own", text=COMMANDS)
        result = self.muster("evaluate", "--train-folder", "gs://bucket/muster_own", check=False)
        self.assertIn("no `train` section", result.stderr)
        self.assertEqual(len(self.vertex()["jobs"]), 1)

    def test_explain_lists_unsupported_settings(self):
        job = self.write("job.yaml", """
            name: x
            roles:
              worker: {command: train, image: "i:1", resources: {cpus: 2}, ready: listening}
              extra: {command: more}
            policies: {stall: 10m}
            """)
        self.assertIn("role 'worker': image", self.muster("explain", job).stdout)
        said = self.muster("explain", job, "--on", "kubernetes").stdout
        self.assertIn("role 'worker': ready", said)
        self.assertIn("does not support the role 'extra'", said)
        lines = json.loads(self.muster("explain", job, "--on", "vertex", "--json").stdout)
        self.assertTrue(any("role 'extra'" in line and "leads it" in line for line in lines))
        self.assertTrue(any("policies: stall" in line for line in lines))
        plain = self.write("plain.yaml", "name: y\nroles: {worker: {command: train}}\n")
        self.assertIn("supports all settings of 'y'", self.muster("explain", plain).stdout)


if __name__ == "__main__":
    unittest.main()
