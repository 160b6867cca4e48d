"""muster run --on ssh, and the other commands on such a job: real sshds in namespaces (tests/hosts.py)."""
import contextlib
import os
import pathlib
import re
import signal
import subprocess
import time
import unittest
from unittest import mock

import support
from hosts import own_hosts
from support import MusterTest, is_alive, kill, wait_until


# A fake agent that sends arbitrary messages.
NONSENSE = r"""#!/usr/bin/python3
import json, struct, sys
sys.stdout.buffer.write(b"muster-agent ready\n")
while True:
    sys.stdout.flush()
    length = sys.stdin.buffer.read(4)
    if len(length) < 4:
        break
    head = json.loads(sys.stdin.buffer.read(struct.unpack("<I", length)[0]).split(b"\0")[0])
    answer = {"missing": {"missing": [1, "unknown", {}]}, "work": {"error": "no such thing", "code": 0}}.get(head["op"], {"folder": "/tmp/x"})
    text = json.dumps(answer).encode() + b"\0"
    sys.stdout.buffer.write(struct.pack("<I", len(text)) + text)
"""


class SshTestBase(MusterTest):
    def use(self, count, **options):
        self.bed = own_hosts(self, count, **options)
        self.env.update(self.bed.environment)
        self.addCleanup(self._end_everything)  # before the hosts are removed
        return ",".join(self.bed.hosts)

    def write(self, name, text):
        (self.dir / name).parent.mkdir(parents=True, exist_ok=True)
        return super().write(name, text)

    def log(self, job, task):
        return super().log(job, task).decode()

    def submit(self, text, hosts, *options):
        said = self.muster("run", "-d", "--on", "ssh", "--hosts", hosts, *options, self.write("work/job.yaml", text),
                           cwd=self.dir / "work").stdout
        return re.search(r"Started (\S+) in", said).group(1)

    def refused(self, hosts, text="{name: x, command: 'true', roles: {worker: {replicas: 2}}}", *options):
        done = self.muster("run", "--on", "ssh", "--hosts", hosts, *options, self.write("work/job.yaml", text), cwd=self.dir / "work",
                           check=False, timeout=60)
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        return done.stderr

    def agents(self, host):
        """Returns the guard and the agent, without the processes connected to them."""
        pids = [pid for pid, words in self.bed.processes(host).items() if "muster/agent-" in words[0]]
        return sorted(pid for pid in pids if os.readlink(f"/proc/{pid}/fd/0").endswith("/null"))

    @staticmethod
    def kill_supervisor(job):
        """Kills it and its guard at the same moment: each would otherwise detect the death of the other."""
        found = []
        for folder in pathlib.Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                words = (folder / "cmdline").read_bytes().decode().split("\0")
                if "supervise" in words and any(job in word for word in words):
                    found.append(int(folder.name))
        for number in (signal.SIGSTOP, signal.SIGKILL):
            for pid in found:
                kill(pid, number)

    def wait_left_alone(self, *hosts):
        for host in hosts or self.bed.hosts:
            wait_until(lambda: not self.bed.processes(host), f"nothing runs on {host}", 30)


