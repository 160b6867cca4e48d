"""Overrides of a job file, wait, and the filters of jobs and logs."""
import json
import os
import re
import signal
import subprocess
import time
import unittest

from support import MUSTER, MusterTest, is_alive, wait_until

SLEEPER = "name: {name}\nroles: {{worker: {{command: 'echo up; exec sleep 600'}}}}\n"
# Waits for a file, then exits with the code in it.
GATED = "name: {name}\nroles: {{worker: {{command: 'until [ -s {name}.go ]; do sleep 0.05; done; exit $(cat {name}.go)', restart: never}}}}\n"
OWN = """
    name: own
    env: {A: file, VERSION: 1.10}
    roles:  # a comment
      worker: {replicas: 1, command: 'exec /bin/sh show.sh', env: {A: role}}
    """


class OverrideTest(MusterTest):
    def own(self, last="exit 0"):
        self.write("show.sh", f'echo "$A/$VERSION/$MUSTER_JOB_NAME/$MUSTER_INDEX" "$@" >> seen\n{last}\n')
        return self.write("job.yaml", OWN)

    def seen(self):
        return sorted((self.dir / "seen").read_text().splitlines())

    def test_every_override_reaches_the_tasks_and_the_record(self):
        job = self.own()
        self.muster("run", job, "--set", "roles.worker.replicas=2", "--env", "A=x y", "--name", "other", "--", "--lr", "a b")
        self.assertEqual(self.seen(), ["x y/1.10/other/0 --lr a b", "x y/1.10/other/1 --lr a b"])
        self.assertEqual(self.jobs()[0]["name"], "other")
        # The effective file is the record of the run: run as it is, it does the same.
        text = self.muster("show", "other", "--file").stdout
        self.assertNotIn("#", text)
        (self.dir / "seen").unlink()
        self.muster("run", self.write("effective.yaml", text))
        self.assertEqual(self.seen(), ["x y/1.10/other/0 --lr a b", "x y/1.10/other/1 --lr a b"])
        self.assertEqual(self.muster("show", "other", "--file").stdout, text)

    def test_overrides_survive_resume_and_show_in_the_difference(self):
        file = self.own("exec sleep 600")
        overrides = ["--set", "roles.worker.replicas=2", "--env", "A=x"]
        job = self.muster("run", "-d", "--quiet", file, *overrides).stdout.strip()
        self.wait_state(job, "Running")
        self.assertIn("nothing changed", self.muster("run", "--no-follow", file, *overrides).stdout)
        plan = self.muster("run", "--dry-run", file).stdout
        changed = [line.strip("+- ") for line in plan.splitlines() if re.match(r"[+-] ", line)]
        self.assertEqual(changed, ["A: x", "A: file", "replicas: 2", "replicas: 1", "A: x", "A: role"], plan)
        self.assertIn("stop:    worker:1", plan)
        self.muster("stop", "--yes", job)
        again = self.muster("resume", "-d", "--quiet", job).stdout.strip()
        self.wait_state(again, "Running")
        self.assertEqual(len(self.show(again)["tasks"]), 2)
        wait_until(lambda: len(self.seen()) == 4, "both tasks of both runs have started")
        self.assertEqual(set(self.seen()), {"x/1.10/own/0", "x/1.10/own/1"})

    def test_mistakes_have_the_option_as_their_place(self):
        result = self.muster("run", self.own(), "--set", "roles.worker.replicas=many", "--set", "polices.deadline=5m", check=False)
        self.assertEqual(result.returncode, 2)
        self.assertIn("--set roles.worker.replicas: 'replicas' of role 'worker' must be", result.stderr)
        self.assertRegex(result.stderr, r"--set polices.deadline: .*did you mean 'policies'")
        self.assertEqual(self.jobs(), [])
        trainer = self.write("t.yaml", "name: t\ntrain: {model: mlp, steps: 1, data: {format: synthetic}}\n")
        result = self.muster("run", trainer, "--", "--lr", "1", check=False)
        self.assertEqual(result.returncode, 2)
        self.assertIn("built-in trainer, which takes no arguments", result.stderr)

    def test_words_without_dashes_are_no_arguments(self):
        result = self.muster("run", self.own(), "extra", check=False)
        self.assertEqual(result.returncode, 2)
        self.assertIn("extra", result.stderr)

    def test_a_change_is_tried_first_with_the_same_options(self):
        job = self.own()
        options = ["--set", "roles.worker.replicas=3", "--set", "image=i", "--env", "A=x", "--name", "other", "--", "--lr", "1"]
        self.assertIn("settings of 'other':\n  role 'worker': image", self.muster("explain", job, *options).stdout)
        restarts = ["--set", "policies.max_restarts=7"]
        self.assertIn("max_restarts", self.muster("explain", job, "--on", "vertex", *restarts, *options).stdout)
        objects = self.muster("render", job, *options).stdout
        self.assertEqual(len(re.findall("(?m)^kind: Job$", objects)), 3, objects)
        self.assertIn("name: other-worker-2", objects)
        self.assertIn("--lr", objects)
        checks = {one["check"]: one["detail"] for one in json.loads(self.muster("doctor", "--json", job, *options).stdout)}
        self.assertIn("3 tasks", checks["job file"])
        self.assertEqual(self.muster("env", job, "worker", "2", "--print", "A", *options).stdout, "x\n")
        self.assertEqual(self.muster("env", job, "worker", "2", "--print", "MUSTER_JOB_NAME", *options).stdout, "other\n")

    def test_a_mistake_gets_the_same_diagnostic_from_every_command(self):
        job = self.own()
        mistake = ["--set", "roles.worker.replicas=many", "--env", "novalue"]
        expected = self.muster("run", job, *mistake, check=False).stderr
        self.assertIn("--set roles.worker.replicas: 'replicas'", expected)
        for command in (["explain"], ["render"], ["doctor"], ["env", "--cluster"]):
            result = self.muster(*command, job, *mistake, check=False)
            self.assertEqual((result.returncode, result.stderr), (2, expected), command)

    def test_overrides_need_a_job_file(self):
        result = self.muster("doctor", "--set", "train.steps=1", check=False)
        self.assertEqual(result.returncode, 2)
        self.assertIn("cannot apply --set train.steps: the job file is missing", result.stderr)
        self.muster("run", self.own())
        result = self.muster("env", "own", "worker", "0", "--env", "A=b", check=False)
        self.assertEqual(result.returncode, 2)
        self.assertRegex(result.stderr, "cannot apply --env A: own-.* is not a job file but a job")

    def test_a_manifest_and_standard_input(self):
        text = """
            apiVersion: kubeflow.org/v1
            kind: TFJob
            metadata: {name: m}
            spec:
              tfReplicaSpecs:
                Worker:
                  template: {spec: {containers: [{name: tensorflow, image: x, command: [/bin/sh, -c, 'echo $0 $A >> seen']}]}}
            """
        self.muster("run", "-", "--env", "A=x", "--name", "n", "--", "first", input=text)
        self.assertEqual(self.seen(), ["first x"])
        self.assertEqual(self.jobs()[0]["name"], "n")


