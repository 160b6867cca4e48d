"""The containers of jobs on Vertex AI: the command lines that a CustomJob has for them, run as they are. The user's programs run in an image without Muster (vertex_image.py)."""
import hashlib
import io
import json
import os
import pathlib
import re
import shutil
import subprocess
import tarfile
import unittest

from support import MUSTER, free_ports, wait_until
from vertex_image import busybox_image, python_image
from vertex_support import COMMANDS, GoogleTest

TRAINING = """
    name: mnist
    roles: {chief: {}, worker: {}, ps: {}, evaluator: {}}
    train:
      model: mlp
      data: {format: synthetic, kind: images, shape: [1, 8, 8], classes: 4, examples: 400}
      batch_size: 16
      steps: 20
      checkpoint: {every_steps: 10}
    """

PYTHON = """
    name: own
    image: python:3
    command: [python3, train.py, "--role={role}"]
    roles: {chief: {}, ps: {replicas: 2}}
    """

PROGRAM = """
import json, os, shutil, sys
import greeting
config = json.loads(os.environ["TF_CONFIG"])
print(json.dumps({"greeting": greeting.TEXT, "arguments": sys.argv[1:], "task": config["task"], "cluster": config["cluster"],
                  "model_dir": os.environ["MUSTER_MODEL_DIR"], "muster": shutil.which("muster")}))
"""

PAIR = {"workerpool0": ["localhost:2222"], "workerpool1": ["localhost:2223"]}