class SshTest(SshTestBase):
    def test_from_submission_to_success(self):
        hosts = self.use(3)
        self.write("work/hello.txt", "hello from here\n")
        self.write("work/.gitignore", "secret*\n")
        self.write("work/secret.txt", "not sent\n")
        job = self.submit("""
            name: x
            command: "echo {role}:{index} on $(hostname); cat hello.txt; ls -A; exit 0"
            roles: {chief: {}, worker: {replicas: 2}}
            """, hosts)
        self.wait_state(job, "Succeeded")
        record = self.show(job)
        self.assertEqual(record["platform"], "ssh")
        where = {task["task"]: task["host"] for task in record["tasks"]}
        self.assertEqual(sorted(where.values()), ["host1", "host2", "host3"])
        for task, host in where.items():
            self.assertEqual(self.log(job, task), f"{task} on {host}\nhello from here\n.gitignore\nhello.txt\njob.yaml\n")
            self.assertEqual(record["tasks"][list(where).index(task)]["address"].rsplit(":", 1)[0], self.bed.address(host))
        self.wait_left_alone()
        # The job's keys are removed from the host.
        self.assertEqual(self.bed.run("host1", ["sh", "-c", "ls ~/.cache/muster/jobs/*/"]).stdout.split().count("tls"), 0)

    def test_a_failure_is_explained_by_the_first_failed_task(self):
        hosts = self.use(2)
        done = self.muster("run", "--on", "ssh", "--hosts", hosts, self.write("job.yaml", """
            name: x
            roles:
              chief: {command: "exec sleep 1000"}
              worker: {command: "echo working; echo 'ValueError: bad shape' >&2; exit 3"}
            """), check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn("worker:0 failed: exit code 3: ValueError: bad shape", done.stderr)
        self.wait_left_alone()

    def test_stop_ends_whole_trees(self):
        hosts = self.use(2)
        job = self.submit("""
            name: x
            command: "setsid sleep 1000 & sleep 1000 & trap '' TERM; sleep 1000; sleep 1000"
            roles: {worker: {replicas: 2}}
            policies: {stop_grace: 1s}
            """, hosts)
        self.wait_state(job, "Running")
        self.muster("stop", "--yes", job)
        self.wait_state(job, "Stopped")
        self.wait_left_alone()

    def test_a_cut_connection_loses_no_byte_and_no_task(self):
        hosts = self.use(2)
        job = self.submit("""
            name: x
            command: "i=0; while [ $i -lt 400 ]; do i=$((i+1)); echo line $i; sleep 0.02; done"
            roles: {worker: {replicas: 2}}
            policies: {host_timeout: 60s}
            """, hosts)
        self.wait_state(job, "Running")
        pids = self.pids(job)
        wait_until(lambda: "line 20\n" in self.log(job, "worker:1"), "it talks")
        victim = next(task["host"] for task in self.show(job)["tasks"] if task["task"] == "worker:1")
        self.bed.kill_sshd(victim)
        wait_until(lambda: self.show(job)["state"] == "Unreachable", "the cut is noticed")
        self.assertIn(f"{victim} does not respond", self.show(job)["reason"])
        self.bed.start_sshd(victim)
        self.wait_state(job, "Succeeded", timeout=60)
        for task in ("worker:0", "worker:1"):
            self.assertEqual(self.log(job, task), "".join(f"line {i}\n" for i in range(1, 401)))
            self.assertEqual(self.task(job, task)["restarts"], 0)
        self.assertEqual(len(pids), 2)

    def test_a_host_that_is_gone_for_a_moment_is_unreachable_and_not_failed(self):
        hosts = self.use(2)
        job = self.submit("""
            name: x
            command: "while [ ! -e ~/done ]; do sleep 0.1; done"
            roles: {worker: {replicas: 2}}
            policies: {host_timeout: 40s}
            """, hosts)
        self.wait_state(job, "Running")
        self.bed.cut("host2")
        self.wait_state(job, "Unreachable", timeout=40)
        self.bed.mend("host2")
        self.wait_state(job, "Running", timeout=40)
        for host in self.bed.hosts:
            self.bed.run(host, ["sh", "-c", "touch ~/done"])
        self.wait_state(job, "Succeeded")
        self.assertEqual([task["restarts"] for task in self.show(job)["tasks"]], [0, 0])

    def test_a_host_without_remaining_tasks_may_disappear(self):
        hosts = self.use(2)
        job = self.submit("""
            name: x
            roles:
              chief: {command: "while [ ! -e ~/done ]; do sleep 0.1; done"}
              worker: {command: "true"}
            """, hosts)
        wait_until(lambda: self.task(job, "worker:0")["state"] == "Succeeded", "the worker is done")
        self.bed.kill_sshd(self.task(job, "worker:0")["host"])
        time.sleep(3)
        self.assertEqual(self.show(job)["state"], "Running")
        self.bed.run(self.task(job, "chief:0")["host"], ["sh", "-c", "touch ~/done"])
        self.wait_state(job, "Succeeded")

    def test_the_history_is_not_written_while_a_host_is_unreachable(self):
        hosts = self.use(2)
        job = self.submit("{name: x, command: 'while sleep 0.02; do echo x; done', roles: {worker: {replicas: 2}}}", hosts)
        self.wait_state(job, "Running")
        self.bed.kill_sshd("host2")
        self.wait_state(job, "Unreachable", timeout=40)
        time.sleep(1)
        before = sum(path.stat().st_mtime_ns for path in self.home.glob("history.db*"))
        time.sleep(2)
        self.assertEqual(sum(path.stat().st_mtime_ns for path in self.home.glob("history.db*")), before)

    def test_a_host_that_stays_away_loses_its_tasks_and_gets_them_back(self):
        hosts = self.use(2)
        job = self.submit("""
            name: x
            command: "echo began; while [ ! -e ~/done ]; do sleep 0.1; done"
            roles: {worker: {replicas: 2}}
            policies: {host_timeout: 4s, max_restarts: 5}
            """, hosts)
        self.wait_state(job, "Running")
        before = set(self.bed.processes("host2"))
        self.bed.cut("host2")
        # The host ends its tasks by itself, and the job's record shows it.
        wait_until(lambda: not any(is_alive(pid) for pid in before), "the tasks there are gone", 30)
        wait_until(lambda: self.task(job, "worker:1")["restarts"] == 1, "its loss is known", 30)
        self.assertIn("lost with host2", "\n".join(self.events(job)))
        self.bed.mend("host2")
        self.wait_state(job, "Running", timeout=60)
        for host in self.bed.hosts:
            self.bed.run(host, ["sh", "-c", "touch ~/done"])
        self.wait_state(job, "Succeeded", timeout=60)
        self.assertEqual(self.log(job, "worker:1"), "began\nbegan\n")
        self.assertEqual(self.task(job, "worker:0")["restarts"], 0)

    def test_a_killed_agent_takes_its_tasks_with_it_and_they_start_again(self):
        hosts = self.use(2)
        job = self.submit("""
            name: x
            command: "while [ ! -e ~/done ]; do sleep 0.1; done"
            roles: {worker: {replicas: 2}}
            """, hosts)
        self.wait_state(job, "Running")
        for pid, words in self.bed.processes("host1").items():
            if "muster/agent-" in words[0]:
                kill(pid)
        wait_until(lambda: self.task(job, "worker:0")["restarts"] == 1, "its loss is known", 60)
        self.wait_state(job, "Running", timeout=60)
        for host in self.bed.hosts:
            self.bed.run(host, ["sh", "-c", "touch ~/done"])
        self.wait_state(job, "Succeeded")
        self.wait_left_alone()

    def test_a_cut_after_an_agent_was_killed_ends_nothing(self):
        hosts = self.use(1)
        job = self.submit("""
            name: x
            command: "while [ ! -e ~/done ]; do sleep 0.1; done"
            roles: {worker: {}}
            policies: {host_timeout: 60s}
            """, hosts)
        self.wait_state(job, "Running")
        for pid in self.agents("host1"):
            kill(pid)
        wait_until(lambda: self.task(job, "worker:0")["restarts"] == 1, "its loss is known", 60)
        self.wait_state(job, "Running", timeout=60)
        self.bed.kill_sshd("host1")
        self.wait_state(job, "Unreachable", timeout=40)
        self.bed.start_sshd("host1")
        self.wait_state(job, "Running", timeout=40)
        self.bed.run("host1", ["sh", "-c", "touch ~/done"])
        self.wait_state(job, "Succeeded")
        self.assertEqual(self.task(job, "worker:0")["restarts"], 1)

    def test_a_killed_guard_leaves_the_keys_for_the_next_attempt(self):
        hosts = self.use(2)
        job = self.submit("""
            name: x
            command: "ls $MUSTER_TLS_DIR; while [ ! -e ~/done ]; do sleep 0.1; done"
            roles: {worker: {replicas: 2}}
            """, hosts)
        self.wait_state(job, "Running")
        kill(self.agents("host1")[0])
        wait_until(lambda: self.task(job, "worker:0")["restarts"] == 1, "its loss is known", 60)
        self.wait_state(job, "Running", timeout=60)
        for host in self.bed.hosts:
            self.bed.run(host, ["sh", "-c", "touch ~/done"])
        self.wait_state(job, "Succeeded")
        self.assertEqual(self.log(job, "worker:0"), "ca.crt\ntls.crt\ntls.key\n" * 2)

    def test_a_killed_supervisor_leaves_nothing_running(self):
        hosts = self.use(2)
        job = self.submit("{name: x, command: 'sleep 1000', roles: {worker: {replicas: 2}}, policies: {host_timeout: 3s}}", hosts)
        self.wait_state(job, "Running")
        self.kill_supervisor(job)
        self.wait_left_alone()

    def test_resume_ends_leftover_tasks_of_a_killed_supervisor(self):
        hosts = self.use(1)
        # In its own pid namespace muster does not see the hosts' processes, as on another machine.
        anchor = subprocess.Popen(["unshare", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-c", "echo; exec sleep 600"],
                                  stdout=subprocess.PIPE)
        self.addCleanup(anchor.communicate)
        self.addCleanup(anchor.kill)
        anchor.stdout.readline()
        child = pathlib.Path(f"/proc/{anchor.pid}/task/{anchor.pid}/children").read_text().split()[0]
        inside = self.dir / "muster"
        inside.write_text(f'#!/bin/sh\nexec nsenter --target={child} --pid --mount --wd="$PWD" {support.MUSTER} "$@"\n')
        inside.chmod(0o755)
        with mock.patch("support.MUSTER", str(inside)):
            job = self.submit("{name: x, command: 'exec sleep 1000', roles: {worker: {}}, policies: {host_timeout: 5m}}", hosts)
            self.wait_state(job, "Running")
            self.kill_supervisor(job)
            self.wait_state(job, "Failed")
            wait_until(lambda: len(self.sleepers()) == 1, "the task runs on")
            before = self.sleepers()
            self.muster("resume", "-d", job)
            self.wait_state(self.jobs()[0]["id"], "Running")
            wait_until(lambda: len(self.sleepers()) == 1 and self.sleepers() != before, "another runs in its place")
            self.muster("stop", "--yes", "--now", self.jobs()[0]["id"])

    def sleepers(self):
        return [pid for pid, words in self.bed.processes("host1").items() if words[:2] == ["sleep", "1000"]]

    def test_show_lists_the_machines(self):
        hosts = self.use(2)
        job = self.submit("{name: x, command: 'sleep 1000', roles: {ps: {}, worker: {}}, policies: {host_timeout: 60s}}", hosts)
        self.wait_state(job, "Running")
        table = self.muster("show", job).stdout
        self.assertRegex(table, r"MACHINE +ROLE +PROVIDER +REGION +SIZE +PUBLIC IP +STATUS\n"
                         rf"host1 +\w+ +ssh +\d+ cpus? +{self.bed.address('host1')} +Connected\nhost2 ")
        self.bed.cut("host2")
        self.wait_state(job, "Unreachable", timeout=40)
        self.assertRegex(self.muster("show", job).stdout, r"host2 +\w+ +ssh .*Unreachable")
        self.bed.mend("host2")
        self.wait_state(job, "Running", timeout=40)

    def test_a_changed_train_section_is_there_when_tasks_read_it(self):
        hosts = self.use(2)
        text = """
            name: x
            roles:
              chief: {command: "while sleep 0.2; do cat $MUSTER_TRAIN_CONFIG; done"}
              worker: {command: "sleep 1000"}
            train: {model: mlp, data: {format: mnist, path: data}, batch_size: %d, steps: 10}
            """
        self.write("work/data/part", "some of it")
        job = self.submit(text % 111, hosts)
        wait_until(lambda: '"batch_size": 111' in self.log(job, "chief:0"), "it is read")
        # Sent files are named by their path on the host.
        self.assertRegex(self.log(job, "chief:0"), r'"path": "/\S+/work/data"')
        self.assertNotIn(str(self.dir), self.log(job, "chief:0"))
        self.muster("run", "-d", "--yes", "--on", "ssh", "--hosts", hosts, self.write("work/job.yaml", text % 222), cwd=self.dir / "work")
        wait_until(lambda: '"batch_size": 222' in self.log(job, "chief:0"), "the change is read")

    def test_an_edited_program_is_sent_and_restarts_its_tasks(self):
        hosts = self.use(2)
        text = """
            name: x
            roles:
              worker: {replicas: 2, command: "cat part/own; ls; echo done by $MUSTER_ATTEMPT > result-$MUSTER_ATTEMPT; sleep 1000"}
            policies: {restart: on-failure, backoff: 100ms}
            """
        self.write("work/part/own", "version 1\n")
        self.write("work/gone", "")
        job = self.submit(text, hosts)
        for task in ("worker:0", "worker:1"):
            wait_until(lambda task=task: "version 1" in self.log(job, task), "the first version runs")
        self.write("work/part/own", "version 2\n")
        self.write("work/new", "")
        (self.dir / "work" / "gone").unlink()
        # A task that restarts by policy has the version that was sent.
        host = self.task(job, "worker:0")["host"]
        kill(next(pid for pid, words in self.bed.processes(host).items() if words[:2] == ["sleep", "1000"]))
        wait_until(lambda: self.log(job, "worker:0").count("version 1") == 2, "worker:0 runs again")
        again = ["run", "-d", "--on", "ssh", "--hosts", hosts, self.dir / "work" / "job.yaml"]
        said = self.muster(*again, "--yes", cwd=self.dir / "work").stdout
        for line in ("removed: gone", "added: new", "changed: part/own", "restart: worker:0, worker:1"):
            self.assertIn(line, said)
        for task in ("worker:0", "worker:1"):
            wait_until(lambda task=task: "version 2" in self.log(job, task), "the second version runs")
            wait_until(lambda task=task: "part" in self.log(job, task).split("version 2")[1], "all is listed")
            listing = self.log(job, task).split("version 2")[1].split()
            self.assertIn("new", listing)
            self.assertNotIn("gone", listing)
            self.assertIn("result-0", listing)  # what a task wrote stays
        self.assertIn("nothing changed", self.muster(*again, cwd=self.dir / "work").stdout)

    def test_edited_files_that_a_host_cannot_take_change_nothing(self):
        hosts = self.use(2)
        text = "{name: x, command: 'while cat own; do sleep 0.2; done', roles: {worker: {replicas: 2}}, policies: {host_timeout: 300s}}"
        self.write("work/own", "version 1\n")
        job = self.submit(text, hosts)
        self.wait_state(job, "Running")
        self.write("work/own", "version 2\n")
        self.bed.cut("host2")
        again = ["run", "-d", "--yes", "--on", "ssh", "--hosts", hosts, self.dir / "work" / "job.yaml"]
        refused = self.muster(*again, cwd=self.dir / "work", check=False)
        self.assertEqual(refused.returncode, 1, refused.stdout)
        self.assertIn("host2", refused.stderr)
        self.assertNotIn("hosts may have edited files", refused.stderr)
        seen = len(self.log(job, "worker:0"))
        wait_until(lambda: len(self.log(job, "worker:0")) > seen + 30, "it goes on")
        self.assertNotIn("version 2", self.log(job, "worker:0"))
        self.bed.mend("host2")
        self.wait_state(job, "Running", timeout=60)
        self.muster(*again, cwd=self.dir / "work")
        for task in ("worker:0", "worker:1"):
            wait_until(lambda task=task: "version 2" in self.log(job, task), "the second version runs")

    def test_a_changed_host_timeout_takes_effect(self):
        hosts = self.use(1)
        text = "{name: x, command: 'sleep 1000', roles: {worker: {}}, policies: {host_timeout: %s}}"
        job = self.submit(text % "300s", hosts)
        self.wait_state(job, "Running")
        self.muster("run", "-d", "--yes", "--on", "ssh", "--hosts", hosts, self.write("work/job.yaml", text % "3s"), cwd=self.dir / "work")
        time.sleep(4)  # the agent receives it with a ping
        self.bed.cut("host1")
        wait_until(lambda: self.task(job, "worker:0")["restarts"] >= 1, "its loss is known", 40)
        self.bed.mend("host1")
        self.wait_state(job, "Running", timeout=60)

    def test_a_stop_leaves_no_failures(self):
        hosts = self.use(2)
        for _ in range(8):
            job = self.submit("{name: x, command: 'exec sleep 1000', roles: {worker: {replicas: 4}}}", hosts)
            self.wait_state(job, "Running")
            self.muster("stop", "--yes", job)
            self.wait_state(job, "Stopped")
            self.assertEqual({task["state"] for task in self.show(job)["tasks"]}, {"Stopped"})

    def test_a_task_moved_before_its_host_received_it_runs_once(self):
        self.use(2)
        text = """
            name: x
            hosts: [%s]
            command: "exec sleep 1000"
            roles: {worker: {replicas: 2}%s}
            policies: {host_timeout: 300s, stop_grace: 1s}
            """
        run = ("run", "-d", "--yes", "--on", "ssh")

        def change(*parts):
            self.muster(*run, self.write("work/job.yaml", text % parts), cwd=self.dir / "work")
        change("host1, host2", "")
        job = self.jobs()[0]["id"]
        self.wait_state(job, "Running")
        self.bed.kill_sshd("host2")
        self.wait_state(job, "Unreachable", timeout=40)
        change("{address: host1, roles: [worker]}, host2", ", evaluator: {}")
        self.assertEqual(self.task(job, "evaluator:0")["host"], "host2")
        change("host1, {address: host2, roles: [worker]}", ", evaluator: {}")
        wait_until(lambda: self.task(job, "evaluator:0")["host"] == "host1", "it is on the other host")
        self.bed.start_sshd("host2")
        self.wait_state(job, "Running", timeout=60)

        def evaluators(host):
            return [pid for pid in self.bed.processes(host)
                    if b"MUSTER_TASK=evaluator:0" in pathlib.Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")]
        wait_until(lambda: not evaluators("host2"), "it does not run there")
        self.assertEqual(len(evaluators("host1")), 1)

    def lose_host(self, hosts, policies, command="while [ ! -e ~/done ]; do sleep 0.1; done"):
        """Starts a job whose worker:1 was lost with host2, which stays off; the task waits for its restart there."""
        job = self.submit(f"""
            name: x
            command: "{command}"
            roles: {{worker: {{replicas: 2}}}}
            policies: {{host_timeout: 2s, {policies}}}
            """, hosts)
        self.wait_state(job, "Running")
        self.assertEqual(self.task(job, "worker:1")["host"], "host2")
        self.bed.cut("host2")
        wait_until(lambda: (lambda task: task["restarts"] >= 1 and task["state"] == "Pending")(self.task(job, "worker:1")),
                   "it waits for its host", 60)
        return job

    def test_a_stop_while_a_lost_host_stays_away(self):
        job = self.lose_host(self.use(2), "max_restarts: 100, max_backoff: 1s")
        self.muster("stop", "--yes", job, timeout=60)
        self.assertEqual(self.show(job)["state"], "Stopped")
        self.assertEqual({task["state"] for task in self.show(job)["tasks"]}, {"Stopped"})

    def test_a_success_while_a_lost_host_stays_away(self):
        job = self.lose_host(self.use(2), "max_restarts: 100, max_backoff: 1s, success: chief, finish_grace: 1s")
        self.bed.run("host1", ["sh", "-c", "touch ~/done"])
        self.wait_state(job, "Succeeded", timeout=30)

    def test_a_host_that_stays_away_fails_the_job_after_max_restarts(self):
        job = self.lose_host(self.use(2), "max_restarts: 2, backoff: 100ms")
        record = self.wait_state(job, "Failed", timeout=60)
        self.assertIn("worker:1 failed after 2 restarts: lost with host2", record["reason"])
        self.assertEqual(record["failure"]["not_restarted"], "worker:1: max_restarts (2) exceeded")

    def test_a_lost_task_waits_for_its_host(self):
        hosts = self.use(2)
        job = self.submit("""
            name: x
            command: "while [ ! -e ~/done ]; do sleep 0.1; done"
            roles: {worker: {replicas: 2}}
            policies: {host_timeout: 2s, start_timeout: 3s, max_restarts: 100, max_backoff: 1s}
            """, hosts)
        self.wait_state(job, "Running")
        self.bed.cut("host2")
        wait_until(lambda: self.task(job, "worker:1")["restarts"] >= 1, "its loss is known", 60)
        time.sleep(8)  # longer than start_timeout
        record = self.show(job)
        self.assertEqual(record["state"], "Unreachable")
        self.assertRegex(record["reason"], "^host2 does not respond: .")
        self.bed.mend("host2")
        self.wait_state(job, "Running", timeout=60)
        for host in self.bed.hosts:
            self.bed.run(host, ["sh", "-c", "touch ~/done"])
        self.wait_state(job, "Succeeded", timeout=60)

    def test_ssh_never_prompts_while_a_job_runs(self):
        hosts = self.use(1)
        program = self.write("ssh", f"""\
            #!/bin/sh
            echo "$SSH_ASKPASS_REQUIRE $SSH_ASKPASS" >> {self.dir}/calls
            exec {self.env['MUSTER_SSH']} "$@"
            """)
        program.chmod(0o755)
        self.env.update(MUSTER_SSH=str(program), SSH_ASKPASS="/usr/bin/a-window", SSH_ASKPASS_REQUIRE="force", DISPLAY=":0")
        job = self.submit("{name: x, command: 'exec sleep 1000', roles: {worker: {}}}", hosts)
        self.wait_state(job, "Running")
        self.bed.kill_sshd("host1")
        self.wait_state(job, "Unreachable", timeout=40)
        self.bed.start_sshd("host1")
        self.wait_state(job, "Running", timeout=40)
        calls = (self.dir / "calls").read_text().splitlines()
        self.assertGreater(len(calls), 2)
        self.assertEqual(set(calls), {"force /bin/false"})

    def test_many_tasks_on_one_host(self):
        hosts = self.use(1)
        job = self.submit("{name: x, command: 'umask', roles: {worker: {replicas: 100}}}", hosts)
        self.wait_state(job, "Succeeded", timeout=60)
        # Files of tasks have the mode of files that the user's shell on the host creates.
        self.assertEqual(self.log(job, "worker:99"), self.bed.run("host1", ["sh", "-c", "umask"]).stdout)

    def test_a_host_that_dies_during_the_stop(self):
        hosts = self.use(2)
        job = self.submit("{name: x, command: 'sleep 1000', roles: {worker: {replicas: 2}}, policies: {host_timeout: 4s}}", hosts)
        self.wait_state(job, "Running")
        self.bed.cut("host2")
        done = self.muster("stop", "--yes", job)
        self.assertIn("Stopped", done.stdout)
        self.assertEqual(self.show(job)["state"], "Stopped")
        self.wait_left_alone()

    def test_a_host_that_dies_during_the_start(self):
        hosts = self.use(2)
        self.write("work/big", "0123456789" * 3_000_000)
        self.bed.latency("host2", 50)
        runs = self.start("run", "--on", "ssh", "--hosts", hosts, self.write("job.yaml", "{name: x, command: 'true', roles: {worker: {replicas: 2}}}"),
                          cwd=self.dir / "work")
        wait_until(lambda: self.bed.run("host2", ["sh", "-c", "ls ~/.cache/muster/files"], check=False).stdout, "files are on their way")
        self.bed.cut("host2")
        said = runs.communicate(timeout=170)[1]
        self.assertEqual(runs.returncode, 1)
        self.assertRegex(said, "host2: .*(does not respond|no answer|lost|not responding|timed out|closed)")
        self.bed.mend("host2")
        # It leaves nothing that affects the next attempt.
        self.wait_state(self.submit("{name: x, command: 'true', roles: {worker: {replicas: 2}}}", hosts), "Succeeded")

    def test_an_interrupt_while_files_are_sent(self):
        hosts = self.use(1)
        self.write("work/big", "0123456789" * 3_000_000)
        self.bed.limit("host1", "8mbit")
        runs = self.start("run", "--on", "ssh", "--hosts", hosts, self.write("job.yaml", "{name: x, command: 'true', roles: {worker: {}}}"),
                          cwd=self.dir / "work")
        wait_until(lambda: self.bed.run("host1", ["sh", "-c", "ls ~/.cache/muster/files"], check=False).stdout, "files are on their way")
        runs.send_signal(signal.SIGINT)
        runs.communicate(timeout=10)
        self.assertNotEqual(runs.returncode, 0)
        record = self.show(self.jobs()[0]["id"])
        self.assertEqual((record["state"], record["reason"]), ("Failed", "interrupted"))
        self.bed.limit("host1", "")
        self.wait_state(self.submit("{name: x, command: 'true', roles: {worker: {}}}", hosts), "Succeeded")

    def test_a_switched_off_host_comes_back_without_its_processes(self):
        hosts = self.use(2)
        job = self.submit("""
            name: x
            command: "echo began; while [ ! -e ~/done ]; do sleep 0.1; done"
            roles: {worker: {replicas: 2}}
            policies: {host_timeout: 30s, max_restarts: 5}
            """, hosts)
        self.wait_state(job, "Running")
        self.bed.switch_off("host2")
        self.bed.switch_on("host2")
        wait_until(lambda: self.task(job, "worker:1")["restarts"] >= 1, "its loss is known", 60)
        for host in self.bed.hosts:
            self.bed.run(host, ["sh", "-c", "touch ~/done"])
        self.wait_state(job, "Succeeded", timeout=60)

    def test_a_log_that_ends_where_a_segment_does(self):
        hosts = self.use(1)
        job = self.submit("""
            name: x
            command: "head -c 2097152 /dev/zero | tr '\\\\0' x"
            roles: {worker: {}}
            policies: {logs: {rotate_at: 1MiB, keep: 5}}
            """, hosts)
        self.wait_state(job, "Succeeded")
        segments = sorted((self.home / "jobs" / job / "logs").glob("worker-0.log*"))
        self.assertEqual(sum(path.stat().st_size for path in segments), 2 << 20)

    def test_a_verbose_task_does_not_delay_the_end_of_another(self):
        hosts = self.use(1)
        job = self.submit("""
            name: x
            roles:
              chief: {command: "exec yes 0123456789012345678901234567890123456789012345678901234567890123456789"}
              worker: {command: "sleep 2; echo bye; exit 3"}
            policies: {logs: {rotate_at: 1MiB, keep: 2}, stop_grace: 1s}
            """, hosts)
        self.wait_state(job, "Failed", timeout=30)
        self.assertEqual(self.log(job, "worker:0"), "bye\n")

    def test_two_jobs_on_one_host(self):
        hosts = self.use(1)
        text = "{name: %s, command: 'echo {port}; sleep 2', roles: {worker: {replicas: 3}}}"
        jobs = [self.submit(text % name, hosts) for name in ("a", "b")]
        for job in jobs:
            self.wait_state(job, "Succeeded")
        ports = [self.log(job, f"worker:{i}").strip() for job in jobs for i in range(3)]
        self.assertEqual(len(set(ports)), 6, ports)

    def test_run_again_applies_changes(self):
        hosts = self.use(2)
        text = "{name: x, command: 'sleep 1000', roles: {worker: {replicas: %d}}}"
        job = self.submit(text % 2, hosts)
        self.wait_state(job, "Running")
        said = self.muster("run", "-d", "--yes", "--on", "ssh", "--hosts", hosts, self.write("work/job.yaml", text % 3),
                           cwd=self.dir / "work").stdout
        self.assertIn("start:   worker:2", said)
        wait_until(lambda: len(self.show(job)["tasks"]) == 3, "the third is there")
        self.wait_state(job, "Running")
        self.muster("stop", "--yes", job)
        self.wait_state(job, "Stopped")
        self.wait_left_alone()

    def test_a_second_task_finds_the_keys(self):
        hosts = self.use(1)
        text = "{name: x, command: 'ls $MUSTER_TLS_DIR/*; sleep 1000', roles: {worker: {replicas: %d}}, policies: {stop_grace: 1s}}"
        job = self.submit(text % 1, hosts)
        self.wait_state(job, "Running")
        self.muster("run", "-d", "--yes", "--on", "ssh", "--hosts", hosts, self.write("work/job.yaml", text % 2), cwd=self.dir / "work")
        wait_until(lambda: "tls/tls.key\n" in self.log(job, "worker:1"), "it has keys", 20)

    def test_a_changed_job_moves_a_task_to_another_host(self):
        self.use(2)
        text = """
            name: x
            hosts: [host1, %s]
            command: "echo on $(hostname); while [ ! -e ~/done ]; do sleep 0.1; done"
            roles: {worker: {replicas: 2}, ps: {}}
            policies: {stop_grace: 2s}
            """
        run = ("run", "-d", "--yes", "--on", "ssh")
        job = re.search(r"Started (\S+) in", self.muster(*run, self.write("work/job.yaml", text % "host2"), cwd=self.dir / "work").stdout).group(1)
        self.wait_state(job, "Running")
        self.assertEqual(self.task(job, "worker:1")["host"], "host2")
        self.muster(*run, self.write("work/job.yaml", text % "{address: host2, roles: [ps]}"), cwd=self.dir / "work")
        wait_until(lambda: self.task(job, "worker:1")["host"] == "host1", "it has moved", 30)
        self.wait_state(job, "Running")
        wait_until(lambda: self.log(job, "worker:1") == "on host2\non host1\n", "its output is all there")
        self.muster("stop", "--yes", job)
        self.wait_left_alone()

    def test_a_task_that_comes_and_goes_while_its_host_is_away(self):
        self.use(2)
        hosts = "host1:1,host2:9"
        text = "{name: x, command: 'sleep 1000', roles: {worker: {replicas: 2}%s}, policies: {host_timeout: 100s, start_timeout: 100s}}"
        job = self.submit(text % "", hosts)
        self.wait_state(job, "Running")
        before = self.agents("host2")
        self.bed.kill_sshd("host2")
        self.wait_state(job, "Unreachable", timeout=40)
        for roles in (", evaluator: {}", ""):
            self.muster("run", "-d", "--yes", "--on", "ssh", "--hosts", hosts, self.write("work/job.yaml", text % roles), cwd=self.dir / "work")
        self.bed.start_sshd("host2")
        self.wait_state(job, "Running", timeout=40)
        time.sleep(2)
        self.assertEqual(self.agents("host2"), before)
        self.assertEqual([task["restarts"] for task in self.show(job)["tasks"]], [0, 0])
        self.assertEqual(sum("sleep" in words for words in self.bed.processes("host2").values()), 1)

    def test_a_returning_task_repeats_no_output(self):
        hosts = self.use(1)
        text = "{name: x, command: 'echo began; sleep 1000', roles: {worker: {replicas: %d}}, policies: {stop_grace: 1s}}"
        job = self.submit(text % 2, hosts)
        wait_until(lambda: self.log(job, "worker:1") == "began\n", "it talks")
        for count in (1, 2):
            self.muster("run", "-d", "--yes", "--on", "ssh", "--hosts", hosts, self.write("work/job.yaml", text % count), cwd=self.dir / "work")
            wait_until(lambda: len(self.show(job)["tasks"]) == count, "it is changed")
            self.wait_state(job, "Running")
        wait_until(lambda: self.log(job, "worker:1").count("began") > 1, "it talks again")
        time.sleep(1)
        self.assertEqual(self.log(job, "worker:1"), "began\nbegan\n")

    def test_only_changes_are_sent_the_second_time(self):
        hosts = self.use(1)
        for i in range(20):
            self.write(f"work/data/{i}", f"{i}" * 1000)
        text = "{name: x, command: 'cat data/7 | wc -c', roles: {worker: {}}}"
        self.wait_state(self.submit(text, hosts), "Succeeded")
        files = "find ~/.cache/muster/files -type f | wc -l"
        before = int(self.bed.run("host1", ["sh", "-c", files]).stdout)
        self.write("work/data/7", "changed")
        job = self.submit(text, hosts)
        self.wait_state(job, "Succeeded")
        self.assertEqual(self.log(job, "worker:0").strip(), "7")
        self.assertEqual(int(self.bed.run("host1", ["sh", "-c", files]).stdout), before + 1)

    def test_more_files_than_one_message_names(self):
        hosts = self.use(1)
        for number in range(4100):
            self.write(f"work/files/{number}", str(number))
        command = "ls files | wc -l; cat files/* | sha256sum | cut -c1-16; wc -c < files/0; exit 0"
        job = self.submit(f'{{name: x, command: "{command}", roles: {{worker: {{}}}}}}', hosts)
        self.wait_state(job, "Succeeded")
        here = subprocess.run(["sh", "-c", command], cwd=self.dir / "work", capture_output=True, text=True).stdout
        self.assertEqual(self.log(job, "worker:0"), here)

    def test_resume_and_logs(self):
        hosts = self.use(1)
        job = self.submit("{name: x, command: 'echo once; sleep 1000', roles: {worker: {}}}", hosts)
        self.wait_state(job, "Running")
        wait_until(lambda: self.log(job, "worker:0"), "it talks")
        self.assertIn("once", self.muster("logs", job).stdout)
        self.muster("stop", "--yes", job)
        self.wait_state(job, "Stopped")
        self.muster("resume", "-d", job)
        again = self.jobs()[0]["id"]
        self.assertNotEqual(again, job)
        self.wait_state(again, "Running")
        self.assertEqual(self.task(again, "worker:0")["host"], "host1")
        wait_until(lambda: self.log(again, "worker:0"), "it talks again")


class BadHostTest(SshTestBase):
    def test_doctor_reports_the_state_of_each_host(self):
        hosts = self.use(2)
        table = self.muster("doctor", "--hosts", hosts).stdout
        self.assertRegex(table, r"host1 +ok +Linux \S+, \d+ cpus, .* of memory, .* free in \S+, clock 0")
        self.assertRegex(table, r"connectivity between hosts +ok +open")
        self.bed.kill_sshd("host2")
        self.bed.block("host2", "host1", 1024, 65535)
        done = self.muster("doctor", "--hosts", hosts, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stdout, r"host2 +\w+ +host2: .*runs sshd")

    def test_a_changed_host_key(self):
        hosts = self.use(2)
        self.bed.change_host_key("host2")
        self.assertRegex(self.refused(hosts), r"host2: its host key has changed.*ssh-keygen .*-R")

    def test_a_wrong_key_does_not_prompt(self):
        hosts = self.use(1)
        key = self.bed.folder / "other"
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key], check=True)
        self.env["MUSTER_SSH"] += f" -i {key} -o IdentityFile={key}"
        self.bed.run("host1", ["sh", "-c", "> /run/host/authorized_keys"])
        start = time.monotonic()
        self.assertRegex(self.refused(hosts), r"host1: login refused .*Permission denied.*must work without a password")
        self.assertLess(time.monotonic() - start, 30)

    def test_a_host_that_does_not_answer(self):
        hosts = self.use(2)
        self.bed.kill_sshd("host2")
        self.assertRegex(self.refused(hosts), r"host2: .*(refused|timed out|closed).*check that it is up and runs sshd")

    def test_an_unresolvable_host_name(self):
        self.use(1)
        self.assertRegex(self.refused("host1,nowhere.invalid"), r"nowhere.invalid: .*Could not resolve.*check the name")

    def test_a_full_disk_there(self):
        hosts = self.use(1, size="8m")
        self.write("work/big", "x" * 1000 * 1000)
        self.bed.fill_disk("host1")
        self.assertRegex(self.refused(hosts, "{name: x, command: 'true', roles: {worker: {}}}"), r"host1: .*(No space left|disk is full|full)")

    def test_a_file_truncated_by_a_full_disk_is_not_complete(self):
        hosts = self.use(1, size="64m")
        self.wait_state(self.submit("{name: x, command: 'true', roles: {worker: {}}}", hosts), "Succeeded")
        text = "{name: x, command: 'wc -c < big', roles: {worker: {}}}"
        size = (10 << 20) + 200_000  # the part after the piece that does not fit would fit
        self.write("work/big", "0123456789" * (size // 10) + "x" * (size % 10))
        self.bed.fill_disk("host1", free=9 << 20)
        self.assertRegex(self.refused(hosts, text), r"host1: .*No space left")
        self.bed.empty_disk("host1")
        job = self.submit(text, hosts)
        self.wait_state(job, "Succeeded")
        self.assertEqual(self.log(job, "worker:0"), f"{size}\n")
        self.assertEqual(self.bed.run("host1", ["sh", "-c", "find ~/.cache/muster/files -name '*.*'"]).stdout, "")

    def test_a_host_that_sends_invalid_messages(self):
        hosts = self.use(1)
        self.wait_state(self.submit("{name: x, command: 'true', roles: {worker: {}}}", hosts), "Succeeded")
        agent = next(self.bed.path("host1", ".cache/muster").glob("agent-*"))
        size = agent.stat().st_size  # an agent of another size would be sent again
        agent.rename(agent.with_name("real"))
        agent.write_text(NONSENSE + "#" * (size - len(NONSENSE)))
        agent.chmod(0o755)
        self.assertRegex(self.refused(hosts, "{name: x, command: 'true', roles: {worker: {}}}"), "host1: no such thing")

    def test_a_blocked_port_names_the_pair(self):
        hosts = self.use(3)
        self.bed.block("host1", "host3", 1024, 65535)
        said = self.refused(hosts, "{name: x, command: 'true', roles: {worker: {replicas: 3}}}")
        self.assertRegex(said, r"host1 cannot reach host3 at 10\.\S+ \(no answer\).*firewall")
        self.assertNotIn("host2 cannot", said)

    def test_one_machine_by_two_names(self):
        self.use(1)
        self.assertRegex(self.refused(f"host1,{self.bed.address('host1')}"), r"host1 and 10\S+ are the same machine; list it once, with slots")

    def test_no_hosts_too_few_and_unknown_ones(self):
        self.use(1)
        self.assertIn("missing hosts", self.muster("run", "--on", "ssh", self.write("job.yaml", "{name: x, command: 'true', roles: {worker: {}}}"), check=False).stderr)
        self.assertRegex(self.refused("host1:1"), r"slot")


if __name__ == "__main__":
    unittest.main()