class FollowTest(MusterTest):
    def test_run_of_an_unchanged_job_follows_it_to_its_verdict(self):
        for code in (0, 3):
            name = f"job{code}"
            file = self.write("job.yaml", GATED.format(name=name))
            job = self.muster("run", "-d", "-q", file).stdout.strip()
            self.wait_state(job, "Running")
            follower = self.start("run", file)
            wait_until(lambda: "following it" in follower.stderr.readline(), "it follows")
            self.assertIsNone(follower.poll())
            self.write(f"{name}.go", str(code))
            _, err = follower.communicate(timeout=60)
            self.assertEqual(follower.returncode, 1 if code else 0, err)
            self.assertIn(f"{job} {'Failed' if code else 'Succeeded'}", err)
        self.assertEqual(len(self.jobs()), 2)

    def test_ctrl_c_leaves_the_followed_job_running(self):
        file = self.write("job.yaml", SLEEPER.format(name="s"))
        job = self.muster("run", "-d", "-q", file).stdout.strip()
        pid = self.wait_state(job, "Running")["tasks"][0]["pid"]
        follower = self.start("run", file)
        wait_until(lambda: "following it" in follower.stderr.readline(), "it follows")
        follower.send_signal(signal.SIGINT)
        self.assertEqual(follower.wait(60), 130)
        self.assertTrue(is_alive(pid))
        self.assertEqual(self.show(job)["state"], "Running")

    def test_quiet_prints_the_id_only(self):
        file = self.write("job.yaml", SLEEPER.format(name="s"))
        job = self.muster("run", "-d", "--quiet", file).stdout
        self.assertRegex(job, r"^s-\w{5}\n$")
        self.assertEqual(self.muster("run", "-d", "--quiet", file).stdout, job)
        changed = self.write("job.yaml", SLEEPER.format(name="s").replace("600", "601"))
        self.assertEqual(self.muster("run", "-d", "--quiet", "--yes", changed).stdout, job)
        self.assertEqual(self.muster("run", "--quiet", file, check=False).returncode, 2)

    def test_wait(self):
        jobs = [self.run_detached(GATED.format(name=name), f"{name}.yaml") for name in ("a", "b")]
        waiter = self.start("wait", *jobs)
        early = self.muster("wait", "--timeout", "200ms", "a", check=False)
        self.assertEqual(early.returncode, 1)
        self.assertRegex(early.stderr, rf"timed out after 200ms: {jobs[0]} is still (Running|Starting)")
        self.assertIsNone(waiter.poll())
        for name, code in (("a", "5"), ("b", "0")):
            self.write(f"{name}.go", code)
        _, err = waiter.communicate(timeout=60)
        self.assertEqual(waiter.returncode, 1)
        self.assertIn(f"{jobs[0]} Failed", err)
        self.assertIn(f"{jobs[1]} Succeeded", err)
        self.assertEqual(self.muster("wait", "b").returncode, 0)
        self.assertEqual(self.muster("wait", "b", "nobody", check=False).returncode, 1)

    def test_wait_for_a_job_whose_supervisor_is_killed(self):
        job = self.run_detached(SLEEPER.format(name="s"))
        self.wait_state(job, "Running")
        waiter = self.start("wait", job)
        time.sleep(0.5)  # it may also see the end at once
        os.kill(self.show(job)["supervisor_pid"], signal.SIGKILL)
        self.assertEqual(waiter.wait(60), 1)
        self.assertIn(f"{job} Failed", waiter.stderr.read())

    def test_logs_f_ends_with_the_verdict(self):
        job = self.run_detached(GATED.format(name="a"))
        follower = self.start("logs", "-f", job)
        self.write("a.go", "7")
        _, err = follower.communicate(timeout=60)
        self.assertEqual(follower.returncode, 1)
        self.assertIn(f"{job} Failed", err)
        again = self.muster("logs", "-f", job, check=False)
        self.assertEqual(again.returncode, 1)
        self.assertIn("exit code 7", again.stderr)
        self.assertEqual(self.muster("logs", job).stderr, "")


