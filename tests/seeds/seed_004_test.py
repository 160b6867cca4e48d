"""`lumi cloud gc`: upload a data set, `train`, `jobs`, `logs`, resume, `evaluate`, and the results in the bucket. Vertex AI and the buckets are those of our tests (vertex_api.mjs); the containers' commands run here."""
import json
import os
import re
import shutil
import unittest

from digits import write_digits
from support import MUSTER, SOURCE, wait_until
from vertex_support import GoogleTest

FILES = SOURCE / "tests" / "seeds" / "004"
DATASET = "gs://luminoth-train-datasets/coco/tfrecords"


class PageTest(GoogleTest):
    def setUp(self):
        super().setUp()
        # The service account's key, GOOGLE_APPLICATION_CREDENTIALS and one of the buckets exist.
        self.serve(buckets=["luminoth-train-datasets"])
        self.env["PATH"] = f"{os.path.dirname(MUSTER)}:{self.env['PATH']}"
        shutil.copy(FILES / "config.yml", self.work)

    def upload(self):
        """Makes the data set's TFRecord files and uploads them."""
        write_digits(self.dir / "mnist")
        self.muster("data", "convert", self.dir / "mnist", "--to", self.dir / "tfrecords")
        self.muster("storage", "cp", "-r", self.dir / "tfrecords", DATASET)

    def run_train(self, *options):
        """Types `train` of the page, and returns the id of the job."""
        said = self.muster("run", "--on", "vertex", "-d", *options, "-c", "config.yml", cwd=self.work)
        return re.search(r"Started (\S+) in", said.stdout).group(1)

    def work_off(self, job):
        """Runs the job's container. Its output goes to Cloud Logging."""
        self.become(job, "RUNNING")
        ran = self.run_task(job, "workerpool0", 0, {"workerpool0": ["localhost:2222"]})
        self.assertEqual(ran.returncode, 0, ran.stdout + ran.stderr)
        self.say(job, *(ran.stdout + ran.stderr).splitlines())
        self.become(job, "SUCCEEDED")

    def edit(self, old, new):
        text = (self.work / "config.yml").read_text()
        self.assertIn(old, text)
        (self.work / "config.yml").write_text(text.replace(old, new))

    def steps(self, folder):
        """Returns the steps of the checkpoints in a folder."""
        found = (re.fullmatch(rf"{folder}/checkpoints/step-0*(\d+)/manifest.json", name) for name in self.objects())
        return sorted(int(match.group(1)) for match in found if match)

    def spec(self, job, bucket="luminoth-train-jobs"):
        return json.loads(self.object(f"muster_{job}/job.json", bucket=bucket))["spec"]

    def pools(self, job):
        created, = (made for made in self.vertex()["created"] if made["displayName"] == job)
        return [(pool["machineSpec"]["machineType"], pool["replicaCount"]) for pool in created["jobSpec"]["workerPoolSpecs"] if pool]

    def test_the_page(self):
        self.upload()
        self.assertIn("luminoth-train-datasets/coco/tfrecords/train-00000-of-00001.tfrecord", self.objects())
        place = "--bucket", "luminoth-train-jobs", "--dataset", DATASET
        first = self.run_train(*place)
        self.assertRegex(first, r"^train_\d{8}_\d{6}$")
        self.assertEqual(self.pools(first), [("n1-standard-8", "1")])  # BASIC_GPU

        # Listing jobs: all, and those that run.
        self.become(first, "RUNNING")
        for options in ((), ("--running",)):
            self.assertIn(first, self.muster("jobs", "--on", "vertex", *options).stdout)
        self.work_off(first)
        self.assertIn(first, self.muster("jobs", "--on", "vertex").stdout)
        self.assertNotIn(first, self.muster("jobs", "--on", "vertex", "--running").stdout)
        folder = f"luminoth-train-jobs/muster_{first}"
        self.assertEqual(self.steps(folder), [20, 40])

        # Fetching logs.
        logs = self.muster("logs", "--job-id", first).stdout
        self.assertRegex(logs, r"master:0 \| INFO :: .*step")
        self.assertEqual(self.muster("logs", "-f", "--polling-interval", "1s", first).stdout, logs)

        # Resuming: a new job writes to the folder of the first, also if the job was itself resumed.
        previous = first
        for count, job in ((60, "second"), (80, "third")):
            self.edit(f"steps: {count - 20}", f"steps: {count}")
            self.assertEqual(self.run_train("--resume", previous, *place, "--job-id", job), job)
            self.work_off(job)
            self.assertEqual(self.steps(folder), list(range(20, count + 1, 20)))
            self.assertEqual(self.steps(f"luminoth-train-jobs/muster_{job}"), [])
            previous = job

        # Running an evaluation job.
        evaluate = self.start("evaluate", "--train-folder", f"gs://{folder}", "--bucket", "luminoth-eval-jobs", "--split", "test", "--job-id", "measured")
        wait_until(lambda: len(self.vertex()["jobs"]) == 4, "the job is there")
        self.work_off("measured")
        out, err = evaluate.communicate(timeout=60)
        self.assertEqual(evaluate.returncode, 0, err)
        self.assertIn("Step 80, split test, 128 examples", out)
        self.assertRegex(out, r"accuracy +[01]")

        # Results: everything of a job is in its folder.
        self.assertIn(b"steps: 40", self.object(f"muster_{first}/config.yml", bucket="luminoth-train-jobs"))
        self.assertIn(f"{folder}/eval/measured.json", self.objects())
        result = json.loads(self.object("muster_measured/result.json", bucket="luminoth-eval-jobs"))
        self.assertEqual((result["step"], result["split"]), (80, "test"))
        shown = self.muster("storage", "ls", f"gs://{folder}/").stdout
        for name in ("config.yml", "checkpoints/"):
            self.assertIn(name, shown)

    def test_the_options_of_train(self):
        # Without --dataset, the file has the path; without --bucket, the project has a bucket.
        job = self.run_train("--region", "europe-west4", "--scale-tier", "BASIC")
        self.assertEqual(self.spec(job, "muster-project")["train"]["data"]["path"], DATASET)
        self.assertEqual(self.pools(job), [("n1-standard-4", "1")])
        self.assertIn("/locations/europe-west4/", self.vertex()["jobs"][0]["name"])
        self.become(job, "SUCCEEDED")

        # CUSTOM without --master-type; the data set as bucket/path.
        self.run_train("--bucket", "luminoth-train-jobs", "--dataset", "luminoth-train-datasets/coco/other", "--job-id", "custom", "--scale-tier", "CUSTOM",
                       "--worker-count", "2", "--parameter-server-type", "standard", "--parameter-server-count", "1")
        self.assertEqual(self.pools("custom"), [("n1-standard-8", "1"), ("n1-standard-8", "2"), ("n1-standard-4", "1")])
        self.assertEqual(self.spec("custom")["train"]["data"]["path"], "gs://luminoth-train-datasets/coco/other")
        self.become("custom", "SUCCEEDED")

        # Types and counts without CUSTOM, which were ignored, and an unknown job are errors.
        for options, message in ((("--worker-count", "2"), "--worker-count requires --scale-tier CUSTOM"),
                                 (("--resume", "nobody"), "there is no job 'nobody' to resume")):
            refused = self.muster("run", "--on", "vertex", "-d", "--bucket", "luminoth-train-jobs", *options, "-c", "config.yml", cwd=self.work, check=False)
            self.assertNotEqual(refused.returncode, 0)
            self.assertIn(message, refused.stderr)


if __name__ == "__main__":
    unittest.main()
