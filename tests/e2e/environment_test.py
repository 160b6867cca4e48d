"""muster env and doctor, and the location of Muster's files."""
import json
import os
import shlex
import socket
import subprocess
import unittest

from support import MusterTest, free_ports, wait_until

# Every task writes its environment atomically; the chief waits for the tasks that its end would stop.
FIXED = """
    name: fixed
    model_dir: out
    command: 'env -0 > new.{{role}}.{{index}}; mv new.{{role}}.{{index}} {{role}}.{{index}}'
    roles:
      {lead}: {{command: 'env -0 > {{role}}.{{index}}; until [ -e ps.0 ] && [ -e evaluator.0 ]; do sleep 0.02; done', addresses: ["127.0.0.1:{0}"]}}
      worker: {{replicas: 2, addresses: ["127.0.0.1:{1}", "127.0.0.1:{2}"]}}
      ps: {{addresses: ["127.0.0.1:{3}"]}}
      evaluator: {{addresses: ["127.0.0.1:{4}"]}}
    policies: {{success: all_workers}}
    """
# Variables of a running task only: paths and ids of the run, and its number of restarts.
OF_A_RUN = {"MUSTER_JOB_ID", "MUSTER_METRICS_FILE", "MUSTER_PROGRESS_FILE", "MUSTER_SOCKET_DIR", "TORCHELASTIC_ERROR_FILE", "TORCHELASTIC_RUN_ID"}
TASKS = [("worker", 0), ("worker", 1), ("ps", 0), ("evaluator", 0)]