class SelectTest(MusterTest):
    def test_logs_by_pattern_and_attempt(self):
        self.muster("run", self.write("job.yaml", """
            name: again
            roles: {worker: {command: 'for i in 1 2 3; do echo "a{attempt} loss $i"; echo other; done; [ {attempt} = 1 ]', restart: on-failure}}
            policies: {backoff: 10ms}
            """))
        lines = lambda *args: [line.split(" | ", 1)[1] for line in self.muster("logs", "again", *args).stdout.splitlines()]
        self.assertEqual(lines("--grep", "loss [12]$"), ["a0 loss 1", "a0 loss 2", "a1 loss 1", "a1 loss 2"])
        self.assertEqual(lines("--attempt", "2", "--grep", "^a"), ["a1 loss 1", "a1 loss 2", "a1 loss 3"])
        self.assertEqual(lines("--grep", "loss", "--tail", "2"), ["a1 loss 2", "a1 loss 3"])
        self.assertEqual(len(lines("--attempt", "1")), 6)
        bad = self.muster("logs", "again", "--grep", "(", check=False)
        self.assertEqual(bad.returncode, 2)
        self.assertIn("grep -E", bad.stderr)

    def test_jobs_by_state_name_age_and_number(self):
        for name, code in (("one", 0), ("two", 1), ("three", 0)):
            self.muster("run", self.write("job.yaml", f"name: {name}\nroles: {{worker: {{command: 'exit {code}', restart: never}}}}\n"), check=False)
        names = lambda *args: [job["name"] for job in json.loads(self.muster("jobs", "--json", *args).stdout)]
        self.assertEqual(names("--state", "succeeded"), ["three", "one"])
        self.assertEqual(names("--state", "failed,stopped", "--state", "Running"), ["two"])
        self.assertEqual(names("--name", "t*"), ["three", "two"])
        self.assertEqual(names("--name", "t*", "--limit", "1"), ["three"])
        self.assertEqual(names("--since", "1h"), ["three", "two", "one"])
        self.assertEqual(names("--since", "0s"), [])
        self.assertIn("No job matches", self.muster("jobs", "--name", "four").stdout)
        self.assertIn("did you mean 'Failed'", self.muster("jobs", "--state", "faild", check=False).stderr)

    def test_rm_removes_finished_jobs(self):
        for name in ("one", "two", "three"):
            self.muster("run", self.write("job.yaml", f"name: {name}\nroles: {{worker: {{command: 'true'}}}}\n"))
        self.assertIn("nothing was removed", self.muster("jobs", "rm", "one", check=False).stderr)
        self.muster("jobs", "rm", "--yes", "one", "two", "one")
        self.assertEqual([job["name"] for job in self.jobs()], ["three"])
        self.assertEqual(len(list((self.home / "jobs").iterdir())), 1)
        self.assertEqual(self.muster("jobs", "rm", "--yes", "one", check=False).returncode, 1)

    def test_stop_all(self):
        jobs = [self.run_detached(SLEEPER.format(name=name), f"{name}.yaml") for name in ("a", "b")]
        refused = self.muster("stop", "--all", check=False)
        self.assertEqual(refused.returncode, 1)
        self.assertIn("nothing was stopped", refused.stderr)
        self.assertEqual(self.muster("stop", "--all", "a", check=False).returncode, 2)
        self.assertIn("No job is running", self.muster("stop", "--all", "--yes", "--on", "kubernetes").stdout)
        self.muster("stop", "--all", "--yes")
        self.assertEqual({self.show(job)["state"] for job in jobs}, {"Stopped"})
        self.assertIn("No job is running", self.muster("stop", "--all", "--yes").stdout)

    def test_verbs_of_other_programs(self):
        for words, right in ((["ps"], "muster jobs"), (["ls"], "muster jobs"), (["status", "x"], "muster show"), (["kill", "x"], "muster stop"),
                             (["train", "-c", "x"], "muster run"), (["cloud", "gc", "train"], "--on PLATFORM"), (["jobs", "forget", "x"], "muster jobs rm")):
            result = self.muster(*words, check=False)
            self.assertEqual(result.returncode, 2, words)
            self.assertIn(right, result.stderr, words)
            self.assertEqual(result.stdout, "", words)


