"""Shared by the tests of jobs on Vertex AI: a server in its own process (gs_server.mjs), and requests to it."""
import json
import re
import subprocess
import tempfile
import urllib.request
from pathlib import Path

from support import MUSTER, GsServer, MusterTest

JOB = """
    name: mnist
    roles:
      chief: {}
      worker: {replicas: 2}
      ps: {}
    train:
      model: cnn
      data: {format: mnist, path: "gs://bucket/data/mnist"}
      batch_size: 64
      steps: 10
    """

COMMANDS = """
    name: own
    image: python:3
    roles:
      worker: {replicas: 2, command: "cat hello.txt; echo $TF_CONFIG; echo rank $RANK in $(basename $PWD)"}
    """


class GoogleTest(MusterTest):
    def serve(self, credentials="service_account", **options):
        """Starts the server with an account, and sets its variables for all later commands."""
        options = {"auth": True, "buckets": ["bucket"], **options}
        self.google = GsServer(self, **options)
        self.work = self.dir / "work"
        self.work.mkdir(exist_ok=True)
        (self.work / "hello.txt").write_text("hello\n")
        self.key = self.dir / "key.json"
        if credentials:
            self.key.write_text(json.dumps(self.google.ask(credentials)))
        for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "GOOGLE_CLOUD_PROJECT", "CLOUDSDK_CORE_PROJECT"):
            self.env.pop(name, None)
        self.env.update({
            "GOOGLE_APPLICATION_CREDENTIALS": str(self.key), "NO_GCE_CHECK": "true", "HOME": str(self.dir),
            "CLOUDSDK_API_ENDPOINT_OVERRIDES_STORAGE": self.google.address,
            "CLOUDSDK_API_ENDPOINT_OVERRIDES_AIPLATFORM": self.google.address,
            "CLOUDSDK_API_ENDPOINT_OVERRIDES_LOGGING": self.google.address})

    def file(self, text=JOB, name="config.yml"):
        path = self.write(name, text)
        path.rename(self.work / name)
        return name

    def train(self, *options, text=JOB, check=True, detach=True):
        return self.muster("run", self.file(text), "--on", "vertex", *(["-d"] if detach else []), *options, cwd=self.work, check=check)

    def submit(self, *options, text=JOB):
        if "--scale-tier" not in options:
            options = (*options, "--scale-tier", "STANDARD_1")
        return re.search(r"Started (\S+) in", self.train("--bucket", "bucket", *options, text=text).stdout).group(1)

    def refuse(self, *options, text=JOB, code=1):
        """Runs a job that must be rejected, and returns its message."""
        result = self.train(*options, text=text, check=False)
        self.assertEqual(result.returncode, code, result.stdout + result.stderr)
        return result.stderr

    def vertex(self, command=None):
        return self.google.ask("vertex", command or {})

    def number(self, job):
        return next(one["name"] for one in self.vertex()["jobs"] if one["displayName"] == job).rsplit("/", 1)[1]

    def become(self, job, state, **more):
        self.vertex({"job": job, "set": {"state": f"JOB_STATE_{state}", **more}})

    def say(self, job, *entries):
        number = self.number(job)
        self.vertex({"entries": [{"job": number, **(entry if isinstance(entry, dict) else {"message": entry})} for entry in entries]})

    def objects(self):
        return set(self.google.ask("objects"))

    def object(self, name, bucket="bucket"):
        token = self.google.ask("token")["access_token"]
        path = urllib.request.quote(name, safe="")
        request = urllib.request.Request(f"{self.google.address}/storage/v1/b/{bucket}/o/{path}?alt=media",
                                         headers={"Authorization": f"Bearer {token}"})
        return urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=30).read()

    def uploads(self):
        return [request for request in self.google.ask("state")["requests"] if request.startswith("POST /upload")]

    def nonce(self, job):
        return json.loads(self.object(f"muster_{job}/job.json"))["target"]["tries"][-1]

    def task_arguments(self, job):
        """Returns the arguments that the CustomJob passes to each container of the job."""
        created = [made for made in self.vertex()["created"] if made["displayName"] == job][-1]
        return created["jobSpec"]["workerPoolSpecs"][0]["containerSpec"]["args"]

    def task_process(self, job, pool, index, cluster, **more):
        """Runs the command of a replica's container, with options of Popen."""
        spec = {"cluster": cluster, "environment": "cloud", "task": {"type": pool, "index": index}}
        scratch = Path(tempfile.mkdtemp(dir=self.dir))
        folder, nonce, sha256 = more.pop("arguments", None) or self.task_arguments(job)
        return subprocess.Popen(
            [MUSTER, "vertex-task", folder, more.pop("nonce", nonce), sha256], text=True, cwd="/",
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=dict(self.env, CLUSTER_SPEC=json.dumps(spec), TMPDIR=str(scratch), TF_CONFIG="Vertex' own"), **more)

    def run_task(self, *arguments, **more):
        process = self.task_process(*arguments, **more)
        out, err = process.communicate(timeout=100)
        return subprocess.CompletedProcess(process.args, process.returncode, out, err)