class EnvTest(MusterTest):
    def fixed(self, lead="chief"):
        return self.write("job.yaml", FIXED.format(*free_ports(5), lead=lead))

    def env_json(self, *args):
        return json.loads(self.muster("env", *args, "--format", "json").stdout)

    def test_env_equals_the_environment_of_a_running_task(self):
        job = self.fixed()
        told = {task: self.env_json(job, *task) for task in [("chief", 0), *TASKS]}
        self.muster("run", job)
        for (role, index), variables in told.items():
            seen = dict(entry.split("=", 1) for entry in (self.dir / f"{role}.{index}").read_text().split("\0") if entry)
            self.assertEqual(seen["TF_CONFIG"], variables["TF_CONFIG"])  # byte for byte
            for name, value in variables.items():
                if name not in OF_A_RUN:
                    self.assertEqual(seen[name], value, f"{name} of {role}:{index}")
            ours = {name for name in seen if name not in self.env} - {"PWD", "OLDPWD", "_", "SHLVL"}
            self.assertEqual(ours - set(variables) - OF_A_RUN, set())

    def test_env_is_the_same_on_every_machine(self):
        job = self.write("job.yaml", "name: j\nroles: {worker: {replicas: 2, command: x}}\n")
        self.assertEqual(self.muster("env", job, "worker", "1").stdout, self.muster("env", job, "worker", "1").stdout)
        one, other = self.env_json(job, "worker", "0"), self.env_json(job, "worker", "1")
        for name in ("MASTER_ADDR", "MASTER_PORT", "TORCHELASTIC_RUN_ID"):
            self.assertEqual(one.get(name), other.get(name), name)

    def test_shell_form_can_be_sourced(self):
        job = self.write("job.yaml", """
            name: quoted
            env: {AWKWARD: "it's \\"\\\\$HOME\\" and `more`; *"}
            roles: {worker: {replicas: 2, command: x}}
            """)
        text = self.muster("env", job, "worker", "1").stdout
        (self.dir / "vars.sh").write_text(text)
        seen = subprocess.run(["/bin/sh", "-c", ". ./vars.sh; env -0"], cwd=self.dir, env={"PATH": "/usr/bin:/bin"},
                              capture_output=True, text=True, check=True, timeout=60).stdout
        seen = dict(entry.split("=", 1) for entry in seen.split("\0") if entry)
        for name, value in self.env_json(job, "worker", "1").items():
            self.assertEqual(seen[name], value, name)
        self.assertEqual(seen["AWKWARD"], "it's \"$HOME\" and `more`; *")
        self.assertIn("# then: ", text)

    def test_the_command_it_names_runs_by_hand(self):
        job = self.write("job.yaml", "name: hand\nroles: {worker: {replicas: 2, command: 'echo \"$RANK of $WORLD_SIZE\"'}}\n")
        text = self.muster("env", job, "worker:1").stdout
        command = text.rsplit("# then: ", 1)[1]
        output = subprocess.run(["/bin/sh", "-c", f"{text}\n{command}"], capture_output=True, text=True, timeout=60).stdout
        self.assertEqual(output, "1 of 2\n")
        self.assertEqual(shlex.split(command)[:2], ["/bin/sh", "-c"])

    def test_tf_config_follows_tensorflow(self):
        job = self.fixed()
        configs = {task: json.loads(self.env_json(job, *task)["TF_CONFIG"]) for task in [("chief", 0), *TASKS]}
        for (role, index), config in configs.items():
            self.assertEqual(config["task"], {"type": role, "index": index})
            self.assertNotIn("evaluator", config["cluster"])
            self.assertEqual(config["cluster"], configs["chief", 0]["cluster"])
            self.assertEqual(config["environment"], "cloud")
        self.assertEqual(list(configs["chief", 0]["cluster"]), ["chief", "ps", "worker"])

    def test_master_stays_master(self):
        config = json.loads(self.env_json(self.fixed(lead="master"), "worker", "0")["TF_CONFIG"])
        self.assertEqual(set(config["cluster"]), {"master", "worker", "ps"})

    def test_cluster(self):
        cluster = json.loads(self.muster("env", self.fixed(), "--cluster").stdout)
        self.assertEqual([len(cluster[role]) for role in ("chief", "worker", "ps")], [1, 2, 1])

    def test_of_a_running_job(self):
        job = self.run_detached("name: up\nroles: {worker: {replicas: 2, command: 'env > env.{index}; exec sleep 600'}}\n")
        wait_until(lambda: "TF_CONFIG=" in self.wait_file("env.1"), "the task has said what it got")
        seen = dict(line.split("=", 1) for line in (self.dir / "env.1").read_text().splitlines() if "=" in line)
        self.assertEqual(self.env_json(job, "worker", "1")["TF_CONFIG"], seen["TF_CONFIG"])
        (self.dir / "up").mkdir()  # a folder of that name is not the job
        self.assertEqual(self.env_json("up", "worker", "1")["TF_CONFIG"], seen["TF_CONFIG"])

    def test_a_directory_that_is_not_utf8(self):
        directory = os.fsencode(self.dir) + b"/\xff"
        os.mkdir(directory)
        job = self.write("job.yaml", "name: j\nmodel_dir: out\nroles: {worker: {command: x}}\n")
        result = self.muster("env", job, "worker", "0", "--format", "json", cwd=directory, check=False)
        self.assertEqual(result.returncode, 1)
        self.assertIn("is not valid UTF-8", result.stderr)

    def test_a_name_that_no_file_can_have(self):
        result = self.muster("env", "x" * 5000, "worker", check=False)
        self.assertEqual(result.returncode, 1)
        self.assertIn("muster: error:", result.stderr)

    def test_mistakes(self):
        job = self.write("job.yaml", "name: j\nroles: {worker: {replicas: 2, command: x}}\n")
        for args in ((job,), (job, "worker", "2"), (job, "werker", "0"), (job, "worker", "-1"),
                     (job, "worker", "0", "--format", "xml"), ("nowhere.yaml", "worker", "0")):
            result = self.muster("env", *args, check=False)
            self.assertIn(result.returncode, (1, 2), args)
            self.assertNotEqual(result.stderr, "", args)
            self.assertEqual(result.stdout, "", args)
        self.assertIn("worker:0, worker:1", self.muster("env", job, "worker", "2", check=False).stderr)


