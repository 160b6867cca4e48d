"""The page of the dashboard in a real browser: tests/browser/*.mjs with Debian's Chromium and playwright-core."""
import json
import os
import re
import shutil
import subprocess
import unittest

from support import SOURCE
from training import TrainTest

PACKAGES = SOURCE / "build" / "npm" / "node_modules"


class BrowserTest(TrainTest):
    def setUp(self):
        for name, path in (("chromium", "/usr/bin/chromium"), ("playwright-core", PACKAGES / "playwright-core"),
                           ("axe-core", PACKAGES / "axe-core"), ("node", shutil.which("node") or "")):
            if not os.path.exists(path):
                self.skipTest(f"no {name}")
        super().setUp()

    def dashboard(self):
        """Starts the server; returns the link that it prints."""
        process = self.start("dashboard", "--port", "0")
        for line in process.stdout:
            found = re.search(r"http://\S+/login\?token=\S+", line)
            if found:
                return found.group(0)
        raise AssertionError(f"muster dashboard printed no link: {process.stderr.read()}")

    def browse(self, script, answers=(), **given):
        """Runs a script in the browser. `answers` are called in turn, each after the script printed a line."""
        given = {"url": self.dashboard(), "shots": os.environ.get("MUSTER_SHOTS"), **given}
        process = subprocess.Popen(["node", SOURCE / "tests" / "browser" / f"{script}.mjs", json.dumps(given)], text=True,
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=self.dir)
        lines = []
        try:
            for answer in answers:
                line = process.stdout.readline()
                if not line:
                    break
                lines.append(line)
                answer()
                process.stdin.write("\n")
                process.stdin.flush()
            output, error = process.communicate(timeout=300)
        finally:
            process.kill()
            process.communicate()
        self.assertEqual(process.returncode, 0, f"{''.join(lines)}{output}\n{error}")
        return output

    def digits(self, **changes):
        """Starts a small training job and returns its id."""
        train = {"steps": 1000000, "log_every_steps": 20, "batch_size": 32, **changes.pop("train", {})}
        return self.launch(changes.pop("name", "digits"), roles={"chief": {}, "worker": 1, "ps": 1}, train=train, **changes)

    def test_watch_stop_change_and_run_again(self):
        job = self.digits()
        self.wait_step(job, 20)
        again = self.browse("training", job=job).split()[-1]
        self.assertEqual(self.show(job)["state"], "Stopped")
        self.assertEqual(self.show(again)["state"], "Succeeded")

    def test_report_of_a_killed_task(self):
        job = self.run_detached("""\
            name: killed
            roles:
              worker:
                replicas: 2
                command: |
                  echo "<b>not markup</b>"
                  sleep 1000
            policies: {restart: never}
            """)
        self.wait_state(job, "Running")
        self.browse("failure", job=job, answers=[lambda: self.kill_task(job, "worker:1"), lambda: self.muster("jobs", "rm", "--yes", job)])

    def test_compare_jobs_and_seeds(self):
        seeds = [1, 2, 3, 4, 5]
        jobs = [self.digits(name=f"seed{seed}", train={"steps": 300, "seed": seed}) for seed in seeds]
        for job in jobs:
            self.succeed(job)
        self.browse("compare", jobs=jobs, seeds=seeds)

    def test_themes_phone_keyboard_and_accessibility(self):
        job = self.digits(train={"steps": 300})
        self.succeed(job)
        self.browse("access", job=job)


if __name__ == "__main__":
    unittest.main()
