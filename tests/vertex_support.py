"""Shared by the tests of jobs on Vertex AI: a server in its own process (gs_server.mjs), and requests to it."""
import functools
import json
import re
import shutil
import subprocess
import tempfile
import urllib.request

from support import MUSTER, GsServer, MusterTest
from vertex_image import python_image

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

    def container(self, job, pool="workerpool0"):
        """Returns the container of a pool in the newest CustomJob of this name."""
        created = [made for made in self.vertex()["created"] if made["displayName"] == job][-1]
        return created["jobSpec"]["workerPoolSpecs"][int(pool.removeprefix("workerpool"))]["containerSpec"]

    @functools.cached_property
    def image(self):
        """The image of the user's programs."""
        return python_image(self)

    def mount_buckets(self, gcs):
        """Replaces the content of a folder by that of the buckets, as Cloud Storage FUSE shows it."""
        shutil.rmtree(gcs, ignore_errors=True)
        for name in self.objects():
            bucket, _, key = name.partition("/")
            (gcs / name).parent.mkdir(parents=True, exist_ok=True)
            (gcs / name).write_bytes(self.object(key, bucket=bucket))

    def task_process(self, job, pool, index, cluster, image=None, mounted=True, nonce=None):
        """Runs the command line of a replica's container. The image of the built-in trainer is this machine."""
        spec = {"cluster": cluster, "environment": "cloud", "task": {"type": pool, "index": index}}
        env = {"CLUSTER_SPEC": json.dumps(spec), "TF_CONFIG": "Vertex' own"}
        container = self.container(job, pool)
        line = container["command"] + container["args"]
        if nonce is not None:
            line[-2] = nonce
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        if line[0] == "muster":
            return subprocess.Popen([MUSTER, *line[1:]], cwd="/", env={**self.env, **env, "TMPDIR": tempfile.mkdtemp(dir=self.dir)}, **pipes)
        image = image or self.image
        if mounted:
            self.mount_buckets(image.gcs)
        return image.start(line, env, **pipes)

    def run_task(self, *arguments, **more):
        process = self.task_process(*arguments, **more)
        out, err = process.communicate(timeout=100)
        return subprocess.CompletedProcess(process.args, process.returncode, out, err)
