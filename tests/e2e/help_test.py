"""Help, usage errors, starter files, completions."""
import re
import subprocess
import unittest

from support import MUSTER, MusterTest

COMMANDS = ["init", "run", "render", "dashboard", "notebook", "operator", "show", "jobs", "top", "logs", "stop", "wait", "compare", "resume", "evaluate", "explain", "predict", "env", "data", "doctor", "checkpoint", "storage", "help", "completion"]


class HelpTest(MusterTest):
    def test_help_lists_every_command(self):
        text = self.muster("--help").stdout
        for command in COMMANDS:
            self.assertRegex(text, rf"(?m)^ +{command} +\S")
        self.assertNotIn("supervise", text)

    def test_help_of_each_command(self):
        for command in COMMANDS:
            by_flag, by_help = self.muster(command, "--help").stdout, self.muster("help", command).stdout
            self.assertIn(command, by_flag)
            self.assertIn(command, by_help)
        self.assertIn("--keep", self.muster("help", "jobs", "prune").stdout)
        result = self.muster("help", "jbos", check=False)
        self.assertEqual(result.returncode, 2)
        self.assertIn("did you mean 'jobs'", result.stderr)

    def test_help_alone_lists_the_commands(self):
        self.assertEqual(self.muster("help").stdout.strip(), self.muster("--help").stdout.strip())

    def test_options_of_one_platform_stand_under_its_name(self):
        for words in (["run", "--help"], ["help", "run"]):
            parts = re.split(r"(?m)^(\S.*):$", self.muster(*words).stdout)
            options = {heading: re.findall(r"--[a-z-]+", text) for heading, text in zip(parts[1::2], parts[2::2])}
            self.assertIn("--detach", options["Options"])
            self.assertEqual(options["On hosts over SSH (--on ssh)"], ["--hosts"])
            self.assertEqual(options["On Kubernetes (--on kubernetes)"], ["--namespace", "--context", "--trainer-image"])
            self.assertIn("--scale-tier", options["On Vertex AI (--on vertex)"])
            self.assertNotIn("--scale-tier", options["Options"])
        manual = self.muster("help", "--man").stdout
        self.assertLess(manual.index("On Kubernetes (\\-\\-on kubernetes):"), manual.index("trainer\\-image"))

    def test_version(self):
        self.assertRegex(self.muster("--version").stdout, r"\d+\.\d+\.\d+")

    def test_wrong_usage_exits_2_and_helps(self):
        for args, text in ((["rnu"], "did you mean 'run'"), (["run"], "FILE"), (["run", "--deatch", "x"], "--deatch"),
                           (["stop"], "JOB"), (["logs", "x", "--tail", "many"], "many"), ([], ""),
                           (["show", "a", "b"], "b"), (["init", "tensorlow"], "tensorflow")):
            result = self.muster(*args, check=False)
            self.assertEqual(result.returncode, 2, args)
            self.assertIn(text, result.stderr, args)
            self.assertEqual(result.stdout, "", args)

    def test_numbers(self):
        for args, text in ((["jobs", "prune", "--keep", "x"], "--keep: 'x' must be a whole number, 0 or more"),
                           (["resume", "x", "--from", "-3"], "--from: '-3' must be a whole number, 0 or more"),
                           (["logs", "x", "--tail", "99999999999"], "--tail: 99999999999 is too large")):
            result = self.muster(*args, check=False)
            self.assertEqual(result.returncode, 2, args)
            self.assertIn(text, result.stderr)
            self.assertLess(len(result.stderr), 150)

    def test_a_nested_command_is_named_in_full(self):
        self.assertIn("`muster help jobs prune`", self.muster("jobs", "prune", "--kep", check=False).stderr)
        for args in (["help", "jobs", "prune"], ["jobs", "prune", "--help"]):
            self.assertIn("muster jobs prune [OPTIONS]", self.muster(*args).stdout, args)
        self.assertIn("muster jobs [OPTIONS]", self.muster("help", "jobs").stdout)

    def test_help_needs_no_working_directory(self):
        gone = self.dir / "gone"
        gone.mkdir()
        def there(*args):
            script = 'cd "$0" && rmdir "$0" && "$@"; code=$?; mkdir "$0"; exit $code'
            return subprocess.run(["/bin/sh", "-c", script, gone, MUSTER, *args], env=self.env, capture_output=True,
                                  text=True, timeout=60)
        for args in (["help"], ["--version"], ["jobs"], ["doctor"]):
            result = there(*args)
            self.assertEqual(result.returncode, 0, result.stderr)
        job = self.write("job.yaml", "name: j\nroles: {worker: {command: 'true'}}\n")
        for args in (["run", job], ["env", job, "worker"], ["doctor", job]):
            result = there(*args)
            self.assertEqual(result.returncode, 1, args)
            self.assertIn("the current directory no longer exists", result.stderr)

    def test_help_needs_no_home(self):
        env = {"PATH": "/usr/bin:/bin", "MUSTER_HOME": "/proc/nowhere"}
        self.assertIn("Usage", subprocess.run([MUSTER, "--help"], env=env, capture_output=True, text=True, timeout=60).stdout)
        self.assertFalse(self.home.exists())


