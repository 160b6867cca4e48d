"""Output and keys on a terminal."""
import re
import signal
import time
import unittest

from support import MusterTest, is_alive, plain, wait_until

GOOD = "name: good\nroles: {chief: {command: 'echo hi; sleep 0.1'}, worker: {command: 'echo there; sleep 0.1'}}\n"


class ColourTest(MusterTest):
    def test_a_terminal_gets_colours_and_a_table_of_tasks_coming_up(self):
        terminal = self.terminal("run", self.write("job.yaml", GOOD))
        self.assertEqual(terminal.wait(), 0)
        self.assertIn("\x1b[", terminal.output)
        text = plain(terminal.output)
        self.assertRegex(text, r"TASK +ID +STATE")
        self.assertRegex(text, r"worker:0 \| there")
        self.assertRegex(terminal.output, r"\x1b\[3\dm(worker:0 \||chief:0  \|)\x1b\[0m")
        self.assertRegex(text, r"good-\w{5} Succeeded")

    def test_no_color_is_respected(self):
        for variable, value in (("NO_COLOR", "1"), ("TERM", "dumb")):
            terminal = self.terminal("run", self.write("job.yaml", GOOD), env=dict(self.env, **{variable: value}))
            self.assertEqual(terminal.wait(), 0)
            self.assertNotRegex(terminal.output, r"\x1b\[[0-9;]*m", variable)

    def test_a_dumb_terminal_gets_no_cursor_moves(self):
        terminal = self.terminal("run", self.write("job.yaml", GOOD), env=dict(self.env, TERM="dumb"))
        self.assertEqual(terminal.wait(), 0)
        self.assertNotIn("\x1b", terminal.output)

    def test_states_are_coloured_in_listings(self):
        self.muster("run", self.write("job.yaml", GOOD))
        for command in ("jobs", "show"):
            terminal = self.terminal(command)
            terminal.wait()
            self.assertIn("\x1b[32mSucceeded", terminal.output)
            self.assertNotIn("\x1b", self.muster(command).stdout)

    def test_a_narrow_terminal(self):
        self.muster("run", self.write("job.yaml", """
            name: good
            roles: {worker: {replicas: 2, command: 'echo a long command so that there is something to cut'}}
            """))
        for command in ("jobs", "show"):
            for columns in (20, 80, 100):
                terminal = self.terminal(command, columns=columns)
                self.assertEqual(terminal.wait(), 0)
                table = re.search(r"^(JOB|TASK) .*", plain(terminal.output), re.M | re.S).group().splitlines()
                self.assertGreaterEqual(len(table), 2)
                for line in table:
                    self.assertLessEqual(len(line), columns, terminal.output)
        self.assertRegex(plain(self.shown(80)), r"TASK +ID +STATE +PID +ADDRESS +(STARTED +)?RESTARTS +NOTE")
        self.assertRegex(plain(self.shown(200)), r"TASK +ID +STATE +HOST +PID +ADDRESS +COMMAND +STARTED +RESTARTS")

    def shown(self, columns):
        terminal = self.terminal("show", columns=columns)
        self.assertEqual(terminal.wait(), 0)
        return terminal.output

    QUIET = """
        name: quiet
        roles:
          chief: {command: 'until [ -e go ]; do sleep 0.05; done'}
          ps: {replicas: 3, ready: listening, command: 'exec /usr/bin/python3 -m http.server --bind 127.0.0.1 {port} > /dev/null 2>&1'}
        """

    def started(self, **size):
        terminal = self.terminal("run", self.write("job.yaml", self.QUIET), **size)
        terminal.expect("every task is up")
        self.write("go", "")
        self.assertEqual(terminal.wait(), 0)
        (self.dir / "go").unlink()
        return terminal.output

    def test_the_table_of_tasks_is_drawn_in_its_place(self):
        output = self.started(columns=100)
        self.assertIn("\x1b[5A\x1b[J", output)
        self.assertNotIn("waiting until it listens", output)
        self.assertNotIn("TASK", plain(output[output.index("every task is up"):]))
        for line in plain(output).splitlines():
            self.assertLessEqual(len(line), 100)

    def test_a_table_that_does_not_fit_is_not_drawn(self):
        output = plain(self.started(rows=5))
        self.assertNotIn("TASK", output)
        self.assertIn("ps:2 running", output)

    def test_the_table_ends_where_output_begins(self):
        terminal = self.terminal("run", self.write("job.yaml", """
            name: mixed
            roles:
              chief: {command: 'echo begun; until [ -e go ]; do sleep 0.05; done'}
              ps: {ready: listening, command: 'until [ -e listen ]; do sleep 0.05; done; exec /usr/bin/python3 -m http.server --bind 127.0.0.1 {port} > /dev/null 2>&1'}
            """))
        terminal.expect("| begun")
        self.write("listen", "")
        terminal.expect("every task is up")
        self.write("go", "")
        self.assertEqual(terminal.wait(), 0)
        below = terminal.output[terminal.output.index("begun"):]
        self.assertNotIn("TASK", below)
        self.assertNotRegex(below, r"\x1b\[\d+A")
        self.assertIn("ps:0 running", below)

    def test_control_characters_of_a_task_do_not_reach_the_terminal(self):
        job = self.write("job.yaml", r"""
            name: rude
            roles: {worker: {command: 'printf "\033]0;title\007\033[2Jclear\377\n"'}}
            """)
        terminal = self.terminal("run", job)
        self.assertEqual(terminal.wait(), 0)
        self.assertNotIn("\x1b]0;", terminal.output)
        self.assertNotIn("\x1b[2J", terminal.output)
        self.assertNotIn("\x07", terminal.output)
        self.assertIn("clear", terminal.output)

    # Terminal control sequences in YAML: a title, clear screen, hidden text, C1, reversed order.
    HOSTILE = r"\e]0;title\a\e[2J\e[8m\u009b1A\u202e\r"

    def assert_harmless(self, text):
        for bad in ("\x1b]", "\x1b[2J", "\x1b[8m", "\x07", "\x9b", "\u202e", "title\r"):
            self.assertNotIn(bad, text)

    def say(self, *args, code=None):
        """Returns the output of muster on a terminal, and in pipes."""
        terminal = self.terminal(*args)
        ended = terminal.wait()
        self.assert_harmless(terminal.output)
        piped = self.muster(*args, check=False)
        self.assert_harmless(piped.stdout + piped.stderr)
        self.assertNotIn("\x1b", piped.stdout + piped.stderr)
        if code is not None:
            self.assertEqual((ended, piped.returncode), (code, code))
        return plain(terminal.output)

    def test_control_characters_of_a_job_file_do_not_reach_the_terminal(self):
        job = self.write("job.yaml", f"""
            name: rude
            env: {{A: "{self.HOSTILE}"}}
            model_dir: "/tmp/{self.HOSTILE.replace(chr(92) + 'e]0;', '')}"
            roles: {{worker: {{command: [sh, -c, "exit 3", "x{self.HOSTILE}"], image: "i{self.HOSTILE}"}}}}
            """)
        self.assertIn("^[]0;title^G", self.say("run", "--dry-run", job, code=0))
        self.assertIn("x^[]0;title^G", self.say("run", job, code=1))
        for args in (("show",), ("show", "--events"), ("jobs",), ("explain", job), ("doctor", job), ("explain", job, "--on", "vertex")):
            self.say(*args)
        command = self.show("rude")["tasks"][0]["command"]
        self.assertIn("\x1b]0;title\x07\x1b[2J\x1b[8m\u009b1A\u202e\r", command)
        self.assertIn("\u202e", self.muster("env", job, "worker", "0").stdout)

    def test_control_characters_of_mistakes_do_not_reach_the_terminal(self):
        for text in (f'{{name: j, roles: {{worker: {{command: ["no{self.HOSTILE}"]}}}}}}',
                     f'{{name: j, roles: {{worker: {{command: x, working_dir: "{self.HOSTILE}"}}}}}}',
                     f'{{name: "{self.HOSTILE}", roles: {{worker: {{command: x}}}}}}',
                     f'{{name: j, "{self.HOSTILE}": 1, roles: {{"{self.HOSTILE}": {{command: x}}}}}}',
                     f'{{name: j, hosts: ["{self.HOSTILE}"], roles: {{worker: {{command: x}}}}}}'):
            self.assertIn("error", self.say("run", self.write("job.yaml", text), code=2))
        self.say("show", "\x1b]0;title\x07\u202e", code=1)
        self.say("run", "\x1b]0;title\x07.yaml", code=2)

    def test_control_characters_of_a_diff_do_not_reach_the_terminal(self):
        text = "name: rude\nroles: {worker: {command: 'sleep 600'}}\n"
        self.run_detached(text)
        self.write("job.yaml", text.replace("600", "601") + "# \u202e\u009b1A\n")
        self.assertIn("+# \ufffd\ufffd1A", self.say("run", "--dry-run", "job.yaml", code=0))

    def test_control_characters_of_file_names_do_not_reach_the_terminal(self):
        (self.dir / "files").mkdir()
        (self.dir / "files" / "a\x1b]0;title\x07\u202e").write_text("\x1b[2J")
        self.say("storage", "ls", self.dir / "files", code=0)
        terminal = self.terminal("storage", "cat", self.dir / "files" / "a\x1b]0;title\x07\u202e")
        self.assertEqual(terminal.wait(), 0)
        self.assert_harmless(terminal.output)

    def test_a_long_name_leaves_room_for_the_other_columns(self):
        name = "n" * 63
        self.muster("run", self.write("job.yaml", f"name: {name}\nroles: {{worker: {{command: 'true'}}}}\n"))
        job = self.jobs()[0]["id"]
        terminal = self.terminal("jobs", columns=80)
        self.assertEqual(terminal.wait(), 0)
        line = plain(terminal.output).splitlines()[1]
        self.assertRegex(line, rf"^nn+…n*{job[-6:]} +Succeeded +local +1 ")
        self.assertLessEqual(len(line), 80)
        self.assertIn(job, self.muster("jobs").stdout)

    def test_a_progress_bar_shows_its_last_state(self):
        result = self.muster("run", self.write("job.yaml", r"""
            name: bar
            roles: {worker: {command: 'for i in 1 2 3; do printf "step $i\r"; done; printf "step 4\ndone\n"'}}
            """))
        self.assertEqual(result.stdout, "worker:0 | step 4\nworker:0 | done\n")


