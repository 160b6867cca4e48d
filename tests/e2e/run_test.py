"""muster run: from the file to the verdict."""
import json
import unittest

from support import MusterTest, wait_until


class RunTest(MusterTest):
    def test_success_merges_the_output_with_prefixes_and_exits_0(self):
        job = self.write("job.yaml", """
            name: good
            roles:
              chief: {command: 'echo from the chief; echo and its errors >&2'}
              worker: {replicas: 2, command: 'echo from worker {index}'}
            policies: {success: all_workers}
            """)
        result = self.muster("run", job)
        lines = set(result.stdout.splitlines())
        self.assertEqual(lines, {"chief:0  | from the chief", "chief:0  | and its errors",
                                 "worker:0 | from worker 0", "worker:1 | from worker 1"})
        self.assertRegex(result.stderr, r"good-\w{5} Succeeded after ")
        self.assertEqual(self.jobs()[0]["state"], "Succeeded")

    def test_output_in_a_pipe_has_no_colours_and_no_cursor_moves(self):
        result = self.muster("run", self.write("job.yaml", "name: j\nroles: {worker: {command: 'echo x'}}\n"))
        self.assertNotIn("\x1b", result.stdout + result.stderr)

    def test_a_closed_pipe_does_not_hide_the_failure(self):
        run = self.start("run", self.write("job.yaml", """
            name: unread
            roles: {worker: {command: 'echo one; until [ -e go ]; do echo more; sleep 0.05; done; exit 3'}}
            """))
        self.assertIn("one", run.stdout.readline())
        run.stdout.close()
        self.wait_state("unread", "Running")
        self.write("go", "")
        self.assertEqual(run.wait(60), 1)
        self.assertIn("Failed", run.stderr.read())

    def test_failure_exits_1_and_reports_the_first_failure(self):
        job = self.write("job.yaml", """
            name: bad
            roles:
              chief: {command: 'sleep 600'}
              worker: {command: 'echo line one; echo the reason >&2; exit 3'}
            """)
        result = self.muster("run", job, check=False)
        self.assertEqual(result.returncode, 1)
        self.assertRegex(result.stderr, r"bad-\w{5} Failed after .*: worker:0 failed: exit code 3")
        self.assertRegex(result.stderr, r"first failure +worker:0 \(attempt 1\)")
        self.assertRegex(result.stderr, r"cause +exit code 3")
        self.assertIn("| line one", result.stderr)
        self.assertIn("| the reason", result.stderr)
        self.assertRegex(result.stderr, r"also ended\n +chief:0: stopped by muster")
        self.assertRegex(result.stderr, r"muster logs bad-\w{5} worker:0")

    def test_the_first_failure_is_distinguished_from_its_victims(self):
        job = self.write("job.yaml", """
            name: bad
            roles:
              worker:
                replicas: 3
                command: 'trap "echo interrupted; exit 9" TERM; if [ {index} = 1 ]; then exit 7; fi; sleep 600 & wait'
            """)
        result = self.muster("run", job, check=False)
        self.assertRegex(result.stderr, r"first failure +worker:1")
        report = self.jobs()[0]["failure"]
        self.assertEqual(report["first"]["task"], "worker:1")
        self.assertEqual(report["victims"], ["worker:0, worker:2: stopped by muster"])

    def test_detached_returns_while_the_job_runs(self):
        job = self.write("job.yaml", "name: slow\nroles: {worker: {command: 'until [ -e go ]; do sleep 0.05; done'}}\n")
        said = self.muster("run", "-d", job).stdout
        self.assertRegex(said, r"Started slow-\w{5} in the background")
        for useful in ("muster show", "muster logs -f", "muster stop"):
            self.assertIn(useful, said)
        self.assertIn(self.jobs()[0]["state"], ("Starting", "Running"))
        self.write("go", "")
        self.wait_state("slow", "Succeeded")

    def test_a_file_from_standard_input(self):
        result = self.muster("run", "-", input="name: piped\nroles: {worker: {command: 'echo hi'}}\n")
        self.assertIn("worker:0 | hi", result.stdout)

    def test_the_verdict_is_the_chiefs_and_ps_ends_with_it(self):
        job = self.run_detached("""
            name: led
            roles:
              chief: {command: 'sleep 0.2'}
              ps: {replicas: 2, command: 'exec sleep 600'}
            """)
        state = self.wait_state(job, "Succeeded", "Failed")
        self.assertEqual(state["state"], "Succeeded")
        self.assertEqual([t["state"] for t in state["tasks"]], ["Succeeded", "Stopped", "Stopped"])

    def test_workers_may_finish_after_the_chief_within_the_grace(self):
        job = self.run_detached("""
            name: led
            roles:
              chief: {command: 'exit 0'}
              worker: {command: 'until [ -e go ]; do sleep 0.05; done; echo saved'}
            """)
        wait_until(lambda: self.task(job, "chief:0")["state"] == "Succeeded", "the chief has ended")
        self.write("go", "")
        state = self.wait_state(job, "Succeeded")
        self.assertEqual([t["state"] for t in state["tasks"]], ["Succeeded", "Succeeded"])
        self.assertEqual(self.log(job, "worker:0"), b"saved\n")

    def test_all_workers_must_succeed_when_that_is_the_policy(self):
        job = self.run_detached("""
            name: all
            roles:
              worker: {replicas: 2, command: 'if [ {index} = 0 ]; then exit 0; fi; until [ -e go ]; do sleep 0.05; done'}
            policies: {success: all_workers}
            """)
        wait_until(lambda: self.task(job, "worker:0")["state"] == "Succeeded", "worker:0 has ended")
        self.assertEqual(self.show(job)["state"], "Running")
        self.write("go", "")
        self.wait_state(job, "Succeeded")

    def test_environment_variables_of_common_launchers(self):
        self.muster("run", self.write("job.yaml", """
            name: vars
            model_dir: out
            env: {SHARED: job, WHICH: job}
            roles:
              worker:
                replicas: 2
                env: {WHICH: "role {index}"}
                command: 'env > env.{index}; echo "{name} {role} {index} {rank} {world_size} {replicas} {port} {model_dir} {attempt}" > args.{index}'
            """))
        seen = dict(line.split("=", 1) for line in (self.dir / "env.1").read_text().splitlines() if "=" in line)
        other = dict(line.split("=", 1) for line in (self.dir / "env.0").read_text().splitlines() if "=" in line)
        self.assertEqual((seen["RANK"], seen["WORLD_SIZE"], seen["LOCAL_RANK"]), ("1", "2", "1"))
        self.assertEqual(seen["MASTER_ADDR"], "127.0.0.1")
        self.assertEqual(seen["MASTER_PORT"], other["MASTER_PORT"])
        self.assertEqual((seen["JAX_NUM_PROCESSES"], seen["JAX_PROCESS_ID"]), ("2", "1"))
        self.assertEqual((seen["SHARED"], seen["WHICH"]), ("job", "role 1"))
        self.assertEqual(seen["MUSTER_MODEL_DIR"], str(self.dir / "out"))
        config = json.loads(seen["TF_CONFIG"])
        self.assertEqual(config["task"], {"type": "worker", "index": 1})
        self.assertEqual(config["cluster"], json.loads(other["TF_CONFIG"])["cluster"])
        words = (self.dir / "args.1").read_text().split()
        port = config["cluster"]["worker"][1].split(":")[1]
        self.assertEqual(words, ["vars", "worker", "1", "1", "2", "2", port, str(self.dir / "out"), "0"])

    def test_a_task_runs_in_the_directory_of_the_call(self):
        self.muster("run", self.write("job.yaml", "name: j\nroles: {worker: {command: 'pwd > where'}}\n"))
        self.assertEqual((self.dir / "where").read_text().strip(), str(self.dir))

    def test_threads_are_divided_among_tasks_by_default(self):
        text = "name: j\nroles: {worker: {replicas: 2, command: 'echo $OMP_NUM_THREADS'}}\n"
        shared = self.muster("run", self.write("job.yaml", text)).stdout
        self.assertRegex(shared, r"worker:0 \| [1-9]\d*\n")
        self.env["OMP_NUM_THREADS"] = "17"
        self.assertIn("worker:0 | 17\n", self.muster("run", self.dir / "job.yaml").stdout)
        in_file = "name: j\nenv: {OMP_NUM_THREADS: 5}\nroles: {worker: {command: 'echo $OMP_NUM_THREADS'}}\n"
        self.assertIn("worker:0 | 5\n", self.muster("run", self.write("job.yaml", in_file)).stdout)


