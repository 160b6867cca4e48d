"""muster top, on a real terminal whose output a small emulator shows."""
import fcntl
import pathlib
import re
import signal
import sqlite3
import struct
import termios
import unittest

from support import MusterTest, wait_until

TRAINING = """
    name: {name}
    roles:
      chief:
        command: |
          n=0
          while [ ! -e end ]; do
            n=$((n+1))
            printf '{{"step": %d, "steps": 90000, "loss": 0.25}}' $n > "$MUSTER_PROGRESS_FILE.new"
            mv "$MUSTER_PROGRESS_FILE.new" "$MUSTER_PROGRESS_FILE"
            echo "line $n"
            sleep 0.1
          done
      worker: {{command: 'printf "\\033]0;title\\007\\033[2Jclear\\n"; exec sleep 600'}}
    """
ENTER, LEAVE = "\x1b[?1049h", "\x1b[?1049l"


def rows_of(output, rows, columns):
    """Returns the lines of the screen after `output`. Fails on a sequence that top has no reason to send."""
    screen, row, column = [" " * columns] * rows, 0, 0
    for part in re.split(r"(\x1b\[[0-9;?]*[A-Za-z])", output):
        if not part.startswith("\x1b"):
            if re.search(r"[\x00-\x1f\x7f-\x9f]", part):
                raise AssertionError(f"control characters: {part!r}")
            screen[row] = (screen[row][:column] + part + screen[row][column + len(part):])[:columns]
            column += len(part)
        elif part == "\x1b[2J":
            screen = [" " * columns] * rows
        elif part == "\x1b[K":
            screen[row] = screen[row][:column].ljust(columns)
        elif moved := re.fullmatch(r"\x1b\[(?:(\d+);(\d+))?H", part):
            row, column = (int(number or 1) - 1 for number in moved.groups())
            row = min(row, rows - 1)
        elif not re.fullmatch(r"\x1b\[([0-7]|3[0-7])m|\x1b\[\?(25|7|1049)[hl]", part):
            raise AssertionError(f"unexpected sequence: {part!r}")
    return [line.rstrip() for line in screen]