class InterruptTest(MusterTest):
    POLITE = """
        name: polite
        roles: {worker: {replicas: 2, command: 'trap "echo saving; touch saved.{index}; exit 0" TERM; echo ready; sleep 600 & wait'}}
        """
    STUBBORN = """
        name: stubborn
        roles: {worker: {command: 'trap "" TERM; echo ready; while true; do sleep 0.05; done'}}
        policies: {stop_grace: 300s}
        """

    def test_one_interrupt_stops_gracefully(self):
        terminal = self.terminal("run", self.write("job.yaml", self.POLITE))
        wait_until(lambda: terminal.output.count("ready") >= 2, "both are up")
        terminal.interrupt()
        self.assertEqual(terminal.wait(), 130)
        text = plain(terminal.output)
        self.assertIn("Ctrl-C again", text)
        self.assertEqual(text.count("| saving"), 2)
        self.assertTrue((self.dir / "saved.0").exists() and (self.dir / "saved.1").exists())
        self.assertEqual(self.show("polite")["state"], "Stopped")

    def test_two_interrupts_kill(self):
        terminal = self.terminal("run", self.write("job.yaml", self.STUBBORN))
        terminal.expect("| ready")
        pid = self.pids("stubborn")["worker:0"]
        terminal.interrupt()
        terminal.expect("Ctrl-C again")
        self.assertTrue(is_alive(pid))
        terminal.interrupt()
        self.assertEqual(terminal.wait(timeout=30), 130)
        self.assertFalse(is_alive(pid))
        self.assertEqual(self.show("stubborn")["state"], "Stopped")

    def test_at_any_moment_of_the_start(self):
        for i in range(12):
            path = self.write("job.yaml", f"name: early{i}\nroles: {{worker: {{replicas: 8, command: 'exec sleep 600'}}}}\n")
            terminal = self.terminal("run", path)
            # A random moment, from before the job exists until all of its tasks run.
            for _ in range(i):
                if list(self.home.glob(f"jobs/early{i}-*/logs/*")):
                    break
                time.sleep(0.003)
            terminal.interrupt()
            self.assertIn(terminal.wait(), (130, -signal.SIGINT))
        for job in self.jobs():
            wait_until(lambda job=job: self.show(job["id"])["state"] in ("Stopped", "Failed"), f"{job['id']} has ended", 15)

    def test_a_closed_window_leaves_the_job_running(self):
        terminal = self.terminal("run", self.write("job.yaml", self.POLITE))
        wait_until(lambda: terminal.output.count("ready") >= 2, "both are up")
        pids = self.pids("polite")
        terminal.hang_up()
        terminal.process.wait(30)
        self.assertEqual(self.show("polite")["state"], "Running")
        self.assertTrue(all(is_alive(pid) for pid in pids.values()))
        self.assertFalse((self.dir / "saved.0").exists())

    def test_a_stopped_run_does_not_stop_the_job(self):
        run = self.start("run", self.write("job.yaml", self.POLITE))
        self.assertIn("ready", run.stdout.readline())
        run.kill()
        run.wait()
        self.assertEqual(self.show("polite")["state"], "Running")

    def test_interrupting_at_a_question_changes_nothing(self):
        job = self.run_detached(self.POLITE)
        self.wait_state(job, "Running")
        terminal = self.terminal("stop", job)
        terminal.expect("[y/n]")
        terminal.interrupt()
        self.assertIn(terminal.wait(), (130, -signal.SIGINT))
        self.assertEqual(self.show(job)["state"], "Running")


if __name__ == "__main__":
    unittest.main()