class VertexContainerTest(GoogleTest):
    def replace(self, name, content):
        """Replaces an object in the bucket, as any user with write access could."""
        path = self.dir / "forged"
        path.write_bytes(content)
        self.muster("storage", "rm", f"gs://bucket/{name}")
        self.muster("storage", "cp", path, f"gs://bucket/{name}")

    def refused_task(self, job, cluster=None, **more):
        """Runs a task that must not start, and returns its message, which is one line."""
        refused = self.run_task(job, "workerpool0", 0, cluster or PAIR, **more)
        self.assertEqual((refused.returncode, refused.stdout), (1, ""), refused.stderr)
        self.assertEqual(refused.stderr.count("\n"), 1, refused.stderr)
        return refused.stderr

    def packages(self, suffix):
        """Returns the names of the files in the folder of packages that end with `suffix`."""
        return [name.split("/", 1)[1] for name in self.objects() if "/muster_packages/" in name and name.endswith(suffix)]

    # ---- the user's programs

    def test_a_container_runs_its_task_in_the_files_that_were_sent(self):
        self.serve()
        job = self.submit(text=COMMANDS)
        cluster = {"workerpool0": ["a:2222"], "workerpool1": ["b:2222"]}
        ran = self.run_task(job, "workerpool1", 0, cluster)
        self.assertEqual(ran.returncode, 0, ran.stderr)
        hello, config, rank = ran.stdout.splitlines()
        self.assertEqual((hello, rank), ("hello", "rank 1 in work"))
        self.assertEqual(json.loads(config)["task"], {"type": "worker", "index": 1})
        self.assertEqual(json.loads(config)["cluster"], {"worker": ["a:2222", "b:2222"]})

    def test_a_python_program_runs_in_a_public_image(self):
        self.serve()
        (self.work / "train.py").write_text(PROGRAM)
        (self.work / "greeting.py").write_text("TEXT = 'hello'\n")
        job = self.submit(text=PYTHON)
        cluster = {"workerpool0": ["a:2222"], "workerpool2": ["b:2222", "c:2222"]}
        for pool, index, role in (("workerpool0", 0, "chief"), ("workerpool2", 0, "ps"), ("workerpool2", 1, "ps")):
            ran = self.run_task(job, pool, index, cluster)
            self.assertEqual((ran.returncode, ran.stderr), (0, ""))
            self.assertEqual(json.loads(ran.stdout), {
                "greeting": "hello", "arguments": [f"--role={role}"], "task": {"type": role, "index": index},
                "cluster": {"chief": ["a:2222"], "ps": ["b:2222", "c:2222"]}, "model_dir": f"gs://bucket/muster_{job}", "muster": None})
            self.assertEqual(self.container(job, pool)["imageUri"], "python:3")

    def test_an_image_with_busybox_alone_is_enough(self):
        self.serve()
        image = busybox_image(self)
        job = self.submit(text=COMMANDS)
        ran = self.run_task(job, "workerpool0", 0, PAIR, image=image)
        self.assertEqual((ran.returncode, ran.stderr), (0, ""))
        self.assertEqual(ran.stdout.splitlines()[::2], ["hello", "rank 0 in work"])
        agent, = self.packages("-muster-agent")
        self.replace(agent, b"#!/bin/sh\necho evil\n")
        self.assertIn("was altered", self.refused_task(job, image=image))

    def test_an_image_without_a_tool_is_named(self):
        self.serve()
        image = python_image(self, without=["sha256sum"])
        job = self.submit(text=COMMANDS)
        self.assertIn("the image has no sha256sum", self.refused_task(job, image=image))

    def test_the_exit_code_is_that_of_the_program(self):
        self.serve()
        job = self.submit("--scale-tier", "BASIC", text="name: own\nimage: python:3\nroles: {worker: {command: exit 7}}\n")
        self.assertEqual(self.run_task(job, "workerpool0", 0, {"workerpool0": ["a:2222"]}).returncode, 7)

    def test_the_trainer_and_own_programs_in_one_job(self):
        self.serve()
        text = TRAINING.replace("evaluator: {}", "evaluator: {image: 'python:3', command: 'ls $MUSTER_TLS_DIR'}")
        job = self.submit(text=text)
        self.assertEqual(self.container(job, "workerpool0")["command"], ["muster", "vertex-task"])
        self.assertIn("/muster/muster-vertex:", self.container(job, "workerpool0")["imageUri"])
        self.assertEqual(self.container(job, "workerpool3")["command"][:2], ["/bin/sh", "-c"])
        ran = self.run_task(job, "workerpool3", 0, {f"workerpool{i}": [f"a{i}:2222"] for i in range(4)})
        self.assertEqual(ran.stdout.split(), ["ca.crt", "tls.crt", "tls.key"], ran.stderr)

    # ---- muster-agent

    def test_the_agent_is_sent_once(self):
        self.serve()
        self.become(self.submit(text=COMMANDS), "SUCCEEDED")
        agent, = self.packages("-muster-agent")
        program = pathlib.Path(MUSTER).with_name("muster-agent").read_bytes()
        self.assertEqual(agent, f"muster_packages/{hashlib.sha256(program).hexdigest()}-muster-agent")
        self.assertEqual(self.object(agent), program)

        def sent():
            return [request for request in self.uploads() if "muster-agent" in request]
        before = len(sent())
        self.become(self.submit("--job-id", "second", text=COMMANDS), "SUCCEEDED")
        self.assertEqual(len(sent()), before)
        # A resumed job has the packages of the first one, and is started by the agent as well.
        self.become(self.submit("--job-id", "third", "--resume", "second", text=COMMANDS), "SUCCEEDED")
        self.assertIn("hello\n", self.run_task("third", "workerpool0", 0, PAIR).stdout)

    def test_a_job_of_the_trainer_sends_no_agent(self):
        self.serve()
        self.submit(text=TRAINING)
        self.assertEqual(self.packages("-muster-agent"), [])

    def test_a_missing_agent_is_reported_before_anything_is_created(self):
        self.serve(buckets=[])
        alone = self.dir / "bin" / "muster"
        alone.parent.mkdir()
        shutil.copy(MUSTER, alone)
        refused = subprocess.run([alone, "run", self.file(COMMANDS), "--on", "vertex", "-d", "--scale-tier", "STANDARD_1"], cwd=self.work,
                                 env=self.env, capture_output=True, text=True, timeout=60)
        self.assertEqual(refused.returncode, 1)
        self.assertIn(f"{alone.parent}/muster-agent is missing; install it beside muster", refused.stderr)
        self.assertEqual(self.objects(), set())

    def test_an_agent_that_was_altered_is_not_run(self):
        self.serve()
        job = self.submit(text=COMMANDS)
        agent, = self.packages("-muster-agent")
        whole = self.object(agent)
        for forged in (b"#!/bin/sh\necho evil\n", whole[:-1] + bytes([whole[-1] ^ 1]), b""):
            self.replace(agent, forged)
            said = self.refused_task(job)
            self.assertIn(f"/gcs/bucket/{agent} was altered after the job was submitted", said)
            self.assertIn("--rebuild", said)
        # A forged agent is mistaken for our own; --rebuild replaces it.
        self.become(job, "SUCCEEDED")
        self.submit("--job-id", "second", "--rebuild", text=COMMANDS)
        self.assertEqual(self.object(agent), whole)
        self.assertIn("hello\n", self.run_task("second", "workerpool0", 0, PAIR).stdout)

    def test_missing_files_are_named(self):
        self.serve()
        job = self.submit(text=COMMANDS)
        self.image.gcs.rmdir()
        self.assertIn("/gcs is missing: Vertex AI mounts the buckets", self.refused_task(job, mounted=False))
        self.mount_buckets(self.image.gcs)
        (self.image.gcs / "bucket" / f"muster_{job}" / "job.json").unlink()
        self.assertIn(f"/gcs/bucket/muster_{job}/job.json: no such file", self.refused_task(job, mounted=False))
        agent, = self.packages("-muster-agent")
        (self.image.gcs / "bucket" / agent).unlink()
        self.assertIn(f"/gcs/bucket/{agent} is missing", self.refused_task(job, mounted=False))

    def test_a_container_that_cannot_start_reports_the_reason(self):
        self.serve()
        job = self.submit(text=COMMANDS)
        self.assertIn("CLUSTER_SPEC", self.refused_task(job, {"workerpool0": ["a:2222"]}))

    # ---- altered files

    def test_a_forged_package_is_not_run(self):
        self.serve()
        job = self.submit(text=COMMANDS)
        package, = self.packages(".tar.gz")
        whole = self.object(package)
        forged = io.BytesIO()
        with tarfile.open(fileobj=forged, mode="w:gz", format=tarfile.PAX_FORMAT) as tar:
            for name, content in (("config.yml", (self.work / "config.yml").read_bytes()), ("hello.txt", b"evil\n")):
                member = tarfile.TarInfo(name)
                member.size = len(content)
                tar.addfile(member, io.BytesIO(content))
        self.replace(package, forged.getvalue())
        said = self.refused_task(job)
        self.assertIn(f"gs://bucket/{package} does not match its name", said)
        self.assertIn("--rebuild", said)
        self.replace(package, whole)
        self.assertIn("hello\n", self.run_task(job, "workerpool0", 0, PAIR).stdout)
        # A forged package is mistaken for our own; --rebuild replaces it.
        self.replace(package, forged.getvalue())
        self.become(job, "SUCCEEDED")
        self.assertIn("does not match its name", self.refused_task(self.submit("--job-id", "second", text=COMMANDS)))
        self.become("second", "SUCCEEDED")
        self.submit("--job-id", "third", "--rebuild", text=COMMANDS)
        self.assertIn("hello\n", self.run_task("third", "workerpool0", 0, PAIR).stdout)

    def test_a_job_that_was_altered_is_not_run(self):
        self.serve()
        job = self.submit(text=COMMANDS)
        text = self.object(f"muster_{job}/job.json")
        self.replace(f"muster_{job}/job.json", text.replace(b"cat hello.txt", b"echo evil"))
        self.assertIn(f"muster_{job}/job.json was altered after the job was submitted", self.refused_task(job))

    def test_tasks_do_not_start_without_their_certificates(self):
        self.serve()
        self.env["PATH"] = f"{os.path.dirname(MUSTER)}:{self.env['PATH']}"
        job = self.submit(text=TRAINING)
        cluster = {f"workerpool{i}": [f"127.0.0.1:{port}"] for i, port in enumerate(free_ports(4))}
        name = f"muster_{job}/tls.json"
        other = self.submit("--job-id", "other", text=TRAINING.replace("name: mnist", "name: other"))
        self.replace(name, self.object(f"muster_{other}/tls.json"))
        self.assertIn("tls.json was altered", self.refused_task(job, cluster))
        self.muster("storage", "rm", f"gs://bucket/{name}")
        self.assertIn("tls.json is missing", self.refused_task(job, cluster))

    # ---- the built-in trainer

    def test_containers_train_and_evaluate(self):
        self.serve()
        self.env["PATH"] = f"{os.path.dirname(MUSTER)}:{self.env['PATH']}"
        job = self.submit("--job-id", "trained", text=TRAINING)
        ports = free_ports(4)
        cluster = {f"workerpool{i}": [f"127.0.0.1:{ports[i]}"] for i in range(4)}
        tasks = [self.task_process(job, f"workerpool{i}", 0, cluster) for i in range(4)]
        for i, task in enumerate(tasks):
            self.addCleanup(task.kill)
            out, err = task.communicate(timeout=100)
            self.assertEqual(task.returncode, 0, (i, out[-900:], err[-900:]))
        self.assertIn("bucket/muster_trained/checkpoints/step-20/manifest.json", {re.sub("step-0*20", "step-20", name) for name in self.objects()})
        self.become("trained", "SUCCEEDED")
        run = self.start("evaluate", "--train-folder", "gs://bucket/muster_trained", "--job-id", "measured")
        wait_until(lambda: len(self.vertex()["jobs"]) == 2, "the job is there")
        measured = self.run_task("measured", "workerpool0", 0, {"workerpool0": ["localhost:2222"]})
        self.assertEqual(measured.returncode, 0, measured.stderr)
        self.become("measured", "SUCCEEDED")
        out, err = run.communicate(timeout=60)
        self.assertEqual(run.returncode, 0, err)
        self.assertIn("Step 20, split test", out)
        self.assertRegex(out, r"accuracy +[01]")


if __name__ == "__main__":
    unittest.main()
