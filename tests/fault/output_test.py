"""The output of tasks is stored byte for byte."""
import hashlib
import json
import pathlib
import unittest

from support import PYTHON, MusterTest, wait_until


class OutputTest(MusterTest):
    def run_script(self, script, replicas=1, policies="", check=True, **kwargs):
        self.write("task.py", script)
        job = self.write("job.yaml", f"""
            name: loud
            roles: {{worker: {{replicas: {replicas}, command: [{PYTHON}, task.py, "{{index}}"]}}}}
            policies: {{{policies}}}
            """)
        return self.muster("run", job, check=check, **kwargs)

    def stored(self, task="worker-0"):
        logs = next(self.home.glob("jobs/*")) / "logs"
        rotated = sorted(logs.glob(f"{task}.log.*"), key=lambda path: int(path.suffix[1:]))
        return b"".join(path.read_bytes() for path in [*rotated, logs / f"{task}.log"])

    def test_any_bytes(self):
        self.run_script("""
            import os
            os.write(1, bytes(range(256)) * 3 + b"\\r\\xff\\xfe\\x00\\n" + b"\\xe2\\x82")
            """)
        self.assertEqual(self.stored(), bytes(range(256)) * 3 + b"\r\xff\xfe\x00\n" + b"\xe2\x82")
        for line in self.muster("logs", "loud", "--json").stdout.splitlines():
            json.loads(line)

    def test_100_mb_without_a_newline(self):
        result = self.run_script("""
            import os
            for i in range(100):
                data = bytes([97 + i % 26]) * (1 << 20)
                while data:
                    data = data[os.write(1, data):]
            """, timeout=170)
        stored = self.stored()
        self.assertEqual(len(stored), 100 << 20)
        expected = hashlib.sha256(b"".join(bytes([97 + i % 26]) * (1 << 20) for i in range(100))).digest()
        self.assertEqual(hashlib.sha256(stored).digest(), expected)
        shown = "".join(line.removeprefix("worker:0 | ") for line in result.stdout.splitlines())
        self.assertEqual(len(shown), 100 << 20)
        self.assertLessEqual(len(self.muster("logs", "loud", "--tail", "1").stdout), (1 << 20) + 100)

    def test_the_last_output_of_killed_tasks(self):
        self.run_script("""
            import os, signal, sys
            os.write(1, b"x" * 30000 + b"\\nlast words of " + sys.argv[1].encode())
            os.kill(os.getpid(), signal.SIGKILL)
            """, replicas=16, policies="restart: never, success: all_workers", check=False)
        # The first death ends the job. The others may be killed, but their output is complete.
        first = self.jobs()[0]["failure"]["first"]
        self.assertEqual(first["last_lines"][-1], f"last words of {first['task'].split(':')[1]}")
        self.assertTrue(self.stored(first["task"].replace(":", "-")).endswith(b"last words of " + first["task"].split(":")[1].encode()))

    def test_output_of_many_tasks_is_complete(self):
        result = self.run_script("""
            import sys
            for i in range(2000):
                print(f"{sys.argv[1]} line {i}", flush=i % 7 == 0)
            """, replicas=8, policies="success: all_workers")
        lines = result.stdout.splitlines()
        self.assertEqual(len(lines), 16000)
        for index in range(8):
            mine = [line.split("| ")[1] for line in lines if line.startswith(f"worker:{index} ")]
            self.assertEqual(mine, [f"{index} line {i}" for i in range(2000)])

    def test_a_task_that_closes_its_output(self):
        job = self.run_detached("""
            name: silent
            roles: {worker: {command: 'echo before; exec >&- 2>&-; until [ -e go ]; do sleep 0.05; done; exit 5'}}
            """)
        self.wait_state(job, "Running")
        wait_until(lambda: self.log(job, "worker:0"), "it has spoken")
        supervisor = self.show(job)["supervisor_pid"]

        def ticks():
            fields = pathlib.Path(f"/proc/{supervisor}/stat").read_text().rsplit(")", 1)[1].split()
            return int(fields[11]) + int(fields[12])

        before = ticks()
        for _ in range(10):
            self.assertEqual(self.show(job)["state"], "Running")
        self.assertLess(ticks() - before, 20, "the supervisor spins")
        self.write("go", "")
        self.assertIn("exit code 5", self.wait_state(job, "Failed")["reason"])

    def test_a_daemon_that_keeps_the_output_open_does_not_hold_up_the_job(self):
        result = self.muster("run", self.write("job.yaml", """
            name: held
            roles: {worker: {command: '(setsid env -i sh -c "exec sleep 600" &); echo bye'}}
            """), timeout=30)
        self.assertIn("worker:0 | bye", result.stdout)

    def test_rotation_keeps_the_newest(self):
        self.run_script("""
            for i in range(30000):
                print(f"line {i:06d} " + "x" * 20)
            """, policies="logs: {rotate_at: 64K, keep: 3}")
        logs = next(self.home.glob("jobs/*")) / "logs"
        self.assertEqual(len(list(logs.glob("worker-0.log.*"))), 3)
        self.assertLessEqual(sum(path.stat().st_size for path in logs.glob("worker-0.log*")), 5 * 64 << 10)
        self.assertTrue(self.stored().endswith(b"line 029999 " + b"x" * 20 + b"\n"))
        tail = self.muster("logs", "loud", "--tail", "5000").stdout.splitlines()
        self.assertEqual([line.split("line ")[1][:6] for line in tail], [f"{i:06d}" for i in range(25000, 30000)])

    def test_rotation_while_followed_loses_nothing(self):
        result = self.run_script("""
            import time
            for i in range(5000):
                print(f"line {i:06d} " + "x" * 50)
                if i % 100 == 0:
                    time.sleep(0.01)
            """, policies="logs: {rotate_at: 64K, keep: 100}")
        self.assertEqual([int(line.split(" ")[3]) for line in result.stdout.splitlines()], list(range(5000)))

    def test_a_huge_environment(self):
        variables = "\n".join(f"              VAR{i}: {'v' * 10000}" for i in range(100))
        job = self.write("job.yaml", f"""
            name: wide
            env:
{variables}
            roles: {{worker: {{command: 'env | grep -c ^VAR'}}}}
            """)
        self.assertIn("worker:0 | 100", self.muster("run", job).stdout)

    def test_an_environment_that_the_kernel_refuses(self):
        job = self.write("job.yaml", f"name: wide\nenv: {{BIG: {'v' * 300000}}}\nroles: {{worker: {{command: 'true'}}}}\n")
        result = self.muster("run", job, check=False)
        self.assertEqual(result.returncode, 1)
        self.assertRegex(result.stderr, "(?i)too long|too large|argument list")

    def test_names_in_other_alphabets(self):
        folder = self.dir / "данные 日本語 'x'"
        folder.mkdir()
        job = self.write("job.yaml", f"""
            name: words
            working_dir: "{folder}"
            roles: {{worker: {{command: 'pwd; echo "grüße 🚀"; touch "файл"'}}}}
            """)
        result = self.muster("run", job)
        self.assertIn(f"worker:0 | {folder}", result.stdout)
        self.assertIn("worker:0 | grüße 🚀", result.stdout)
        self.assertTrue((folder / "файл").exists())
        self.assertIn("🚀", self.task("words", "worker:0")["command"])


if __name__ == "__main__":
    unittest.main()