class DoctorTest(MusterTest):
    def findings(self, *args):
        result = self.muster("doctor", "--json", *args, check=False)
        self.assertNotIn("error", result.stderr)
        return {f["check"]: (f["result"], f["detail"]) for f in json.loads(result.stdout)}, result.returncode

    def test_of_the_machine(self):
        findings, code = self.findings()
        self.assertEqual(code, 0)
        self.assertEqual(findings["kernel"][0], "ok")
        self.assertIn("memory", findings)
        self.assertRegex(self.muster("doctor").stdout, r"CHECK +RESULT +DETAIL\n")

    def test_of_a_job_that_can_run(self):
        findings, code = self.findings(self.write("job.yaml", "name: j\nroles: {worker: {replicas: 2, command: 'true'}}\n"))
        self.assertEqual(code, 0, findings)
        self.assertEqual(findings["ports"][0], "ok")
        self.assertEqual(findings["program of worker"], ("ok", "/bin/sh"))
        self.assertEqual(findings["directory of worker"], ("ok", str(self.dir)))

    def test_a_missing_program(self):
        findings, code = self.findings(self.write("job.yaml", "name: j\nroles: {worker: {command: [no-such-program, x]}}\n"))
        self.assertEqual(code, 1)
        self.assertEqual(findings["program of worker"][0], "missing")
        self.assertIn("no-such-program", findings["program of worker"][1])

    def test_a_missing_program_of_a_shell_line(self):
        findings, code = self.findings(self.write("job.yaml", """
            name: j
            roles: {worker: {command: 'A=1 no-such-program x; echo y'}, chief: {command: 'sleep 1; no-such-program'}}
            """))
        self.assertEqual((code, findings["program of worker"][0]), (1, "missing"))
        self.assertIn("no-such-program", findings["program of worker"][1])
        self.assertEqual(findings["program of chief"][0], "ok")

    def test_a_missing_working_directory(self):
        findings, code = self.findings(self.write("job.yaml", "name: j\nroles: {worker: {command: 'true', working_dir: nowhere}}\n"))
        self.assertEqual((code, findings["directory of worker"][0]), (1, "missing"))
        self.assertIn("nowhere", findings["directory of worker"][1])

    def assert_missing(self, text, check, *words):
        """doctor lists missing items; run rejects the job with their positions in the file; --dry-run shows both and the plan."""
        job = self.write("job.yaml", text)
        findings, code = self.findings(job)
        self.assertEqual((code, findings[check][0]), (1, "missing"), findings)
        for word in words:
            self.assertIn(word, findings[check][1])
        for options, code in (((), 2), (("--dry-run",), 0)):
            result = self.muster("run", *options, job, check=False)
            self.assertEqual(result.returncode, code, result.stderr)
            self.assertRegex(result.stderr, rf"job\.yaml:\d+:\d+: {check}: ")
            self.assertIn(findings[check][1], result.stderr)
        self.assertEqual(self.jobs(), [])

    def test_a_missing_script(self):
        self.assert_missing("name: j\nroles: {worker: {command: [python3, -u, train.py, x]}}\n", "script of worker",
                            f"{self.dir}/train.py does not exist")
        self.assert_missing("name: j\nroles: {worker: {command: 'exec sh run.sh > log 2>&1', working_dir: /tmp}}\n", "script of worker",
                            "/tmp/run.sh does not exist")
        self.write("train.py", "")
        self.muster("run", self.write("job.yaml", "name: j\nroles: {worker: {command: [/usr/bin/python3, train.py]}}\n"))

    def test_a_shell_line_that_may_still_succeed_is_started(self):
        for line in ("no-such-program || true", "no-such-program x; true", "sh no-such-script; true"):
            result = self.muster("run", self.write("job.yaml", f"name: j\nroles: {{worker: {{command: '{line}'}}}}\n"))
            self.assertIn("Succeeded", result.stderr)

    def test_more_gpus_than_there_are(self):
        self.assert_missing("name: j\nroles: {worker: {replicas: 500, command: 'true', resources: {gpus: 2}}}\n", "gpus",
                            "the job requests 1000")

    def test_missing_data_and_a_missing_model(self):
        train = "name: j\nroles: {worker: 1}\ntrain: {model: %s, steps: 1, data: {format: mnist, path: data/mnist}}\n"
        self.assert_missing(train % "mlp", "data", f"{self.dir}/data/mnist does not exist", "muster data fetch mnist")
        (self.dir / "data" / "mnist").mkdir(parents=True)
        self.assert_missing(train % "nets/net.pt", "model", f"{self.dir}/nets/net.pt does not exist")

    def test_missing_data_that_another_task_may_create_is_allowed(self):
        job = self.write("job.yaml", """
            name: j
            roles: {worker: {command: 'true'}, extra: {command: 'true'}}
            train: {model: mlp, steps: 1, data: {format: mnist, path: data/mnist}}
            """)
        findings, code = self.findings(job)
        self.assertEqual((code, findings["data"][0]), (0, "warning"))
        self.assertIn("data/mnist does not exist", self.muster("run", job).stderr)

    def test_an_unusable_home(self):
        file = self.write("file", "")
        for home, text in ((file, "not a directory"), (file / "below", "not a directory"), ("/proc/below", "/proc")):
            self.env["MUSTER_HOME"] = str(home)
            findings, code = self.findings()
            self.assertEqual((code, findings["muster home"][0]), (1, "missing"), home)
            self.assertIn(text, findings["muster home"][1])
        self.env["MUSTER_HOME"] = str(self.dir / ("x" * 300))
        self.assertIn("muster home", self.findings()[0])

    def test_a_port_in_use(self):
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            port = taken.getsockname()[1]
            job = self.write("job.yaml", f"name: j\nroles: {{worker: {{command: 'true', port: {port}}}}}\n")
            findings, code = self.findings(job)
        self.assertEqual((code, findings["ports"][0]), (1, "missing"))
        self.assertIn(str(port), findings["ports"][1])

    def test_more_memory_than_there_is(self):
        findings, code = self.findings(
            self.write("job.yaml", "name: j\nroles: {worker: {command: 'true', resources: {memory: 900T}}}\n"))
        self.assertEqual((code, findings["memory"][0]), (1, "missing"))

    def test_an_invalid_file(self):
        self.assertEqual(self.muster("doctor", self.write("job.yaml", "name: 3\n"), check=False).returncode, 2)

    def test_it_leaves_nothing_behind(self):
        self.muster("doctor", self.write("job.yaml", "name: j\nroles: {worker: {command: 'true'}}\n"), check=False)
        self.assertFalse((self.home / "jobs").exists())


