"""The files of the working directory in pods of a public image: on a real API server, and on a real node that runs them."""
import base64
import gzip
import io
import json
import os
import pathlib
import re
import tarfile
import unittest

from cluster.node import TOOLS_IMAGE
from clusters import own_node
from operators import OperatorTest, violations
from support import SOURCE, MusterTest, wait_until

JOB = """
    name: pets
    image: python:3
    roles:
      worker: {replicas: 2, command: python train.py}
      ps: {command: [serve]}
"""


class ObjectsTest(OperatorTest):
    """There are no nodes: pods do not run."""

    def setUp(self):
        super().setUp()
        self.env["KUBECONFIG"] = str(self.cluster.kubeconfig)
        self.work = self.dir / "work"
        self.work.mkdir()
        self.put("train.py", "import model\n")
        self.put("model.py", "print('model')\n")
        self.put("job.yaml", JOB)

    def put(self, name, text):
        path = self.work / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def run_job(self, *options, check=True):
        return self.muster("run", *options, "--on", "kubernetes", "-n", self.namespace, "job.yaml", cwd=self.work, check=check)

    def submit(self, *options):
        said = self.run_job("-d", *options)
        return re.search(r"Started (\S+) in", said.stdout).group(1), said.stderr

    def template(self, job, role):
        return self.job(job)["spec"]["tfReplicaSpecs"][role]["template"]["spec"]

    def parts(self, job):
        return {name: value for name, value in self.all("configmaps").items() if name.startswith(f"{job}-files-")}

    def unpacked(self, job):
        """Returns the files in the ConfigMaps of a job."""
        joined = b"".join(base64.b64decode(data) for _, data in
                          sorted(item for part in self.parts(job).values() for item in part["binaryData"].items()))
        with tarfile.open(fileobj=io.BytesIO(gzip.decompress(joined))) as archive:
            return {member.name: archive.extractfile(member).read().decode() for member in archive if member.isfile()}

    def test_a_command_that_names_a_file_gets_the_directory(self):
        self.operate()
        planned = self.run_job("--dry-run").stdout
        self.assertIn(f"Sends 3 files (", planned)
        self.assertIn(f" of {self.work} to worker.", planned)
        self.assertRegex(planned, r"worker:0 .*/muster/work ")
        explained = self.muster("explain", "--on", "kubernetes", "job.yaml", cwd=self.work).stdout
        self.assertIn("Sends 3 files", explained)

        job, said = self.submit()
        self.assertIn(f"sends 3 files (", said)
        self.assertEqual({name: text for name, text in self.unpacked(job).items() if name != "job.yaml"},
                         {"train.py": "import model\n", "model.py": "print('model')\n"})
        part, = self.parts(job).values()
        self.assertIs(part["immutable"], True)
        self.assertEqual(part["metadata"]["ownerReferences"][0]["name"], job)

        worker, ps = self.template(job, "Worker"), self.template(job, "PS")
        unpacker, = worker["initContainers"]
        self.assertEqual(unpacker["image"], "python:3")
        self.assertEqual(unpacker["securityContext"], worker["containers"][0]["securityContext"])
        self.assertIs(unpacker["securityContext"]["readOnlyRootFilesystem"], True)
        self.assertEqual(list(violations(worker)), [])
        self.assertEqual(worker["containers"][0]["workingDir"], "/muster/work")
        self.assertNotIn("initContainers", ps)
        self.assertNotIn("workingDir", ps["containers"][0])
        # The operator keeps all of it.
        wait_until(lambda: f"{job}-worker-0" in self.all("pods"), "the pods are there", 30)
        pod = self.all("pods")[f"{job}-worker-0"]["spec"]
        self.assertEqual(pod["initContainers"][0]["command"], unpacker["command"])
        self.assertEqual(pod["containers"][0]["workingDir"], "/muster/work")

        self.muster("stop", "--yes", "--now", job)
        wait_until(lambda: not self.parts(job), "the files are deleted with the job", 60)

    def test_an_edit_restarts_the_tasks_that_have_the_files(self):
        self.operate()
        job, _ = self.submit()
        before = set(self.parts(job))
        self.assertIn("nothing changed", self.run_job("-d").stdout)
        # The job file is among the files, but a change to it is not one of the program.
        self.put("job.yaml", JOB + "    policies: {max_restarts: 7}\n")
        self.assertIn("policies change without a restart", self.run_job("-d", "--yes").stdout)
        self.assertEqual(set(self.parts(job)), before)

        self.put("model.py", "print('another')\n")
        planned = self.run_job("--dry-run").stdout
        self.assertIn("+print('another')", planned)
        self.assertIn("restart: worker:0, worker:1", planned)
        self.assertIn("keep:    ps:0", planned)
        self.run_job("-d", "--yes")
        self.assertFalse(before & set(self.parts(job)))
        self.assertEqual(self.unpacked(job)["model.py"], "print('another')\n")
        self.assertIn("nothing changed", self.run_job("-d").stdout)

    def test_the_program_of_an_image(self):
        """Files are not sent if no command names one, or if the container has a folder of its own; the latter is reported."""
        self.put("job.yaml", JOB.replace("python train.py", "python /app/train.py"))
        job, said = self.submit()
        self.assertNotIn("sends", said)
        self.assertEqual(self.parts(job), {})
        self.assertNotIn("initContainers", self.template(job, "Worker"))
        self.muster("stop", "--yes", "--now", job)
        self.put("job.yaml", JOB + "    kubernetes: {container: {workingDir: /app}}\n")
        job, said = self.submit()
        self.assertIn("role 'worker': command: train.py: not sent from this directory", said)
        self.assertEqual((self.parts(job), self.template(job, "Worker")["containers"][0]["workingDir"]), ({}, "/app"))
        explained = self.muster("explain", "--on", "kubernetes", "job.yaml", cwd=self.work).stdout
        self.assertIn("train.py: not sent", explained)

    def test_a_folder_of_a_role(self):
        self.put("src/own.py", "")
        self.put("job.yaml", "{name: pets, image: 'python:3', roles: {worker: {command: python own.py, working_dir: src}}}")
        job, _ = self.submit()
        self.assertEqual(self.template(job, "Worker")["containers"][0]["workingDir"], "/muster/work/src")

    def test_credentials_and_ignored_files_stay_here(self):
        self.put(".env", "TOKEN=1")
        self.put(".gitignore", "*.csv\n")
        self.put("x.csv", "1")
        self.put("job.yaml", JOB.replace("train.py", "train.py x.csv"))
        job, said = self.submit()
        self.assertEqual(sorted(self.unpacked(job)), [".gitignore", "job.yaml", "model.py", "train.py"])
        self.assertIn("x.csv: not sent, although a command names it", said)
        self.assertIn("credentials: .env", said)

    def test_a_large_directory(self):
        (self.work / "data").mkdir()
        (self.work / "data" / "noise").write_bytes(os.urandom(3 << 20))
        job, _ = self.submit()
        self.assertGreater(len(self.parts(job)), 3)
        (self.work / "data" / "noise").write_bytes(bytes(9 << 20))
        refused = self.muster("run", "-d", "--name", "other", "--on", "kubernetes", "-n", self.namespace, "job.yaml", cwd=self.work, check=False)
        self.assertEqual(refused.returncode, 1)
        for part in ("data/noise", "the limit is 8.0MiB", ".gitignore", "build an image"):
            self.assertIn(part, refused.stderr)
        self.assertEqual(list(self.all("tfjobs")), [job])

    def test_render_reports_the_files_of_a_command(self):
        rendered = self.muster("render", "job.yaml", cwd=self.work)
        self.assertIn("role 'worker': train.py: the manifest does not contain the files", rendered.stderr)
        self.assertNotIn("initContainers", rendered.stdout)

    def test_a_resumed_job_needs_its_files(self):
        job, _ = self.submit()
        self.muster("stop", "--yes", "--now", job)
        (self.work / "train.py").rename(self.work / "away.py")
        refused = self.muster("resume", "-d", job, check=False)
        self.assertIn("are no longer in", refused.stderr)
        (self.work / "away.py").rename(self.work / "train.py")
        self.muster("resume", "-d", job)
        self.assertEqual(len(self.parts(self.jobs()[0]["id"])), 1)