class InitTest(MusterTest):
    def test_each_starter_is_a_valid_file(self):
        for kind in ("mnist", "pytorch", "tensorflow", "custom"):
            job = self.write(f"{kind}.yaml", self.muster("init", kind).stdout)
            self.assertIn("#", job.read_text())
            self.assertIn("worker:0", self.muster("run", "--dry-run", job).stdout, kind)

    def test_the_custom_starter_runs_as_it_is(self):
        result = self.muster("run", self.write("job.yaml", self.muster("init").stdout))
        self.assertRegex(result.stdout, r"worker:1 \| task worker:1 is rank 1 of 2")


class CompletionTest(MusterTest):
    def candidates(self, *words):
        return self.muster("completion", "--candidates", "--", *words, check=False).stdout.split()

    def test_commands(self):
        self.assertEqual(self.candidates("res"), ["resume"])
        self.assertEqual(sorted(self.candidates("")), sorted(COMMANDS))

    def test_options(self):
        self.assertEqual(set(self.candidates("logs", "job", "--")) - {"--help"}, {"--follow", "--job-id", "--tail", "--since", "--grep", "--attempt", "--timestamps", "--json", "--on", "--namespace", "--context",
                          "--project", "--region", "--polling-interval"})
        self.assertEqual(self.candidates("jobs", "prune", "--k"), ["--keep"])

    def test_kinds_and_topics(self):
        self.assertEqual(sorted(self.candidates("init", "")), ["custom", "mnist", "pytorch", "tensorflow"])
        self.assertEqual(self.candidates("help", "do"), ["doctor"])

    def test_jobs(self):
        self.muster("run", self.write("job.yaml", "name: train\nroles: {worker: {command: 'true'}}\n"))
        job = self.jobs()[0]["id"]
        for command in ("show", "logs", "stop", "wait", "resume", "evaluate", "predict", "env"):
            self.assertEqual(sorted(self.candidates(command, "tr")), ["train", job], command)

    def test_bash_completes(self):
        self.muster("run", self.write("job.yaml", "name: train\nroles: {worker: {command: 'true'}}\n"))
        self.write("script.bash", self.muster("completion", "bash").stdout)

        def complete(*words):
            line = " ".join(f"'{word}'" for word in words)
            script = (f"muster() {{ '{MUSTER}' \"$@\"; }}; . ./script.bash; COMP_WORDS=({line}); "
                      f"COMP_CWORD={len(words) - 1}; compopt() {{ :; }}; _muster; printf '%s\\n' \"${{COMPREPLY[@]}}\"")
            return subprocess.run(["/bin/bash", "-c", script], cwd=self.dir, env=self.env, capture_output=True, text=True,
                                  timeout=60, check=True).stdout.split()

        self.assertEqual(complete("muster", "do"), ["doctor"])
        self.assertIn("train", complete("muster", "logs", "tra"))
        self.assertEqual(complete("muster", "jobs", "prune", "--kee"), ["--keep"])

    def test_an_unknown_shell(self):
        self.assertEqual(self.muster("completion", "tcsh", check=False).returncode, 2)
        for shell in ("bash", "zsh", "fish"):
            self.assertIn("muster completion", self.muster("completion", shell).stdout)


if __name__ == "__main__":
    unittest.main()