class ExplainTest(MusterTest):
    """explain and run use the same list of unsupported settings of a platform."""

    OLD = """
        apiVersion: tensorflow.org/v1alpha1
        kind: TfJob
        metadata: {name: old}
        spec:
          RuntimeId: 5oz2
          tensorboard: {logDir: /tmp/logs}
          terminationPolicy: {chief: {replicaName: WORKER, replicaIndex: 1}}
          replicaSpecs:
          - {tfReplicaType: MASTER, template: &pod {spec: {containers: [{name: tensorflow, image: i, command: ["true"]}], restartPolicy: OnFailure}}}
          - {tfReplicaType: WORKER, replicas: 2, template: *pod}
        """

    def test_addresses_of_another_machine(self):
        job = self.write("job.yaml", "{name: j, roles: {worker: {command: 'true', addresses: ['10.1.2.3:2222']}}}")
        explained = self.muster("explain", job).stdout
        self.assertIn("'j' cannot run on local", explained)
        refused = self.muster("run", job, check=False)
        self.assertEqual(refused.returncode, 2)
        for said in (explained, refused.stderr):
            self.assertIn("10.1.2.3:2222 is not on this machine", said)
        self.assertEqual(self.jobs(), [])

    def test_an_old_manifest_on_kubernetes(self):
        job = self.write("job.yaml", self.OLD)
        self.assertIn("kubernetes supports all settings of 'old'", self.muster("explain", job, "--on", "kubernetes").stdout)
        said = self.muster("explain", job).stdout
        for field in ("tensorboard: used only on Kubernetes", "runtimeId: used only on Kubernetes"):
            self.assertIn(field, said)
            self.assertIn(f"on local: {field}", self.muster("run", "--dry-run", job).stderr)

    def test_an_entry_point_of_an_image(self):
        for program, expected in (("", "runs the entry point of tf:7"), (", args: [train.py]", "passes `args` to the entry point of tf:7")):
            job = self.write("job.yaml", "apiVersion: kubeflow.org/v1\nkind: TFJob\nmetadata: {name: j}\nspec: {tfReplicaSpecs: {Worker: {template: {spec: "
                             "{containers: [{name: tensorflow, image: 'tf:7'" + program + "}]}}}}}\n")
            for command in (("run",), ("run", "--dry-run"), ("run", "--on", "ssh", "--hosts", "vm1")):
                refused = self.muster(*command, job, check=False)
                self.assertEqual(refused.returncode, 2, refused.stderr)
                self.assertIn(expected, refused.stderr)
                self.assertIn("add the program, such as `command: [python, train.py]`", refused.stderr)
        self.assertIn("the entry point of tf:7", self.muster("env", job, "worker", "0").stdout)
        self.assertEqual(self.jobs(), [])

    def test_run_reports_the_same_as_explain(self):
        job = self.write("job.yaml", """
            name: j
            roles: {worker: {command: 'true', image: i, resources: {cpus: 1}}}
            notebook: {}
            hosts: [vm1]
            policies: {host_timeout: 5m}
            kubernetes: {namespace: ml}
            """)
        lines = json.loads(self.muster("explain", "--json", job).stdout)
        self.assertGreaterEqual(len(lines), 6, lines)
        said = self.muster("run", job).stderr
        for line in lines:
            self.assertIn(f"not supported on local: {line}", said)

    def test_settings_that_other_platforms_drop(self):
        job = self.write("job.yaml", """
            name: j
            image: i
            model_dir: out
            roles: {chief: {command: 'true'}}
            policies: {start_timeout: 5m, backoff: 5s, host_timeout: 5m}
            """)
        for platform, words in (("kubernetes", ("start_timeout", "backoff", "host_timeout", "model_dir")),
                                ("vertex", ("backoff", "host_timeout", "model_dir")), ("local", ("host_timeout",))):
            said = self.muster("explain", job, "--on", platform).stdout
            for word in words:
                self.assertIn(word, said, platform)
        job = self.write("manifest.yaml", """
            apiVersion: kubeflow.org/v1
            kind: TFJob
            metadata: {name: m}
            spec:
              runPolicy: {suspend: true, ttlSecondsAfterFinished: 5, backoffLimit: 2}
              tfReplicaSpecs: {Worker: {template: {spec: {containers: [{name: tensorflow, image: i, command: ["true"]}]}}}}
            """)
        said = self.muster("explain", job).stdout
        self.assertIn("runPolicy: suspend: the job starts immediately", said)
        self.assertIn("runPolicy: ttlSecondsAfterFinished", said)
        self.assertNotIn("backoffLimit", said)

    def test_a_name_too_long_for_the_cluster_is_reported(self):
        job = self.write("job.yaml", f"{{name: {'n' * 52}, image: i, roles: {{worker: {{command: x}}}}}}")
        self.assertIn("cannot run on kubernetes", self.muster("explain", job, "--on", "kubernetes").stdout)

    def test_a_model_file_that_pods_cannot_read_is_reported(self):
        job = self.write("job.yaml", """
            {name: j, model_dir: 'gs://b/x', roles: {worker: 1},
             train: {model: /srv/net.pt, steps: 1, data: {format: mnist, path: 'gs://b/data'}}}
            """)
        self.assertIn("'model' of train is /srv/net.pt", self.muster("explain", job, "--on", "kubernetes").stdout)


