"""The reported causes and remedies of task failures."""
import contextlib
import os
import pathlib
import subprocess
import time
import unittest

from support import MUSTER, PYTHON, MusterTest, is_alive, wait_until

MEMORY = pathlib.Path("/sys/fs/cgroup/memory")


class CauseTest(MusterTest):
    def fail(self, role, **kwargs):
        """Runs a job of one role, which fails. Returns muster's output and the first failure."""
        job = self.write("job.yaml", f"name: fails\nroles: {{worker: {{{role}}}}}\npolicies: {{backoff: 0s, max_restarts: 1}}\n")
        result = self.muster("run", job, check=False, **kwargs)
        self.assertEqual(result.returncode, 1)
        return result.stderr, self.jobs()[0]["failure"]["first"]

    def refused(self, role):
        """Returns the error of a job of one role that would certainly fail and is not started."""
        job = self.write("job.yaml", f"name: fails\nroles:\n  worker: {{{role}}}\n")
        result = self.muster("run", job, check=False)
        self.assertEqual(result.returncode, 2, result.stderr)
        self.assertRegex(result.stderr, r"job\.yaml:3:\d+: ")
        self.assertEqual(self.jobs(), [])
        return result.stderr

    def test_a_program_that_does_not_exist(self):
        self.assertIn("command not found: 'no-such-program'", self.refused("command: [no-such-program, x]"))
        self.assertIn("no-such-program", self.refused("command: 'no-such-program x'"))

    def test_a_program_that_is_gone_when_the_task_starts_again(self):
        self.write(".gitignore", "script\n")  # so the job keeps no copy of it
        self.write("script", "#!/bin/sh\nrm script\nexit 200\n").chmod(0o755)
        said, _ = self.fail("command: [./script]")
        self.assertRegex(said, "after 1 restart: command not found: '.*/script' does not exist")

    def test_a_command_that_the_shell_does_not_find(self):
        said, first = self.fail("command: 'cd .; no-such-program x'")
        self.assertIn("command not found", said)
        self.assertIn("no-such-program", "\n".join(first["last_lines"]))

    def test_a_file_that_is_not_executable(self):
        self.write("script", "#!/bin/sh\n")
        self.assertIn("chmod +x", self.refused("command: [./script]"))

    def test_a_script_without_its_first_line(self):
        self.write("script", "echo hi\n").chmod(0o755)
        self.assertIn("#!/bin/sh", self.fail("command: [./script]")[0])

    def test_a_script_whose_interpreter_does_not_exist(self):
        self.write("script", "#!/no/such/interpreter\n").chmod(0o755)
        self.assertIn("interpreter", self.fail("command: [./script]")[0])

    def test_a_directory_as_the_command(self):
        self.assertIn("/tmp", self.refused("command: [/tmp]"))

    def test_a_working_directory_that_does_not_exist(self):
        self.assertIn("nowhere is not a directory", self.refused("command: 'true', working_dir: nowhere"))

    def test_a_working_directory_that_is_a_file(self):
        self.write("file", "x")
        self.assertIn("file is not a directory", self.refused("command: 'true', working_dir: file"))

    def test_a_working_directory_that_is_gone_when_the_task_starts_again(self):
        (self.dir / "gone").mkdir()
        said, _ = self.fail("command: 'rmdir ../gone; exit 200', working_dir: gone")
        self.assertIn("working directory", said)
        self.assertIn("gone", said)

    def test_a_signal(self):
        said, first = self.fail("command: 'kill -SEGV $$'")
        self.assertIn("SIGSEGV", said)
        self.assertEqual(first["exit_code"], 139)

    def test_a_python_exception(self):
        _, first = self.fail(f"""command: [{PYTHON}, -c, "raise ValueError('bad shape')"]""")
        self.assertIn("ValueError: bad shape", first["cause"])

    def test_the_error_file_of_torch_elastic(self):
        self.write("rank.py", """
            import json, os, sys
            error = {"message": {"message": "RuntimeError: NCCL is unhappy", "extraInfo": {"timestamp": "1"}}}
            json.dump(error, open(os.environ["TORCHELASTIC_ERROR_FILE"], "w"))
            print("some noise after it")
            sys.exit(1)
            """)
        said, first = self.fail(f"command: [{PYTHON}, rank.py]")
        self.assertIn("RuntimeError: NCCL is unhappy", first["cause"])
        self.assertIn("NCCL is unhappy", said)

    def test_a_malformed_error_file(self):
        for content in (b"", b"{", b"[1]", b'{"message": 3}', b'{"message": {"message": []}}', b"\xff\x00" * 100, b'{"message": "\xff"}'):
            (self.dir / "error").write_bytes(content)
            _, first = self.fail("command: 'cp error \"$TORCHELASTIC_ERROR_FILE\"; exit 3'")
            self.assertIn("exit code 3", first["cause"])

    def test_an_error_file_that_is_not_a_regular_file(self):
        for make in ("mkfifo", "mkdir", "ln -s /dev/zero"):
            _, first = self.fail(f"command: '{make} \"$TORCHELASTIC_ERROR_FILE\"; exit 3'", timeout=60)
            self.assertEqual(first["cause"], "exit code 3")

    def test_out_of_memory(self):
        if os.geteuid() != 0 or not os.access(MEMORY / "cgroup.procs", os.W_OK):
            self.skipTest("needs root and the memory controller of cgroup v1")
        group = MEMORY / self.dir.name
        group.mkdir()

        def remove():
            with contextlib.suppress(OSError):
                group.rmdir()
            return not group.exists()

        self.addCleanup(wait_until, remove, "the memory cgroup is empty", 30)
        (group / "memory.limit_in_bytes").write_text(str(96 << 20))
        with contextlib.suppress(OSError):  # without swap accounting there is no such file
            (group / "memory.memsw.limit_in_bytes").write_text(str(96 << 20))
        job = self.write("job.yaml", f"""
            name: hungry
            roles: {{worker: {{command: [{PYTHON}, -c, "x = [bytearray(1 << 20) for _ in range(400)]"]}}}}
            policies: {{max_restarts: 0}}
            """)
        result = subprocess.run(["/bin/sh", "-c", f"echo $$ > '{group}/cgroup.procs' && exec '{MUSTER}' run '{job}'"],
                                cwd=self.dir, env=self.env, capture_output=True, text=True, timeout=120)
        self.assertEqual(result.returncode, 1)
        self.assertIn("out of memory", result.stderr)
        self.assertIn("smaller batch", result.stderr)