class RestartTest(MusterTest):
    # Fails with `code` until it has been started `times` times.
    def failing(self, code, times, policies="", role="", name="again"):
        return f"""
            name: {name}
            roles:
              worker: {{command: 'echo attempt {{attempt}}; echo x >> tries; [ $(wc -l < tries) -gt {times} ] || exit {code}'{role}}}
            policies: {{backoff: 0s{policies}}}
            """

    def tries(self):
        return len((self.dir / "tries").read_text().splitlines())

    def test_codes_of_128_and_above_are_retried(self):
        result = self.muster("run", self.write("job.yaml", self.failing(130, 2)))
        self.assertEqual(self.tries(), 3)
        self.assertIn("worker:0 | attempt 2", result.stdout)
        self.assertEqual(self.task("again", "worker:0")["restarts"], 2)

    def test_codes_below_128_are_final(self):
        self.assertEqual(self.muster("run", self.write("job.yaml", self.failing(127 - 2, 2)), check=False).returncode, 1)
        self.assertEqual(self.tries(), 1)

    def test_a_signal_is_retried(self):
        self.muster("run", self.write("job.yaml", """
            name: again
            roles: {worker: {command: 'if [ -e tried ]; then exit 0; fi; touch tried; kill -SEGV $$'}}
            policies: {backoff: 0s}
            """))
        self.assertEqual(self.task("again", "worker:0")["restarts"], 1)
        self.assertIn("worker:0 failed: killed by SIGSEGV", "\n".join(self.events("again")))

    def test_on_failure_retries_any_code(self):
        self.muster("run", self.write("job.yaml", self.failing(1, 2, role=", restart: on-failure")))
        self.assertEqual(self.tries(), 3)

    def test_restart_never_does_not_retry(self):
        result = self.muster("run", self.write("job.yaml", self.failing(200, 2, role=", restart: never")), check=False)
        self.assertEqual((result.returncode, self.tries()), (1, 1))

    def test_restart_always_restarts_a_ps_that_exited(self):
        job = self.run_detached("""
            name: again
            roles:
              chief: {command: 'until [ -e go ]; do sleep 0.05; done'}
              ps: {command: 'echo x >> tries; if [ $(wc -l < tries) = 1 ]; then exit 0; fi; exec sleep 600', restart: always}
            policies: {backoff: 0s}
            """)
        wait_until(lambda: self.task(job, "ps:0")["restarts"] == 1 and self.task(job, "ps:0")["state"] == "Running",
                   "the ps runs again")
        self.write("go", "")
        self.assertEqual(self.wait_state(job, "Succeeded", "Failed")["state"], "Succeeded")

    def test_the_limit_ends_the_job(self):
        result = self.muster("run", self.write("job.yaml", self.failing(200, 100, ", max_restarts: 2")), check=False)
        self.assertEqual((result.returncode, self.tries()), (1, 3))
        self.assertIn("failed after 2 restarts: exit code 200", result.stderr)

    def test_the_whole_job_restarts_when_that_is_its_scope(self):
        self.muster("run", self.write("job.yaml", """
            name: again
            roles:
              worker:
                replicas: 2
                command: 'echo "$MUSTER_ATTEMPT" >> tries.{index}; if [ {index}{attempt} = 00 ]; then until [ -e tries.1 ]; do sleep 0.01; done; exit 200; fi; if [ {attempt} = 0 ]; then exec sleep 600; fi'
            policies: {restart_scope: job, backoff: 0s}
            """))
        self.assertEqual((self.dir / "tries.0").read_text(), "0\n1\n")
        self.assertEqual((self.dir / "tries.1").read_text(), "0\n1\n")

    def test_the_wait_between_restarts_doubles(self):
        self.muster("run", self.write("job.yaml", """
            name: again
            roles: {worker: {command: 'date +%s.%N >> tries; [ $(wc -l < tries) -gt 3 ] || exit 200'}}
            policies: {backoff: 200ms, max_backoff: 400ms}
            """))
        times = [float(line) for line in (self.dir / "tries").read_text().split()]
        waits = [b - a for a, b in zip(times, times[1:])]
        for wait, least in zip(waits, (0.2, 0.4, 0.4)):
            self.assertGreaterEqual(wait, least)

    def test_torch_gets_the_number_of_restarts(self):
        result = self.muster("run", self.write("job.yaml", """
            name: again
            roles: {worker: {command: 'echo "$TORCHELASTIC_RESTART_COUNT of $TORCHELASTIC_MAX_RESTARTS"; [ {attempt} = 1 ] || exit 200'}}
            policies: {backoff: 0s}
            """))
        self.assertIn("worker:0 | 0 of 3\n", result.stdout)
        self.assertIn("worker:0 | 1 of 3\n", result.stdout)


