"""The progress file of a task, as a user sees it."""
import os
import re
import stat
import unittest

from support import MusterTest, wait_until

# Stays at one step until the file `more` exists, then continues until `go` exists.
TASK = r"""
    name: steps
    roles:
      {role}:
        command: |
          echo begun
          tell() {{ printf '%s' "$1" > "$MUSTER_PROGRESS_FILE.new"; mv "$MUSTER_PROGRESS_FILE.new" "$MUSTER_PROGRESS_FILE"; }}
          tell '{{"step": 760, "steps": 2000, "loss": 0.0712, "examples_per_second": 5321.4}}'
          until [ -e more ]; do sleep 0.05; done
          echo a line of the log
          i=1000
          until [ -e go ]; do tell "{{\"step\": $i, \"steps\": 2000}}"; i=$((i + 1)); sleep 0.1; done
    """


def screen(output):
    """Returns the lines of a terminal after `output`, which moves the cursor only to the start of a line."""
    lines, column = [""], 0
    for piece in re.findall(r"\x1b\[[0-9;]*[A-Za-z]|[^\x1b]", output):
        if piece == "\n":
            lines.append("")
            column = 0
        elif piece == "\r":
            column = 0
        elif piece == "\x1b[K":
            lines[-1] = lines[-1][:column]
        elif not piece.startswith("\x1b"):
            lines[-1] = lines[-1][:column] + piece + lines[-1][column + 1:]
            column += 1
    return lines


class ProgressTest(MusterTest):
    def setUp(self):
        super().setUp()
        for name in ("LC_ALL", "LC_CTYPE"):
            self.env.pop(name, None)
        self.env["LANG"] = "C.UTF-8"

    def job(self, role="worker"):
        return self.write("job.yaml", TASK.format(role=role))

    def test_a_bar_below_the_output(self):
        terminal = self.terminal("run", self.job(), columns=100)
        terminal.expect("38% ███████▌              step 760/2000  loss 0.0712  5,321 examples/s")
        self.write("more", "")
        terminal.expect("a line of the log")
        bar = re.compile(r"  5\d% █+.*  step 1\d\d\d/2000  \d+:\d\d left")
        wait_until(lambda: bar.fullmatch(screen(terminal.output)[-1]), "the last line is the bar")
        self.assertTrue(any(line.startswith("worker:0 | a line of the log") for line in screen(terminal.output)))
        self.write("go", "")
        self.assertEqual(terminal.wait(), 0)
        self.assertFalse([line for line in screen(terminal.output) if "%" in line], terminal.output)
        self.assertRegex(screen(terminal.output)[-2], r"^steps-\w{5} Succeeded")

    def test_logs_show_it_too(self):
        job = self.run_detached(TASK.format(role="chief"))
        terminal = self.terminal("logs", "-f", job)
        terminal.expect("step 760/2000")
        terminal.interrupt()
        self.assertEqual(terminal.wait(), 130)
        self.assertNotIn("%", screen(terminal.output)[-1])
        as_json = self.terminal("logs", "-f", "--json", job)
        as_json.expect("begun")
        self.write("more", "")
        as_json.expect("a line of the log")
        self.write("go", "")
        self.assertEqual(as_json.wait(), 0)
        self.assertNotIn("%", as_json.output)

    def test_an_ascii_terminal_without_colours(self):
        terminal = self.terminal("run", self.job(), columns=100, env=dict(self.env, LC_ALL="C", NO_COLOR="1"))
        terminal.expect("38% [#######             ]  step 760/2000")
        for name in ("more", "go"):
            self.write(name, "")
        self.assertEqual(terminal.wait(), 0)
        self.assertNotRegex(terminal.output, r"\x1b\[[0-9;]*m")

    def test_no_progress_without_a_terminal(self):
        for name in ("more", "go"):
            self.write(name, "")
        dumb = self.terminal("run", self.job(), env=dict(self.env, TERM="dumb"))
        self.assertEqual(dumb.wait(), 0)
        self.assertNotIn("%", dumb.output)
        result = self.muster("run", self.dir / "job.yaml")
        self.assertEqual(result.stdout, "worker:0 | begun\nworker:0 | a line of the log\n")
        self.assertNotIn("%", result.stderr)
        self.assertNotIn("\x1b", result.stderr)

    def test_output_may_go_elsewhere(self):
        with open(self.dir / "out", "w") as out:
            terminal = self.terminal("run", self.job(), stdout=out)
            terminal.expect("step 760/2000")
            for name in ("more", "go"):
                self.write(name, "")
            self.assertEqual(terminal.wait(), 0)
        self.assertEqual((self.dir / "out").read_text(), "worker:0 | begun\nworker:0 | a line of the log\n")

    def test_show(self):
        job = self.run_detached(TASK.format(role="worker"))
        progress = wait_until(lambda: self.show(job)["progress"], "there is progress")
        self.assertEqual(progress, {"step": 760, "steps": 2000, "loss": 0.0712, "examples_per_second": 5321.4})
        self.assertIn("\nProgress: step 760 of 2000, loss 0.0712, 5,321 examples/s\n", self.muster("show", job).stdout)

    def test_no_progress(self):
        job = self.run_detached("name: quiet\nroles: {worker: {command: 'touch $MUSTER_PROGRESS_FILE; exec sleep 600'}}\n")
        self.wait_state(job, "Running")
        self.assertIsNone(self.show(job)["progress"])
        self.assertNotIn("Progress", self.muster("show", job).stdout)

    def test_a_hostile_file(self):
        attacks = {
            "commands": r"""printf '{"step": 1, "loss": "\033[2J", "note": "\033]0;title\007"}' > $P""",
            "huge": "truncate -s 1G $P",
            "pipe": "mkfifo $P",
            "endless": "ln -s /dev/zero $P",
            "beyond": """printf '{"step": 5000, "steps": 20, "loss": NaN}' > $P""",
        }
        for name, attack in attacks.items():
            self.write("attack.sh", f"P=$MUSTER_PROGRESS_FILE\n{attack}\necho done\nuntil [ -e go ]; do sleep 0.05; done\n")
            terminal = self.terminal("run", self.write("job.yaml", f"name: {name}\nroles: {{chief: {{command: sh attack.sh}}}}\n"))
            terminal.expect("| done")
            if name == "beyond":
                terminal.expect("100% ")
                terminal.expect("step 5000/20  loss nan")
            self.show(name)
            self.write("go", "")
            self.assertEqual(terminal.wait(), 0)
            (self.dir / "go").unlink()
            for sent in ("\x1b]0;", "\x1b[2J", "\x07"):
                self.assertNotIn(sent, terminal.output)


class SocketFolderTest(MusterTest):
    def test_tasks_have_a_private_folder_for_sockets(self):
        job = self.run_detached("""
            name: meet
            roles:
              worker: {replicas: 2, command: 'echo "$MUSTER_SOCKET_DIR $MUSTER_EVALUATORS" > told.{index}; exec sleep 600'}
              evaluator: {command: exec sleep 600}
            """)
        told = {self.wait_file(f"told.{index}").strip() for index in (0, 1)}
        folder = self.home / "jobs" / job / "sockets"
        self.assertEqual(told, {f"{folder} 1"})
        self.assertEqual(stat.S_IMODE(os.stat(folder).st_mode), 0o700)
        by_hand = self.muster("env", job, "worker", "0").stdout
        self.assertNotIn("export MUSTER_SOCKET_DIR", by_hand)
        self.assertIn("export MUSTER_EVALUATORS=1\n", by_hand)


if __name__ == "__main__":
    unittest.main()