class ReportTest(MusterTest):
    def test_the_first_failure_is_named_everywhere(self):
        run = self.start("run", self.write("job.yaml", """
            name: pair
            roles: {worker: {replicas: 2, command: '[ {index} = 0 ] || kill -KILL $$; until [ -e go ]; do sleep 0.05; done; exit 1'}}
            policies: {backoff: 10m, max_backoff: 10m}
            """))
        wait_until(lambda: self.jobs() and "worker:1 failed: killed by SIGKILL" in self.events("pair"), "worker:1 is dead")
        self.write("go", "")
        said = run.communicate(timeout=60)[1]
        record = self.jobs()[0]
        self.assertEqual(record["failure"]["first"]["task"], "worker:1")
        self.assertEqual(record["reason"], "worker:1 failed: killed by SIGKILL")
        self.assertEqual(record["failure"]["summary"], record["reason"])
        self.assertRegex(said, r"pair-\w+ Failed after \S+: worker:1 failed: killed by SIGKILL\n")
        self.assertIn("worker:1 failed: killed by SIGKILL", self.muster("jobs").stdout)
        self.assertIn("  not restarted  worker:0: exit code 1 is final under `restart: exit-code`", said)

    def test_the_pytorch_starter_restarts_after_an_exception(self):
        self.write("train.py", """
            import os, pathlib
            if os.environ["MUSTER_ATTEMPT"] == "0" and os.environ["RANK"] == "1":
                raise ValueError("bad luck")
            """)
        job = self.run_detached(self.muster("init", "pytorch").stdout)
        self.assertEqual(self.wait_state(job, "Succeeded", "Failed")["state"], "Succeeded")
        self.assertEqual(self.task(job, "worker:1")["restarts"], 1)