class InvalidFileTest(MusterTest):
    def mistakes(self, text):
        result = self.muster("run", self.write("job.yaml", text), check=False)
        self.assertEqual(result.returncode, 2, result.stderr)
        self.assertEqual(self.jobs(), [])
        return result.stderr

    def test_all_mistakes_are_reported_together_with_positions(self):
        said = self.mistakes("""\
            name: Bad_Name
            roles:
              worker: {replica: 2, restart: onfailure, command: x}
              chief: {replicas: -1, command: x}
            polices: {}
            """)
        self.assertIn("job.yaml:1:7:", said)
        self.assertRegex(said, r"job.yaml:3:12: unknown key 'replica'.*did you mean 'replicas'")
        self.assertRegex(said, r"job.yaml:3:33: .*never \| on-failure \| always \| exit-code")
        self.assertRegex(said, r"job.yaml:4:21: .*-1")
        self.assertRegex(said, r"job.yaml:5:1: unknown key 'polices'.*did you mean 'policies'")

    def test_duplicate_keys(self):
        said = self.mistakes("name: a\nroles:\n  worker: {command: x}\n  worker: {command: y}\n")
        self.assertIn("job.yaml:4:3:", said)
        self.assertIn("worker", said)

    def test_wrong_types(self):
        said = self.mistakes("name: [a]\nroles: 3\n")
        self.assertIn("job.yaml:1:7:", said)
        self.assertIn("job.yaml:2:8:", said)

    def test_two_chiefs(self):
        self.assertRegex(self.mistakes("name: a\nroles: {chief: {replicas: 2, command: x}}\n"), r"job.yaml:2:\d+: .*chief")
        self.assertRegex(self.mistakes("name: a\nroles: {chief: {command: x}, master: {command: x}}\n"), "master")

    def test_too_many_replicas(self):
        said = self.mistakes("name: a\nroles: {worker: {replicas: 100000, command: x}}\n")
        self.assertRegex(said, r"job.yaml:2:28: .*4096")

    def test_missing_command(self):
        said = self.mistakes("name: a\nroles: {worker: {replicas: 1}}\n")
        self.assertIn("command", said)

    def test_not_yaml(self):
        self.assertRegex(self.mistakes("name: [\n"), r"job.yaml:\d+:\d+:")
        self.assertRegex(self.mistakes(""), r"job.yaml")

    def test_hostile_files_end_in_an_error(self):
        bomb = "a: &a [x,x,x,x,x,x,x,x,x,x]\n" + "".join(
            f"{chr(98 + i)}: &{chr(98 + i)} [{','.join(['*' + chr(97 + i)] * 10)}]\n" for i in range(9))
        self.mistakes(bomb)
        self.mistakes("[" * 100000)
        self.mistakes("name: " + "x" * (5 << 20))

    def test_not_utf8(self):
        (self.dir / "job.yaml").write_bytes(b"name: \xff\xfe\n")
        self.assertEqual(self.muster("run", self.dir / "job.yaml", check=False).returncode, 2)

    def test_a_missing_file(self):
        result = self.muster("run", "nowhere.yaml", check=False)
        self.assertEqual(result.returncode, 2)
        self.assertIn("nowhere.yaml", result.stderr)

    def test_a_directory_instead_of_a_file(self):
        self.assertEqual(self.muster("run", ".", check=False).returncode, 2)

    def test_an_unknown_platform(self):
        job = self.write("job.yaml", "name: a\nroles: {worker: {command: x}}\n")
        result = self.muster("run", "--on", "locale", job, check=False)
        self.assertEqual(result.returncode, 2)
        self.assertIn("did you mean 'local'", result.stderr)


class DryRunTest(MusterTest):
    def test_shows_the_plan_and_does_nothing(self):
        job = self.write("job.yaml", "name: plan\nroles: {worker: {replicas: 2, command: 'touch ran; echo {index}'}}\n")
        said = self.muster("run", "--dry-run", job).stdout
        for text in ("worker:0", "worker:1", "touch ran", str(self.dir)):
            self.assertIn(text, said)
        self.assertFalse((self.dir / "ran").exists())
        self.assertEqual(self.jobs(), [])
        self.assertEqual(list(self.home.glob("jobs/*")), [])

    def test_finds_mistakes(self):
        self.assertEqual(self.muster("run", "--dry-run", self.write("job.yaml", "name: a\n"), check=False).returncode, 2)


if __name__ == "__main__":
    unittest.main()