class TopTest(MusterTest):
    def top(self, columns=100, rows=24):
        self.size = rows, columns
        self.screen = self.terminal("top", columns=columns, rows=rows)
        wait_until(lambda: ENTER in self.screen.output, "it has started")
        return self.screen

    def shown(self):
        output = self.screen.output
        # A sequence may have arrived in part.
        output = output[:-len(cut.group())] if (cut := re.search(r"\x1b[^A-Za-z]*$", output)) else output
        return "\n".join(rows_of(output[output.rindex(ENTER):], *self.size))

    def expect(self, pattern):
        try:
            return wait_until(lambda: re.search(pattern, self.shown(), re.M), f"the screen shows {pattern}")
        except AssertionError as error:
            raise AssertionError(f"{error}; it shows:\n{self.shown()}") from None

    def resize(self, columns, rows):
        self.size = rows, columns
        fcntl.ioctl(self.screen._master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def is_raw(self):
        return not termios.tcgetattr(self.screen._master)[3] & termios.ICANON

    def expect_restored(self, code):
        self.assertEqual(self.screen.wait(), code)
        self.assertTrue(self.screen.output.endswith("\x1b[0m\x1b[?7h\x1b[?25h" + LEAVE), self.screen.output[-60:])
        self.assertFalse(self.is_raw())

    def train(self, name="digits"):
        return self.run_detached(TRAINING.format(name=name), f"{name}.yaml")

    def test_a_job_is_followed_opened_and_stopped(self):
        job = self.train()
        self.top()
        first = int(self.expect(rf"^> Running +{job} +(\d+)/90000 +0\.2500 .* 2/2 ").group(1))
        wait_until(lambda: int(self.expect(r"(\d+)/90000").group(1)) > first, "its step grows")
        self.screen.send("\r")
        self.expect(rf"^{job}  Running  local, ")
        self.expect(r"^  chief:0 +Running +1 +0 ")
        line = int(self.expect(r"^chief:0 \| line (\d+)\n(?!chief)").group(1))
        self.expect(rf"^chief:0 \| line {line + 10}$")
        self.screen.send("s")
        self.expect(rf"^Stop {job} \(Running, 2 tasks\)\? y/n$")
        self.screen.send("n")
        self.expect("^nothing was stopped")
        self.assertEqual(self.show(job)["state"], "Running")
        self.screen.send("sy")
        self.wait_state(job, "Stopped")
        self.expect(rf"^{job}  Stopped")
        self.screen.send("\x1b")
        self.expect(rf"^> Stopped +{job}")
        self.screen.send("q")
        self.expect_restored(0)

    def test_output_of_a_task_is_inert(self):
        self.train()
        self.top()
        self.expect("^> Running")
        self.screen.send("\r")
        self.expect(r"^worker:0 \| \^\[\]0;title\^G\^\[\[2Jclear$")  # rows_of() fails on any other sequence

    def test_a_hostile_name_is_inert(self):
        self.muster("run", self.write("job.yaml", "{name: tame, roles: {worker: {command: 'true'}}}"))
        with sqlite3.connect(self.home / "history.db") as history:
            history.execute("UPDATE jobs SET name = ?", ("\x1b]0;title\x07\x1b[2Jname\x9b",))
        self.top(columns=160)
        self.expect(r"^> Succeeded +tame-\w+ +\^\[\]0;title\^G")

    def test_filter_and_active(self):
        for name in ("first", "second"):
            self.muster("run", self.write("job.yaml", f"{{name: {name}, roles: {{worker: {{command: 'true'}}}}}}"))
        running = self.train("third")
        self.top()
        self.expect("^muster top  3 jobs, 1 active")
        self.screen.send("/SEC")
        self.expect("^filter: SEC_")
        self.expect("^> Succeeded +second-")
        self.assertNotIn("first-", self.shown())
        self.screen.send("\r")
        self.expect("filter: SEC  1 shown")
        self.screen.send("\x1b")
        self.expect("first-")
        self.screen.send("a")
        self.expect(rf"only active\n.*\n> Running +{running}.*\n\n")
        self.screen.send("a\x1b[B\x1b[B")
        self.expect("^> Succeeded +first-")
        self.screen.send("?")
        self.expect("PgUp, PgDn +a page")

    def test_resize(self):
        job = self.train()
        self.top()
        self.expect(rf"^> Running +{job} ")
        for columns, rows in ((40, 10), (20, 4), (160, 40), (80, 24)):
            self.resize(columns, rows)
            self.expect(r"^> Running")
            self.assertLessEqual(max(map(len, self.shown().splitlines())), columns)
        self.resize(160, 40)
        self.expect(r"STATE +JOB +NAME +PLATFORM +STEP +LOSS +RATE +ETA +TASKS +AGE")

    def test_signals_restore_the_terminal(self):
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            self.top()
            wait_until(self.is_raw, "keys are read one by one")
            self.screen.process.send_signal(number)
            self.expect_restored(128 + number)
        self.top()
        self.screen.interrupt()
        self.expect_restored(130)

    def test_suspended_and_continued(self):
        self.top()
        self.expect("^muster top  0 jobs")
        process = self.screen.process
        process.send_signal(signal.SIGTSTP)
        wait_until(lambda: pathlib.Path(f"/proc/{process.pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "T", "it is stopped")
        self.assertFalse(self.is_raw())
        wait_until(lambda: self.screen.output.endswith(LEAVE), "the terminal is restored")
        process.send_signal(signal.SIGCONT)
        wait_until(lambda: self.screen.output.count(ENTER) == 2, "it continues")
        self.expect("^muster top  0 jobs")
        self.screen.send("q")
        self.expect_restored(0)

    def test_many_jobs(self):
        self.muster("run", self.write("job.yaml", "{name: one, roles: {worker: {command: 'true'}}}"))
        with sqlite3.connect(self.home / "history.db") as history:
            columns = [row[1] for row in history.execute("PRAGMA table_info(jobs)")]
            values = ", ".join({"id": "'one-' || n"}.get(column, column) for column in columns)
            history.execute(f"WITH RECURSIVE many(n) AS (SELECT 10000 UNION ALL SELECT n + 1 FROM many WHERE n < 19999) "
                            f"INSERT INTO jobs ({', '.join(columns)}) SELECT {values} FROM jobs, many")
        self.top()
        self.expect("^muster top  10001 jobs, 0 active")
        self.screen.send("\x1b[F")
        self.expect("^> Succeeded +one-")
        self.screen.send("/one-12345")
        self.expect(r"10001 jobs.* 1 shown\n.*\n> Succeeded +one-12345")

    def test_without_a_terminal(self):
        refused = self.muster("top", check=False)
        self.assertEqual(refused.returncode, 1)
        self.assertIn("`muster jobs`", refused.stderr)
        self.assertIn("`muster show --json JOB`", refused.stderr)
        dumb = self.terminal("top", env={**self.env, "TERM": "dumb"})
        self.assertEqual(dumb.wait(), 1)
        self.assertNotIn("\x1b", dumb.output)


if __name__ == "__main__":
    unittest.main()