class HomeTest(MusterTest):
    JOB = "name: j\nroles: {worker: {command: 'echo hi'}}\n"

    def test_xdg_data_home(self):
        del self.env["MUSTER_HOME"]
        self.env["XDG_DATA_HOME"] = str(self.dir / "data")
        self.home = self.dir / "data" / "muster"
        self.muster("run", self.write("job.yaml", self.JOB))
        self.assertEqual(len(list(self.home.glob("jobs/*"))), 1)

    def test_the_default_is_below_the_users_home(self):
        del self.env["MUSTER_HOME"]
        self.env["HOME"] = str(self.dir)
        self.home = self.dir / ".local/share/muster"
        self.muster("run", self.write("job.yaml", self.JOB))
        self.assertEqual(len(list(self.home.glob("jobs/*"))), 1)

    def test_a_relative_home_is_resolved_against_the_current_directory(self):
        self.home = self.dir / f"{self.dir.name}-home"
        self.env["MUSTER_HOME"] = self.home.name
        self.muster("run", self.write("job.yaml", self.JOB))
        self.assertEqual(len(list(self.home.glob("jobs/*"))), 1)

    def test_spaces_and_other_letters_in_its_name(self):
        self.home = self.dir / "my höme 日本 'quoted'"
        self.env["MUSTER_HOME"] = str(self.home)
        job = self.run_detached("name: j\nroles: {worker: {replicas: 2, command: 'echo \"$MUSTER_PROGRESS_FILE\"; exec sleep 600'}}\n")
        wait_until(lambda: b"progress" in self.log(job, "worker:1"), "it runs")
        self.muster("stop", job)
        self.assertEqual(self.show(job)["state"], "Stopped")

    def test_a_very_long_name(self):
        # Longer than the limit of a socket's path.
        self.home = self.dir.joinpath(*["x" * 100] * 3)
        self.env["MUSTER_HOME"] = str(self.home)
        job = self.run_detached("name: j\nroles: {worker: {command: 'exec sleep 600'}}\n")
        self.muster("stop", job)
        self.assertEqual(self.show(job)["state"], "Stopped")

    def test_its_content_is_private(self):
        self.muster("run", self.write("job.yaml", self.JOB))
        job = next(self.home.glob("jobs/*"))
        self.assertEqual(job.stat().st_mode & 0o077, 0)
        for path in job.rglob("*"):
            if path.is_file():
                self.assertEqual(path.stat().st_mode & 0o022, 0, path)


if __name__ == "__main__":
    unittest.main()
