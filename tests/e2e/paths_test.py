"""Paths of a job file: storages that only the job's own programs support, home folders and variables."""
import json
import unittest

from support import MusterTest


class PathsTest(MusterTest):
    def output(self, text, **env):
        """Runs a job of one task. Returns the output of the task."""
        job = self.write("job.yaml", text)
        result = self.muster("run", job, env={**self.env, **env})
        self.assertNotIn("could not be sent", result.stderr)
        return [line.split("| ", 1)[-1] for line in self.muster("logs", "j").stdout.splitlines()]

    def test_a_model_dir_of_any_scheme_reaches_the_program(self):
        for url in ("dfs://user/me/", "abfs://c@account.dfs.core.windows.net/x//y/../z", "foo+1://%20?a=b#c"):
            said = self.output(f"""
                name: j
                model_dir: '{url}'
                roles: {{worker: {{command: 'echo {{model_dir}}; echo $MUSTER_MODEL_DIR; echo $TF_CONFIG'}}}}
                """)
            self.assertEqual(said[:2], [url, url])
            self.assertEqual(json.loads(said[2])["model_dir"], url)
            self.assertEqual(json.loads(self.muster("jobs", "--json").stdout)[0]["model_dir"], url)
            doctor = self.muster("doctor", "job.yaml")
            self.assertRegex(doctor.stdout, "model dir +warning +.*not checked")
            self.muster("jobs", "rm", "--yes", "j")

    def test_the_trainer_refuses_an_unknown_scheme(self):
        job = self.write("job.yaml", "name: j\nmodel_dir: foo://x\ntrain: {model: mlp, data: {format: synthetic}, steps: 1}\n")
        result = self.muster("run", job, check=False)
        self.assertEqual(result.returncode, 2)
        self.assertIn("job.yaml:2:12: 'model_dir' has the unknown scheme 'foo'", result.stderr)

    def test_home_folders_and_variables(self):
        home = self.dir / "me"
        (home / "work").mkdir(parents=True)
        said = self.output("""
            name: j
            model_dir: ~/runs/$RUN
            working_dir: ${HOME}/work
            env: {A: "$RUN-1", B: "~/x:~", C: '\\$RUN'}
            roles: {worker: {command: 'mkdir -p {model_dir}; pwd; echo $A $B $C ~'}}
            """, HOME=str(home), RUN="seven")
        self.assertEqual(said, [f"{home}/work", f"seven-1 {home}/x:{home} $RUN {home}"])
        self.assertTrue((home / "runs" / "seven").is_dir())
        self.assertEqual(list(self.dir.rglob("~")), [])

    def test_what_a_shell_would_expand_otherwise_is_refused(self):
        job = self.write("job.yaml", """
            name: j
            model_dir: $NOT_SET/runs
            env: {A: $(date)}
            command: [echo, ~/x]
            roles: {worker: 1}
            """)
        result = self.muster("run", job, check=False)
        self.assertEqual(result.returncode, 2)
        self.assertIn(":3:12: 'model_dir' uses $NOT_SET, which is not set or empty", result.stderr)
        self.assertIn(":4:10: 'A' contains '$('", result.stderr)
        job = self.write("job.yaml", "{name: j, command: [echo, ~/x], roles: {worker: 1}}")
        self.assertIn("'~/x' is passed on as it is", self.muster("run", job).stderr)


if __name__ == "__main__":
    unittest.main()
