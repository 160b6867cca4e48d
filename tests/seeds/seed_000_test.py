"""TF_CONFIG by hand on three machines: the page's script beside `muster env`, its experiment, and then `muster run`."""
import json
import shutil
import subprocess
import unittest

from hosts import own_hosts
from support import MUSTER, PYTHON, SOURCE, MusterTest, wait_until
from venvs import ESTIMATOR, python_first, venv

FILES = SOURCE / "tests" / "seeds" / "000"
NODES = {"master": "host1", "ps": "host2", "worker": "host3"}  # instance-1, instance-2, instance-3


class PageTest(MusterTest):
    def setUp(self):
        super().setUp()
        shutil.copytree(FILES, self.dir, dirs_exist_ok=True)


class ConfigTest(PageTest):
    def printed(self, role, index):
        """Returns what TF_CONFIG.py prints for a node."""
        return json.loads(subprocess.run([PYTHON, "TF_CONFIG.py", role, str(index)], cwd=self.dir, capture_output=True, text=True,
                                         check=True).stdout)

    def test_the_script_and_muster_agree(self):
        for role in NODES:
            variables = json.loads(self.muster("env", "experiment.yaml", role, "0", "--format", "json").stdout)
            self.assertEqual(json.loads(variables["TF_CONFIG"]), self.printed(role, 0))


class ExperimentTest(PageTest):
    """The machines share a folder, which takes the place of the bucket."""

    def setUp(self):
        super().setUp()
        self.venv = venv(self, ESTIMATOR)
        self.model_dir = self.dir / "bucket" / "your" / "path"
        self.model_dir.mkdir(parents=True)
        self.bed = own_hosts(self, 3, share=[self.venv, self.dir / "bucket"])
        self.addCleanup(self._end_everything)  # before the hosts end
        self.env = {**python_first(self.env, self.venv), **self.bed.environment}
        for name in ("TF_CONFIG.py", "experiment.yaml"):
            text = (self.dir / name).read_text().replace("gs://bucket", str(self.dir / "bucket"))
            for number in (1, 2, 3):
                text = text.replace(f"instance-{number}:", f"host{number}:")
            (self.dir / name).write_text(text)

    def shell(self, role, commands):
        """Starts a shell on a node, in a folder with the copied files; killed at the end of the test."""
        host = NODES[role]
        folder = self.bed.path(host, "~/page")
        folder.mkdir()
        for name in ("TF_CONFIG.py", "experiment.py", "experiment.yaml"):
            shutil.copy(self.dir / name, folder)
        shutil.copy(MUSTER, folder / "muster")
        output = self.dir / f"{role}.txt"
        with open(output, "wb") as file:
            process = subprocess.Popen([*self.bed.ssh, host, f"export PATH={self.venv}/bin:$PATH; cd page; {commands}"],
                                       stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.STDOUT, env=self.env)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        process.output = output.read_text
        return process

    def follow(self, export):
        """Runs the experiment on each node, with TF_CONFIG set by a shell command that has a role and an index."""
        nodes = {role: self.shell(role, f"{export.format(role, 0)}; exec python experiment.py") for role in NODES}
        for role in ("master", "worker"):
            process = nodes[role]
            wait_until(lambda process=process: process.poll() is not None or nodes["ps"].poll() is not None, f"{role} ends", 200)
            self.assertEqual(process.returncode, 0, "".join(node.output() for node in nodes.values()))
            # A worker that starts late may find nothing to do.
            self.assertRegex(process.output(), "Loss for final step: |Skipping training since max_steps has already saved")
        self.assertIsNone(nodes["ps"].poll())  # by hand nothing ends it
        self.expect_checkpoint()
        self.assertRegex(nodes["master"].output(), r"Saving dict for global step 20\d: .*loss = (0\.0|\S+e-)")

    def expect_checkpoint(self):
        self.assertRegex((self.model_dir / "checkpoint").read_text(), r'model_checkpoint_path: "model\.ckpt-20\d"')

    def test_by_hand_with_the_script(self):
        self.follow("export TF_CONFIG=$(python TF_CONFIG.py {} {})")

    def test_by_hand_with_muster(self):
        self.follow('eval "$(./muster env experiment.yaml {} {})"')

    def test_by_muster(self):
        work = self.dir / "work"
        work.mkdir()
        for name in ("experiment.py", "experiment.yaml"):
            shutil.copy(self.dir / name, work)
        text = (work / "experiment.yaml").read_text().replace("python experiment", f"{self.venv}/bin/python experiment")
        (work / "experiment.yaml").write_text(text)
        result = self.muster("run", "--on", "ssh", "--hosts", "host1,host2,host3", "experiment.yaml", cwd=work, timeout=250)
        self.assertIn("Succeeded", result.stderr)
        self.assertEqual({task["task"]: (task["state"], task["host"]) for task in self.show("experiment")["tasks"]},
                         {"master:0": ("Succeeded", "host1"), "ps:0": ("Stopped", "host2"), "worker:0": ("Succeeded", "host3")})
        self.expect_checkpoint()


if __name__ == "__main__":
    unittest.main()