class PrintTest(MusterTest):
    JOB = "name: hand\nroles: {chief: {}, worker: {replicas: 2, port: 9000}, ps: {}}\ncommand: 'true'\nmodel_dir: gs://b/x\n"

    def test_one_variable_for_a_shell(self):
        file = self.write("job.yaml", self.JOB)
        script = f'export TF_CONFIG=$({MUSTER} env {file} worker 1 --print TF_CONFIG) && /usr/bin/printenv TF_CONFIG'
        seen = subprocess.run(["/bin/sh", "-c", script], env=self.env, cwd=self.dir, text=True, capture_output=True, check=True).stdout
        config = json.loads(seen)
        self.assertEqual(config["task"], {"type": "worker", "index": 1})
        self.assertEqual(config["cluster"]["worker"], ["127.0.0.1:9000", "127.0.0.1:9001"])
        whole = subprocess.run(["/bin/sh", "-c", f'eval "$({MUSTER} env {file} worker 1)" && /usr/bin/printenv TF_CONFIG'],
                               env=self.env, cwd=self.dir, text=True, capture_output=True, check=True).stdout
        self.assertEqual(whole, seen)
        wrong = self.muster("env", file, "worker", "1", "--print", "TF_CONFG", check=False)
        self.assertEqual(wrong.returncode, 2)
        self.assertIn("did you mean 'TF_CONFIG'", wrong.stderr)
        self.assertEqual(self.muster("env", file, "--cluster", "--print", "X", check=False).returncode, 2)

    def test_the_cluster_is_that_of_the_platform(self):
        file = self.write("job.yaml", self.JOB.replace("command:", "image: x\ncommand:"))
        config = self.write("kubeconfig", """
            {apiVersion: v1, kind: Config, current-context: prod, users: [{name: me, user: {token: x}}],
             clusters: [{name: c, cluster: {server: "https://127.0.0.1:9"}}],
             contexts: [{name: prod, context: {cluster: c, user: me, namespace: ml}}]}
            """)
        self.env["KUBECONFIG"] = str(config)
        cluster = json.loads(self.muster("env", file, "--cluster", "--on", "kubernetes").stdout)
        self.assertEqual(cluster["worker"], ["hand-worker-0.ml.svc:9000", "hand-worker-1.ml.svc:9000"])
        config = json.loads(self.muster("env", file, "chief", "0", "--print", "TF_CONFIG", "--on", "kubernetes", "-n", "other").stdout)
        self.assertEqual(config["cluster"]["ps"], ["hand-ps-0.other.svc:2222"])
        here = json.loads(self.muster("env", file, "--cluster").stdout)
        self.assertEqual(here["worker"][0], "127.0.0.1:9000")
        late = self.muster("env", file, "--cluster", "--on", "vertex", check=False)
        self.assertEqual(late.returncode, 1)
        self.assertIn("gets its address when the job starts on Vertex AI", late.stderr)
        over = self.muster("env", file, "--cluster", "--on", "ssh", "--hosts", "127.0.0.1", check=False)
        self.assertIn("set 'port' of its role", over.stderr)


if __name__ == "__main__":
    unittest.main()
