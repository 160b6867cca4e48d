"""muster jobs, show, logs, stop and resume."""
import contextlib
import json
import sqlite3
import subprocess
import unittest

from support import MUSTER, MusterTest, plain, wait_until

SLEEPER = """
    name: {name}
    roles:
      worker: {{replicas: 2, command: 'echo up; exec sleep 600'}}
    """
QUICK = "name: {name}\nroles: {{worker: {{command: 'echo did {name}'}}}}\n"


class ListingTest(MusterTest):
    def quick(self, name):
        self.muster("run", self.write("job.yaml", QUICK.format(name=name)))
        return self.jobs()[0]["id"]

    def test_no_jobs_yet(self):
        self.assertIn("no jobs yet", self.muster("jobs").stdout)
        self.assertEqual(self.jobs(), [])
        result = self.muster("show", check=False)
        self.assertEqual(result.returncode, 1)
        self.assertIn("no jobs yet", result.stderr)

    def test_jobs_newest_first_in_words_and_json(self):
        first, second = self.quick("one"), self.quick("two")
        running = self.run_detached(SLEEPER.format(name="three"))
        self.assertEqual([job["id"] for job in self.jobs()], [running, second, first])
        self.assertEqual([job["id"] for job in json.loads(self.muster("jobs", "--running", "--json").stdout)], [running])
        lines = self.muster("jobs").stdout.splitlines()
        self.assertRegex(lines[0], r"JOB +STATE +PLATFORM +TASKS +CREATED +RAN")
        self.assertRegex(lines[1], rf"^{running} +(Starting|Running) +local +2 ")
        self.assertRegex(lines[3], rf"^{first} +Succeeded +local +1 ")
        job = self.jobs()[2]
        self.assertEqual(set(job) - {"failure"}, {
            "id", "name", "platform", "state", "reason", "created", "started", "finished", "directory",
            "model_dir", "resumed_from", "tasks", "supervisor_pid"})
        self.assertRegex(job["created"], r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?\+00:00$")
        self.assertLessEqual(job["created"], job["finished"])

    def test_show_describes_each_task(self):
        job = self.run_detached(SLEEPER.format(name="shown"))
        self.wait_state(job, "Running")
        shown = self.show(job)
        self.assertEqual([task["task"] for task in shown["tasks"]], ["worker:0", "worker:1"])
        for task in shown["tasks"]:
            self.assertEqual(set(task), {"task", "id", "role", "index", "state", "attempt", "restarts", "host", "address",
                                         "pid", "command", "started", "finished", "exit_code", "reason", "usage"})
            self.assertRegex(task["address"], r"^127\.0\.0\.1:\d+$")
            self.assertIsInstance(task["pid"], int)
            self.assertIsNone(task["exit_code"])
        text = self.muster("show", job).stdout
        self.assertRegex(text, r"TASK +ID +STATE +HOST +PID +ADDRESS +COMMAND +STARTED +RESTARTS")
        self.assertRegex(text, rf"worker:1 +{shown['tasks'][1]['id']} +Running +\S+ +{shown['tasks'][1]['pid']} +127\.0\.0\.1:\d+ +\S.*echo")

    def test_show_without_a_job_takes_the_newest_that_runs(self):
        running = self.run_detached(SLEEPER.format(name="running"))
        self.quick("finished")
        self.assertIn(running, self.muster("show").stdout)
        self.muster("stop", "--yes", running)
        self.assertIn("finished-", self.muster("show").stdout)

    def test_show_events_in_order(self):
        self.quick("told")
        text = self.muster("show", "--events", "told").stdout
        self.assertLess(text.index("running"), text.index("worker:0  succeeded"))
        events = self.show("told")["events"]
        self.assertEqual([event["sequence"] for event in events], sorted(event["sequence"] for event in events))
        self.assertEqual(events[-1]["message"], "Succeeded")

    def test_a_job_by_name_id_and_prefix(self):
        older, newer, other = self.quick("train"), self.quick("train"), self.quick("tune")
        for reference, expected in ((newer, newer), ("train", newer), ("trai", newer), (older, older), ("tu", other)):
            self.assertEqual(self.show(reference)["id"], expected, reference)
        result = self.muster("show", "t", check=False)
        self.assertEqual(result.returncode, 1)
        for job in (older, newer, other):
            self.assertIn(job, result.stderr)
        result = self.muster("show", "trian", check=False)
        self.assertEqual(result.returncode, 1)
        self.assertIn("did you mean 'train'", result.stderr)

    def test_prune_keeps_the_newest_and_running_jobs(self):
        jobs = [self.quick(f"job{i}") for i in range(4)]
        running = self.run_detached(SLEEPER.format(name="running"))
        self.write("precious", "kept")
        unasked = self.muster("jobs", "prune", "--keep", "2", check=False)
        self.assertEqual(unasked.returncode, 1)
        self.assertIn("--yes", unasked.stderr)
        self.assertIn("2 finished jobs", self.muster("jobs", "prune", "--keep", "2", "--yes").stdout)
        self.assertEqual([job["id"] for job in self.jobs()], [running, jobs[3], jobs[2]])
        self.assertEqual({path.name for path in self.home.glob("jobs/*")}, {running, jobs[3], jobs[2]})
        self.assertIn("Nothing to prune", self.muster("jobs", "prune", "--keep", "2", "--yes").stdout)
        self.assertEqual(self.muster("jobs", "prune", "--keep", "-1", check=False).returncode, 2)

    def test_prune_asks_on_a_terminal(self):
        self.quick("kept")
        terminal = self.terminal("jobs", "prune", "--keep", "0")
        terminal.expect("Remove them? [y/n]")
        terminal.send("n\n")
        self.assertEqual(terminal.wait(), 0)
        self.assertEqual(len(self.jobs()), 1)

    def test_prune_asks_on_standard_error_if_output_is_redirected(self):
        self.quick("kept")
        with open(self.dir / "said", "w") as said:
            terminal = self.terminal("jobs", "prune", "--keep", "0", stdout=said)
            terminal.expect("Remove them? [y/n]")
            terminal.send("n\n")
            self.assertEqual(terminal.wait(), 0)
        self.assertEqual(len(self.jobs()), 1)
        self.assertNotIn("[y/n]", (self.dir / "said").read_text())

    def test_output_that_cannot_be_written_is_an_error(self):
        self.quick("told")
        for args in (["jobs"], ["init"], ["logs", "told"], ["--version"]):
            with open("/dev/full", "w") as full:
                result = subprocess.run([MUSTER, *args], env=self.env, stdout=full, stderr=subprocess.PIPE, text=True,
                                        timeout=60)
            self.assertEqual(result.returncode, 1, args)
            self.assertIn("error: cannot write to standard output: No space left", result.stderr, args)


class LogsTest(MusterTest):
    NUMBERED = """
        name: numbered
        roles:
          chief: {command: 'for i in 1 2 3 4 5; do echo chief $i; sleep 0.12; done'}
          worker: {replicas: 2, command: 'for i in 1 2 3; do echo worker {index} $i; sleep 0.12; done'}
        """

    def setUp(self):
        super().setUp()
        self.muster("run", self.write("job.yaml", self.NUMBERED))

    def test_all_tasks_merged_in_order_of_time(self):
        lines = self.muster("logs", "numbered").stdout.splitlines()
        self.assertEqual(len(lines), 11)
        self.assertLess(lines.index("worker:1 | worker 1 1"), lines.index("chief:0  | chief 5"))
        self.assertEqual([line for line in lines if line.startswith("chief")], [f"chief:0  | chief {i}" for i in range(1, 6)])

    def test_one_task_and_one_role(self):
        self.assertEqual(self.muster("logs", "numbered", "worker:1").stdout,
                         "".join(f"worker:1 | worker 1 {i}\n" for i in (1, 2, 3)))
        self.assertEqual(len(self.muster("logs", "numbered", "worker").stdout.splitlines()), 6)
        self.assertEqual(len(self.muster("logs", "numbered", "worker:0", "chief:0").stdout.splitlines()), 8)
        result = self.muster("logs", "numbered", "worker:7", check=False)
        self.assertEqual(result.returncode, 2)
        self.assertIn("the job has chief:0, worker:0, worker:1", result.stderr)

    def test_a_task_by_id_prefix_and_host(self):
        shown = self.show("numbered")["tasks"]
        ids = {task["task"]: task["id"] for task in shown}
        expected = self.muster("logs", "numbered", "worker:1").stdout
        for task in shown:
            self.assertRegex(task["id"], r"^[0-9a-f]{8}$")
        for words in (["numbered", ids["worker:1"]], [ids["worker:1"]], [ids["worker:1"][:7]], ["worker:1"],
                      ["numbered", ids["worker:1"][:7]]):
            self.assertEqual(self.muster("logs", *words).stdout, expected, words)
        whole = self.muster("logs", "numbered").stdout
        self.assertEqual(self.muster("logs", shown[0]["host"]).stdout, whole)
        self.assertEqual(self.muster("logs", "numbered", shown[0]["host"]).stdout, whole)
        self.assertEqual(self.muster("logs", "numbered", "127.0.0.1").stdout, whole)

    def test_ids_are_those_of_the_job(self):
        first = self.task("numbered", "worker:1")["id"]
        self.muster("run", self.write("job.yaml", self.NUMBERED))
        self.assertNotEqual(self.task("numbered", "worker:1")["id"], first)
        self.assertIn("worker 1 3", self.muster("logs", first).stdout)

    def test_an_ambiguous_id_lists_the_candidates(self):
        self.muster("run", self.write("many.yaml", """
            name: many
            roles: {task: {replicas: 17, command: 'true'}}
            """))
        ids = [task["id"] for task in self.show("many")["tasks"]]
        shared = next(id[0] for id in ids if [other[0] for other in ids].count(id[0]) > 1)
        result = self.muster("logs", "many", shared, check=False)
        self.assertEqual(result.returncode, 1)
        self.assertIn("is ambiguous", result.stderr)
        for id in ids:
            self.assertEqual(id in result.stderr, id[0] == shared, result.stderr)

    def test_tail(self):
        self.assertEqual(self.muster("logs", "numbered", "--tail", "1").stdout, "chief:0  | chief 5\n")
        self.assertEqual(self.muster("logs", "numbered", "chief", "--tail", "2").stdout,
                         "chief:0 | chief 4\nchief:0 | chief 5\n")
        self.assertEqual(self.muster("logs", "numbered", "--tail", "0").stdout, "")
        self.assertEqual(len(self.muster("logs", "numbered", "--tail", "999").stdout.splitlines()), 11)
        self.assertEqual(self.muster("logs", "numbered", "--tail", "-3", check=False).returncode, 2)

    def test_n_is_a_number_of_lines(self):
        whole = self.muster("logs", "numbered").stdout.splitlines()
        self.assertEqual(self.muster("logs", "numbered", "-n", "3").stdout.splitlines(), whole[-3:])
        self.assertEqual(self.muster("logs", "numbered", "-n3").stdout.splitlines(), whole[-3:])
        for args, words in ((["-n", "ml"], "Kubernetes"), (["-n", "-3"], "-n"), (["-n", "3", "--tail", "4"], "-n"),
                            (["-n", "3", "--since", "5m"], "give one")):
            result = self.muster("logs", "numbered", *args, check=False)
            self.assertEqual(result.returncode, 2, args)
            self.assertIn(words, result.stderr)

    def test_since(self):
        self.assertEqual(len(self.muster("logs", "numbered", "--since", "1h").stdout.splitlines()), 11)
        wait_until(lambda: self.muster("logs", "numbered", "--since", "1s").stdout == "", "all of it is old", 10)
        self.assertEqual(self.muster("logs", "numbered", "--since", "yesterday", check=False).returncode, 2)

    def test_timestamps(self):
        for line in self.muster("logs", "numbered", "-t").stdout.splitlines():
            self.assertRegex(line, r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d \S+ +\| ")

    def test_json(self):
        lines = [json.loads(line) for line in self.muster("logs", "numbered", "--json").stdout.splitlines()]
        self.assertEqual(len(lines), 11)
        self.assertEqual(set(lines[0]), {"task", "attempt", "time", "text"})
        times = [line["time"] for line in lines if line["task"] == "chief:0"]
        self.assertEqual(times, sorted(times))
        self.assertEqual(len(set(times)), 5)

    def test_follow_of_a_finished_job_ends(self):
        self.assertEqual(len(self.muster("logs", "-f", "numbered").stdout.splitlines()), 11)

    def test_a_closed_pipe_ends_it_silently(self):
        result = subprocess.run(f"'{MUSTER}' logs numbered | head -n 1", shell=True, env=self.env, timeout=60,
                                capture_output=True, text=True)
        self.assertEqual(result.stderr, "")
        self.assertEqual(len(result.stdout.splitlines()), 1)

    def test_an_unknown_job(self):
        result = self.muster("logs", "nothing", check=False)
        self.assertEqual(result.returncode, 1)
        self.assertIn("there is no job 'nothing', nor a task, role, id or host 'nothing' in the latest job, numbered-",
                      result.stderr)


class FollowTest(MusterTest):
    WAITING = """
        name: waiting
        roles: {worker: {replicas: 2, command: 'echo before {index}; until [ -e go ]; do sleep 0.05; done; echo after {index}; printf tail'}}
        """

    def test_follow_continues_until_the_job_ends(self):
        job = self.run_detached(self.WAITING)
        follower = self.start("logs", "-f", job)
        self.assertIn("before", follower.stdout.readline())
        self.write("go", "")
        output, _ = follower.communicate(timeout=60)
        self.assertEqual(follower.returncode, 0)
        for text in ("worker:0 | after 0\n", "worker:1 | after 1\n", "worker:0 | tail\n", "worker:1 | tail\n"):
            self.assertIn(text, output)

    def test_follow_reattaches_after_run_was_killed(self):
        run = self.start("run", self.write("job.yaml", self.WAITING))
        self.assertIn("before", run.stdout.readline())
        run.kill()
        run.wait()
        follower = self.start("logs", "-f", "waiting")
        self.write("go", "")
        output, _ = follower.communicate(timeout=60)
        self.assertEqual(sorted(line for line in output.splitlines() if "after" in line),
                         ["worker:0 | after 0", "worker:1 | after 1"])
        self.assertEqual(output.count("before"), 2)
        self.assertEqual(self.show("waiting")["state"], "Succeeded")

    def test_follow_with_a_tail_then_new_output(self):
        job = self.run_detached(self.WAITING)
        wait_until(lambda: self.muster("logs", job).stdout.count("before") == 2, "both have spoken")
        follower = self.start("logs", "-f", "--tail", "0", job, "worker:1")
        self.addCleanup(self.write, "go", "")
        wait_until(lambda: self.listens(follower), "it follows")
        self.write("go", "")
        output, _ = follower.communicate(timeout=60)
        self.assertEqual(output, "worker:1 | after 1\nworker:1 | tail\n")

    def listens(self, follower):
        # It has connected to the supervisor's socket once it has read its start position.
        rows = [row.split() for row in subprocess.run(["ss", "-xHp"], capture_output=True, text=True).stdout.splitlines()]
        own = {row[5] for row in rows if f"pid={follower.pid}," in row[-1]}
        return any("control.sock" in row[4] and row[7] in own for row in rows)

    def test_interrupting_follow_leaves_the_job_alone(self):
        job = self.run_detached(self.WAITING)
        terminal = self.terminal("logs", "-f", job)
        terminal.expect("before 1")
        terminal.interrupt()
        self.assertEqual(terminal.wait(), 130)
        self.assertEqual(self.show(job)["state"], "Running")

    def test_follow_ends_when_its_reader_has_gone(self):
        job = self.run_detached("name: loud\nroles: {worker: {command: 'while sleep 0.05; do echo line; done'}}\n")
        follower = self.start("logs", "-f", job)
        follower.stdout.readline()
        follower.stdout.close()
        self.assertEqual(follower.wait(60), 0)
        self.assertEqual(self.show(job)["state"], "Running")

    def test_a_slow_line_stays_whole_in_a_pipe(self):
        result = self.muster("run", self.write("job.yaml", """
            name: slow
            roles: {worker: {command: 'printf "one "; sleep 2.5; echo two; printf rest'}}
            """))
        self.assertEqual(result.stdout, "worker:0 | one two\nworker:0 | rest\n")

    def test_follow_of_a_failing_job_exits_1(self):
        job = self.run_detached("name: fails\nroles: {worker: {command: 'until [ -e go ]; do sleep 0.05; done; exit 4'}}\n")
        follower = self.start("logs", "-f", job)
        self.write("go", "")
        follower.communicate(timeout=60)
        self.assertIn(follower.returncode, (0, 1))  # 0 if it connected after the end


class ForgetTest(MusterTest):
    """Jobs of an unreachable platform keep their name until `muster jobs rm`."""

    def strand(self, name="lost"):
        """Creates a job of another machine, whose state this machine cannot determine."""
        self.muster("run", self.write("job.yaml", QUICK.format(name=name)))
        job = self.jobs()[0]["id"]
        self.change(job, "supervisor_place = 'other-machine/other-boot/1'")
        return job

    def change(self, job, what):
        with contextlib.closing(sqlite3.connect(self.home / "history.db")) as database:
            database.execute(f"UPDATE jobs SET state = 'Running', final = 0, finished_ns = NULL, {what} WHERE id = ?", (job,))
            database.commit()

    def strand_in_cluster(self, name="lost", server="https://127.0.0.1:9"):
        """Creates a job of a cluster that does not respond."""
        job = self.strand(name)
        self.change(job, "platform = 'kubernetes', supervisor_pid = NULL, supervisor_start_ticks = NULL")
        config = self.write("kubeconfig", f"""
            {{apiVersion: v1, kind: Config, current-context: prod, users: [{{name: me, user: {{token: x}}}}],
             clusters: [{{name: c, cluster: {{server: "{server}"}}}}],
             contexts: [{{name: prod, context: {{cluster: c, user: me, namespace: ml}}}}]}}
            """)
        settings = self.home / "jobs" / job / "submission.json"
        submission = json.loads(settings.read_text())
        submission["target"] = {"platform": "kubernetes", "kubeconfig": str(config), "context": "prod", "namespace": "ml"}
        settings.write_text(json.dumps(submission))
        return job

    def test_run_and_stop_suggest_forget_which_frees_the_name(self):
        for strand, where in ((self.strand, "where it was started"), (self.strand_in_cluster, "namespace 'ml' of context 'prod'")):
            job = strand()
            offer = f"muster jobs rm {job}"
            for args in (["run", self.write("job.yaml", QUICK.format(name="lost"))], ["stop", "--yes", job], ["resume", job]):
                result = self.muster(*args, check=False)
                self.assertEqual(result.returncode, 1, args)
                self.assertIn(offer, result.stderr, args)
                self.assertIn(where, result.stderr, args)
            unasked = self.muster("jobs", "rm", job, check=False)
            self.assertEqual(unasked.returncode, 1)
            self.assertIn("--yes", unasked.stderr)
            said = self.muster("jobs", "rm", job, "--yes").stdout
            self.assertIn(where, said)
            self.assertIn("the name 'lost' is free", said)
            self.assertEqual([job for job in self.jobs() if job["name"] == "lost"], [])
            self.assertFalse((self.home / "jobs" / job).exists())
            self.muster("run", self.write("job.yaml", QUICK.format(name="lost")))
            self.muster("jobs", "prune", "--keep", "0", "--yes")

    def test_a_context_that_is_gone(self):
        job = self.strand_in_cluster()
        self.write("kubeconfig", "{apiVersion: v1, kind: Config}")
        self.assertIn(f"muster jobs rm {job}", self.muster("stop", "--yes", job, check=False).stderr)
        self.muster("jobs", "rm", job, "--yes")

    def test_it_asks_on_a_terminal(self):
        job = self.strand()
        terminal = self.terminal("jobs", "rm", job)
        terminal.expect("Remove it? [y/n]")
        terminal.send("n\n")
        self.assertEqual(terminal.wait(), 0)
        self.assertEqual(len(self.jobs()), 1)

    def test_a_reachable_job_is_rejected(self):
        running = self.run_detached(SLEEPER.format(name="alive"))
        for force in ([], ["--force"]):
            result = self.muster("jobs", "rm", running, "--yes", *force, check=False)
            self.assertEqual(result.returncode, 1)
            self.assertIn(f"muster stop --now {running}", result.stderr)
        self.muster("stop", "--yes", running)
        self.muster("jobs", "rm", running, "--yes")
        self.assertEqual(self.jobs(), [])

    def test_each_job_of_a_silent_cluster_has_a_note_of_its_own(self):
        one, two = self.strand_in_cluster("one"), self.strand_in_cluster("two")
        notes = {job["id"]: job["reason"] for job in self.jobs()}
        for job, other in ((one, two), (two, one)):
            self.assertIn("127.0.0.1:9", notes[job])
            self.assertNotIn(other, notes[job])


class StopTest(MusterTest):
    def test_without_a_terminal_it_does_not_ask(self):
        job = self.run_detached(SLEEPER.format(name="stopped"))
        self.wait_state(job, "Running")
        said = self.muster("stop", job).stdout
        self.assertIn(f"This stops {job} (Running, 2 tasks)", said)
        self.assertIn("Stopped", said)
        state = self.show(job)
        self.assertEqual((state["state"], state["reason"]), ("Stopped", "stopped by the user"))
        self.assertEqual({task["state"] for task in state["tasks"]}, {"Stopped"})

    def test_a_refused_confirmation_stops_nothing(self):
        job = self.run_detached(SLEEPER.format(name="asked"))
        self.wait_state(job, "Running")
        terminal = self.terminal("stop", job)
        terminal.expect("Continue? [y/n]")
        terminal.send("what\n")
        wait_until(lambda: plain(terminal.output).count("[y/n]") == 2, "it asks again")
        terminal.send("n\n")
        self.assertEqual(terminal.wait(), 0)
        self.assertIn("Nothing was stopped", terminal.output)
        self.assertEqual(self.show(job)["state"], "Running")
        terminal = self.terminal("stop", job)
        terminal.expect("Continue? [y/n]")
        terminal.send("y\n")
        self.assertEqual(terminal.wait(), 0)
        self.assertEqual(self.show(job)["state"], "Stopped")

    def test_the_question_is_not_written_into_a_file(self):
        job = self.run_detached(SLEEPER.format(name="asked"))
        with open(self.dir / "said", "w") as said:
            terminal = self.terminal("stop", job, stdout=said)
            terminal.expect("Continue? [y/n]")
            self.assertIn(f"This stops {job}", (self.dir / "said").read_text())
            terminal.send("n\n")
            self.assertEqual(terminal.wait(), 0)
        self.assertNotIn("[y/n]", (self.dir / "said").read_text())

    def test_end_of_input_refuses(self):
        job = self.run_detached(SLEEPER.format(name="asked"))
        terminal = self.terminal("stop", job)
        terminal.expect("[y/n]")
        terminal.send("\x04")
        terminal.wait()
        self.assertIn(self.show(job)["state"], ("Starting", "Running"))

    def test_yes_does_not_ask(self):
        job = self.run_detached(SLEEPER.format(name="yes"))
        terminal = self.terminal("stop", "--yes", job)
        self.assertEqual(terminal.wait(), 0)
        self.assertNotIn("[y/n]", terminal.output)
        self.assertEqual(self.show(job)["state"], "Stopped")

    def test_several_jobs_some_of_them_finished(self):
        one, two = self.run_detached(SLEEPER.format(name="one")), self.run_detached(SLEEPER.format(name="two"))
        self.muster("run", self.write("job.yaml", QUICK.format(name="three")))
        said = self.muster("stop", one, "two", "three").stdout
        self.assertRegex(said, r"three-\w{5} is not running: it is Succeeded")
        self.assertEqual([job["state"] for job in self.jobs()], ["Succeeded", "Stopped", "Stopped"])

    def test_the_same_job_twice(self):
        job = self.run_detached(SLEEPER.format(name="one"))
        self.muster("stop", job, "one")
        self.assertEqual(self.show(job)["state"], "Stopped")

    def test_an_unknown_job_stops_nothing(self):
        job = self.run_detached(SLEEPER.format(name="one"))
        self.assertEqual(self.muster("stop", "--yes", job, "nothing", check=False).returncode, 1)
        self.assertIn(self.show(job)["state"], ("Starting", "Running"))

    def test_tasks_may_clean_up(self):
        job = self.run_detached("""
            name: clean
            roles: {worker: {command: 'trap "echo saving; exit 0" TERM; echo ready; sleep 600 & wait'}}
            """)
        wait_until(lambda: b"ready" in self.log(job, "worker:0"), "the trap is set")
        self.muster("stop", job)
        self.assertEqual(self.log(job, "worker:0"), b"ready\nsaving\n")


class ResumeTest(MusterTest):
    TEXT = """
        name: resumed
        model_dir: out
        roles: {worker: {command: 'echo "resume=$MUSTER_RESUME step=$MUSTER_RESUME_STEP dir=$MUSTER_MODEL_DIR"; [ -e fine ] || exit 1'}}
        """

    def test_a_resumed_job_can_be_resumed(self):
        first = self.muster("run", self.write("job.yaml", self.TEXT), check=False)
        self.assertIn("resume= step=", first.stdout)
        one = self.jobs()[0]
        second = self.muster("resume", "resumed", "--from", "40", check=False)
        self.assertEqual(second.returncode, 1)
        self.assertIn(f"resume=1 step=40 dir={self.dir}/out", second.stdout)
        two = self.jobs()[0]
        self.assertEqual(two["resumed_from"], one["id"])
        self.write("fine", "")
        third = self.muster("resume", "resumed", cwd="/")
        self.assertIn(f"resume=1 step= dir={self.dir}/out", third.stdout)
        self.assertIn(f"resumes {two['id']}", third.stderr)
        three = self.jobs()[0]
        self.assertEqual(three["resumed_from"], two["id"])
        self.assertEqual({job["model_dir"] for job in (one, two, three)}, {str(self.dir / "out")})
        self.assertEqual(len({job["id"] for job in (one, two, three)}), 3)

    def test_detached(self):
        self.write("fine", "")
        self.muster("run", self.write("job.yaml", self.TEXT))
        self.muster("resume", "-d", "resumed")
        self.wait_state(self.jobs()[0]["id"], "Succeeded")
        self.assertEqual(len(self.jobs()), 2)

    def test_rejected_while_it_runs(self):
        job = self.run_detached(SLEEPER.format(name="running"))
        result = self.muster("resume", job, check=False)
        self.assertEqual(result.returncode, 1)
        self.assertIn(f"muster stop {job}", result.stderr)
        self.assertEqual(len(self.jobs()), 1)

    def test_rejected_while_a_later_run_of_the_name_runs(self):
        first = self.run_detached(SLEEPER.format(name="running"))
        self.muster("stop", first)
        second = self.run_detached(SLEEPER.format(name="running"))
        result = self.muster("resume", first, check=False)
        self.assertEqual(result.returncode, 1)
        self.assertIn(second, result.stderr)

    def test_wrong_step(self):
        self.assertEqual(self.muster("resume", "x", "--from", "-1", check=False).returncode, 2)


if __name__ == "__main__":
    unittest.main()