class WatchdogTest(MusterTest):
    def test_a_stalled_task_leaves_its_stacks_and_starts_again(self):
        job = self.run_detached("""
            name: stalls
            roles: {worker: {command: 'echo attempt {attempt}; [ {attempt} = 1 ] || exec sleep 600'}}
            policies: {stall: 1s, backoff: 0s}
            """)
        state = self.wait_state(job, "Succeeded", "Failed", timeout=90)
        self.assertEqual(state["state"], "Succeeded", state["reason"])
        self.assertEqual(self.task(job, "worker:0")["restarts"], 1)
        stall = next(event for event in self.events(job) if "stalled" in event)
        path = pathlib.Path(stall.split("stacks in ")[1])
        text = path.read_text()
        self.assertRegex(text, r"process \d+: sleep 600")
        self.assertRegex(text, r"thread \d+ sleep: waits in")

    def test_report_only(self):
        job = self.run_detached("""
            name: stalls
            roles: {worker: {command: 'echo up; until [ -e go ]; do sleep 0.05; done'}}
            policies: {stall: {timeout: 1s, action: report}}
            """)
        wait_until(lambda: any("stalled" in event for event in self.events(job)), "it is reported", 90)
        self.assertEqual(self.task(job, "worker:0")["restarts"], 0)
        self.write("go", "")
        self.wait_state(job, "Succeeded", timeout=90)

    def test_output_and_steps_are_progress(self):
        job = self.run_detached("""
            name: moves
            roles:
              worker: {replicas: 2, command: 'for i in 1 2 3 4 5 6 7 8; do if [ {index} = 0 ]; then echo $i; else echo $i > "$MUSTER_PROGRESS_FILE"; fi; sleep 0.5; done'}
            policies: {stall: 2s, success: all_workers}
            """)
        self.assertEqual(self.wait_state(job, "Succeeded", "Failed")["state"], "Succeeded")
        self.assertEqual([event for event in self.events(job) if "stalled" in event], [])

    def test_the_deadline(self):
        job = self.run_detached("name: slow\nroles: {worker: {replicas: 2, command: 'exec sleep 600'}}\npolicies: {deadline: 1s}\n")
        self.wait_state(job, "Running", "Failed")
        pids = [pid for pid in self.pids(job).values() if pid]
        state = self.wait_state(job, "Failed")
        self.assertIn("deadline of 1s passed", state["reason"])
        self.assertFalse(any(is_alive(pid) for pid in pids))


class RestartTest(MusterTest):
    def measure(self, pid):
        status = pathlib.Path(f"/proc/{pid}/status").read_text()
        resident = int(next(line for line in status.splitlines() if line.startswith("VmRSS")).split()[1])
        # Descriptors that are open only while a change is written do not count.
        files = min(len(os.listdir(f"/proc/{pid}/fd")) for _ in range(50) if not time.sleep(0.01))
        return files, resident

    def test_1000_fast_restarts_leak_nothing(self):
        job = self.run_detached("""
            name: flaps
            roles:
              worker:
                command: |
                  case {attempt} in
                    100|1000) echo x > at.{attempt}; until [ -e go.{attempt} ]; do sleep 0.05; done;;
                  esac
                  for i in 1 2 3 4 5 6 7 8 9 10; do printf "%01500d\\n" $i; done
                  [ {attempt} -ge 1000 ] || exit 200
            policies: {backoff: 0s, max_restarts: 1000}
            """)
        self.wait_file("at.100", 100)
        supervisor = self.show(job)["supervisor_pid"]
        files, memory = self.measure(supervisor)
        self.write("go.100", "")
        self.wait_file("at.1000", 170)
        files_after, memory_after = self.measure(supervisor)
        self.write("go.1000", "")
        self.assertEqual(self.wait_state(job, "Succeeded", "Failed")["state"], "Succeeded")
        self.assertEqual(self.task(job, "worker:0")["restarts"], 1000)
        self.assertLessEqual(files_after, files + 1)
        self.assertLess(memory_after, memory + 4096, "KiB")

    def test_the_report_of_many_failures_stays_readable(self):
        result = self.muster("run", self.write("job.yaml", """
            name: flaps
            roles: {worker: {command: 'exit 200'}}
            policies: {backoff: 0s, max_restarts: 200}
            """), check=False)
        self.assertEqual(result.returncode, 1)
        report = result.stderr[result.stderr.index("first failure"):]
        self.assertLess(len(report.splitlines()), 60)


if __name__ == "__main__":
    unittest.main()