class NodeTest(MusterTest):
    """Containers run the program. Their image has a shell, tar and gzip."""
    IMAGE = "test.muster/public:1"

    def setUp(self):
        super().setUp()
        self.cluster = own_node(self)
        self.cluster.load_programs(self.IMAGE, {"usr/bin/tar": pathlib.Path("/bin/tar"), "usr/bin/gzip": pathlib.Path("/bin/gzip")})
        self.cluster.kubectl("apply", "-f", SOURCE / "deploy" / "crds.yaml")
        self.env["KUBECONFIG"] = str(self.cluster.kubeconfig)
        self.start("operator", "--no-leader-election")
        self.work = self.dir / "work"
        (self.work / "lib" / ("deep" * 20)).mkdir(parents=True)

    def test_programs_of_several_files(self):
        self.run_and_restart()
        self.run_without_tar()

    def run_and_restart(self):
        long_name = f"lib/{'deep' * 20}/{'long' * 20}"
        (self.work / "run.sh").write_text(f"""
            . lib/common.sh
            cat "lib/with space" "lib/new
line" {long_name}
            echo "$MUSTER_TASK in $(pwd) sees $(ls | grep -c .)"
            touch /file 2>/dev/null || echo "read-only"
            until [ -e go ]; do sleep 0.1; done
            greet
        """)
        (self.work / "lib" / "common.sh").write_text("greet() { echo hello from $0; }\n")
        (self.work / "lib" / "with space").write_text("space\n")
        (self.work / "lib" / "new\nline").write_text("newline\n")
        (self.work / long_name).write_text("long\n")
        (self.work / "link").symlink_to("lib/common.sh")
        os.chmod(self.work / "run.sh", 0o755)
        (self.work / "job.yaml").write_text(
            f"{{name: files, image: '{self.IMAGE}', policies: {{success: all_workers}}, roles: {{worker: {{replicas: 2, command: sh ./run.sh}}}}}}")
        self.muster("run", "-d", "--on", "kubernetes", "job.yaml", cwd=self.work)
        job = self.jobs()[0]["id"]
        kubectl = self.cluster.kubectl
        first = self.wait_output(job, "worker:0", "read-only")
        # A new pod gets the files as they were sent, whatever the task has written to its copy.
        kubectl("exec", f"{job}-worker-0", "--", "sh", "-c", "echo changed > 'lib/with space'")
        kubectl("delete", "pod", f"{job}-worker-0", "--grace-period=0", "--force")
        wait_until(lambda: len(self.output(job, "worker:0")) == 2 * len(first), "the new pod has run as far", 60)
        for task in (0, 1):
            kubectl("exec", f"{job}-worker-{task}", "--", "touch", "go")
        self.wait_state(job, "Succeeded")
        once = ["space", "newline", "long", "{} in /muster/work sees 4", "read-only"]
        for task, attempts in (("worker:0", 2), ("worker:1", 1)):
            self.assertEqual(self.output(job, task), [line.format(task) for line in once] * attempts + ["hello from ./run.sh"])
        self.assertTrue(any(name.startswith(f"{job}-files-") for name in self.config_maps()))
        kubectl("delete", "tfjob", job, "--wait=true")
        wait_until(lambda: not any(name.startswith(f"{job}-files-") for name in self.config_maps()), "the files are gone", 60)

    def output(self, job, task):
        return [line.split("| ", 1)[-1] for line in self.muster("logs", job, task).stdout.splitlines()]

    def wait_output(self, job, task, last):
        return wait_until(lambda: (lambda said: said and said[-1] == last and said)(self.output(job, task)), f"{task} says {last}", 60)

    def config_maps(self):
        return [item["metadata"]["name"] for item in self.cluster.kubectl.get("configmaps")["items"]]

    def run_without_tar(self):
        (self.work / "job.yaml").write_text(
            f"{{name: bare, image: '{TOOLS_IMAGE}', policies: {{max_restarts: 0}}, roles: {{worker: {{command: sh ./run.sh}}}}}}")
        failed = self.muster("run", "--on", "kubernetes", "job.yaml", cwd=self.work, timeout=200, check=False)
        self.assertEqual(failed.returncode, 1)
        shown = json.dumps(self.show("bare"))
        self.assertRegex(shown, r"init container 'files' failed with exit code \d+: .*not found")


if __name__ == "__main__":
    unittest.main()
