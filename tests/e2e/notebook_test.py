"""muster notebook on this machine, with a real Jupyter: Debian's, and the newest of the Python package index."""
import json
import os
import pathlib
import re
import signal
import socket
import stat
import unittest

from hosts import own_hosts
from jupyter import JupyterClient
from support import MusterTest, free_ports, plain, processes_with, wait_until
from venvs import venv

PASSWORD = "correct horse battery"
# Reports a loss through the metrics file.
OWN = """
    name: own
    env: {RATE: "0.5"}
    model_dir: model
    roles:
      chief:
        command: |
          for step in 10 20 30; do
            echo "{\\"step\\": $step, \\"loss\\": $RATE$step}" >> "$MUSTER_METRICS_FILE"
          done
      worker: {replicas: 2, command: 'true'}
"""


class NotebookTest(MusterTest):
    def setUp(self):
        super().setUp()
        # Jupyter must not find the settings of the user that runs the tests.
        self.user = self.dir / "user"
        self.user.mkdir()
        self.env["HOME"] = str(self.user)
        for name in [name for name in self.env if name.startswith(("JUPYTER", "IPYTHON", "XDG_"))]:
            del self.env[name]
        self.addCleanup(self.end_notebooks)

    def end_notebooks(self):
        """Kills what a failed test has left; a test that passes has left nothing."""
        left = self.processes()
        for pid in left:
            os.kill(pid, signal.SIGKILL)
        self.assertEqual(left, [], "processes were left running")

    def processes(self):
        """Returns the processes of notebooks of this test."""
        ours = set(processes_with(f"MUSTER_HOME={self.home}"))
        return [pid for pid in ours if any(f"MUSTER_NOTEBOOK_JOB={job}" in self.environment(pid) for job in self.subjects())]

    def subjects(self):
        return {*(path.name for path in self.home.glob("jobs/*")), *(path.name[:-9] for path in self.home.glob("notebooks/*"))}

    @staticmethod
    def environment(pid):
        try:
            return pathlib.Path(f"/proc/{pid}/environ").read_text(errors="replace").split("\0")
        except OSError:
            return []

    def run_own(self, *options):
        self.muster("run", self.write("own.yaml", OWN), *options)
        return self.jobs()[0]["id"]

    def password_file(self, text=PASSWORD + "\n"):
        path = self.write("password", text)
        path.chmod(0o600)
        return path

    def refused(self, *args, code=1, **kwargs):
        """Returns the message of a `muster notebook` that fails and leaves nothing running."""
        result = self.muster("notebook", *args, check=False, **kwargs)
        self.assertEqual(result.returncode, code, result.stdout + result.stderr)
        self.assertNotIn("http://", result.stdout)
        wait_until(lambda: not self.processes(), "nothing is left")
        return result.stderr

    @staticmethod
    def link(text):
        found = re.search(r"http://127\.0\.0\.1:(\d+)/\S*", text)
        if found is None:
            raise AssertionError(f"no link in {text!r}")
        return found.group()

    def client(self, url, password=None):
        client = JupyterClient(url)
        self.addCleanup(client.close)
        if password is not None:
            self.assertEqual(client.log_in(password), 302)
        return client


class JupyterTest(NotebookTest):
    """With Debian's package."""

    def setUp(self):
        if not pathlib.Path("/usr/bin/jupyter-notebook").exists():
            self.skipTest("no jupyter-notebook; apt-get install jupyter-notebook")
        super().setUp()

    def detached(self, *args, **kwargs):
        """Starts a notebook in the background. Returns its link."""
        return self.link(self.muster("notebook", "-d", *args, **kwargs).stdout)

    def in_foreground(self, *args):
        """Starts a notebook. Returns the process and the link."""
        process = self.start("notebook", *args)
        lines = []
        while not lines or "Ctrl-C" not in lines[-1]:
            lines.append(process.stdout.readline())
            self.assertTrue(lines[-1], f"{lines}: it ended: {process.stderr.read() if process.poll() is not None else ''}")
        return process, self.link("".join(lines))

    def jupyters(self):
        """Returns the pids of Jupyter itself."""
        def command(pid):
            try:
                return pathlib.Path(f"/proc/{pid}/cmdline").read_text().split("\0")
            except OSError:
                return []
        return [pid for pid in self.processes() if any("jupyter-notebook" in word for word in command(pid)[:2])]

    def test_the_password_the_environment_and_the_cells(self):
        job = self.run_own()
        said = self.muster("notebook", "-d", job, "--password-file", self.password_file()).stdout
        url = self.link(said)
        self.assertTrue(url.endswith("/notebooks/metrics.ipynb"), url)
        self.assertNotIn(PASSWORD, said)

        stranger = self.client(url)
        self.assertEqual(stranger.log_in("wrong password"), 401)
        self.assertEqual(stranger.get("api/contents").status_code, 403)
        self.assertEqual(stranger.get("api/contents?token=").status_code, 403)
        client = self.client(url, PASSWORD)
        self.assertEqual(client.get("api/contents").status_code, 200)
        self.assertEqual(client.get("notebooks/metrics.ipynb").status_code, 200)

        kernel = client.start_kernel()
        text, shown = client.run(kernel, *client.cells("metrics.ipynb"))
        self.assertIn(f"job: {job}", text)
        cluster = json.loads(self.muster("env", job, "--cluster").stdout)
        for role, addresses in cluster.items():
            self.assertIn(f"{role}: {addresses}", text)
        self.assertRegex(text, r"(?m)^loss +3 +30 +0\.53 +0\.51 +0\.53$")
        self.assertTrue(shown & {"image/svg+xml", "image/png"}, shown)

        variables = json.loads(client.run(kernel, "import json, os; print(json.dumps(dict(os.environ)))")[0])
        config = json.loads(variables["TF_CONFIG"])
        self.assertEqual((config["cluster"], "task" in config), (cluster, False))
        self.assertEqual(json.loads(variables["CLUSTER_CONFIG"]), cluster)
        self.assertEqual(variables["MUSTER_MODEL_DIR"], str(self.dir / "model"))
        self.assertEqual(variables["MUSTER_JOB_DIR"], str(self.home / "jobs" / job))
        self.assertEqual(variables["RATE"], "0.5")
        # Muster ends the processes with these.
        self.assertEqual(set(variables) & {"MUSTER_JOB_ID", "MUSTER_TASK"}, set())
        self.assertEqual(client.run(kernel, "print(os.path.exists('working_dir/own.yaml'))")[0], "True\n")
        self.expect_secrecy(job)
        self.muster("notebook", job, "--stop")

    def expect_secrecy(self, job):
        """The password is nowhere, and its hash in one private file."""
        folder = self.home / "jobs" / job / "notebook"
        stored = json.loads((folder / "jupyter.json").read_text())["PasswordIdentityProvider"]["hashed_password"]
        self.assertRegex(stored, r"^sha256:[0-9a-f]{16}:[0-9a-f]{64}$")
        for path in folder.rglob("*"):
            if path.is_file() and "working_dir" not in path.parts:
                self.assertNotIn(PASSWORD, path.read_text(errors="replace"), path)
                self.assertEqual(stored in path.read_text(errors="replace"), path.name == "jupyter.json", path)
        self.assertEqual(stat.S_IMODE((folder / "jupyter.json").stat().st_mode), 0o600)
        self.assertEqual(stat.S_IMODE(folder.stat().st_mode), 0o700)
        self.assertGreaterEqual(len(self.processes()), 4)  # the guard, the server, Jupyter, a kernel
        for pid in self.processes():
            for file in ("cmdline", "environ"):
                text = pathlib.Path(f"/proc/{pid}/{file}").read_text(errors="replace")
                self.assertNotIn(PASSWORD, text)
                self.assertNotIn(stored.rsplit(":", 1)[1], text)

    def test_a_second_start_finds_the_first(self):
        job = self.run_own()
        url = self.detached(job, env={**self.env, "MUSTER_NOTEBOOK_PASSWORD": PASSWORD})
        pid, = self.jupyters()
        self.assertNotIn(PASSWORD, "".join(self.environment(pid)))
        self.assertEqual(self.link(self.muster("notebook").stdout), url)  # the newest job
        again = self.muster("notebook", "own", "--port", free_ports(1)[0], "-d")
        self.assertEqual(self.link(again.stdout), url)
        self.assertIn("was running already", again.stderr)
        self.assertEqual(self.jupyters(), [pid])
        self.assertIn(f"Stopped the notebook of {job}", self.muster("notebook", "own", "--stop").stdout)
        self.assertEqual(self.processes(), [])
        self.assertIn("no notebook is running", self.refused("own", "--stop"))

        # The hash is kept, and replaced on request.
        said = self.muster("notebook", "-d", "own").stdout
        self.assertIn("that of the last time", said)
        self.client(self.link(said), PASSWORD)
        self.muster("notebook", "own", "--stop")
        said = self.muster("notebook", "-d", "own", "--new-password").stdout
        self.assertEqual(self.client(self.link(said)).log_in(PASSWORD), 401)
        self.client(self.link(said), re.search(r"Password: (\S+)", said).group(1))
        # A removed job takes its notebook along.
        self.muster("jobs", "rm", "--yes", job)
        self.assertEqual(self.processes(), [])

    def test_starts_at_the_same_time(self):
        job = self.run_own()
        password = self.password_file()
        starts = [self.start("notebook", "-d", job, "--password-file", password) for _ in range(3)]
        links = {self.link("".join(start.communicate(timeout=120))) for start in starts}
        self.assertEqual(len(links), 1, links)
        self.assertEqual(len(self.jupyters()), 1)
        self.muster("notebook", job, "--stop")

    def test_ctrl_c_ends_it_and_its_kernels(self):
        self.run_own()
        terminal = self.terminal("notebook", "own")
        terminal.expect("Password of the notebook")
        terminal.send("short\n")
        terminal.expect("too short")
        for first, second, answer in ((PASSWORD, "something else", "differ"), (PASSWORD, PASSWORD, "Ctrl-C ends it")):
            shown = plain(terminal.output).count("Password of the notebook")
            wait_until(lambda shown=shown: plain(terminal.output).count("Password of the notebook") >= shown, "it asks")
            terminal.send(first + "\n")
            wait_until(lambda: plain(terminal.output).rstrip().endswith("Once more:"), f"it asks again: {terminal.output}")
            terminal.send(second + "\n")
            terminal.expect(answer)
        self.assertNotIn(PASSWORD, terminal.output)
        client = self.client(self.link(plain(terminal.output)), PASSWORD)
        client.run(client.start_kernel(), "import subprocess; subprocess.Popen(['sleep', '1000'], start_new_session=True)")
        self.assertGreaterEqual(len(self.processes()), 5)
        terminal.interrupt()
        self.assertEqual(terminal.wait(), 130)
        self.assertEqual(self.processes(), [])

    def test_a_killed_jupyter_is_reported(self):
        job = self.run_own()
        process, url = self.in_foreground(job, "--password-file", self.password_file())
        client = self.client(url, PASSWORD)
        client.run(client.start_kernel(), "1")
        pid, = self.jupyters()
        os.kill(pid, signal.SIGKILL)
        self.assertEqual(process.wait(timeout=60), 1)
        said = process.stderr.read()
        self.assertIn("Jupyter ended: killed by SIGKILL", said)
        self.assertIn("notebook-0.log", said)
        self.assertEqual(self.processes(), [])
        # In the background nobody sees it at once.
        self.detached(job)
        pid, = self.jupyters()
        os.kill(pid, signal.SIGKILL)
        wait_until(lambda: not self.processes(), "nothing is left")
        self.assertIn("no notebook is running; Jupyter ended: killed by SIGKILL", self.refused(job, "--stop"))
        again = self.muster("notebook", "-d", job)
        self.assertIn("Jupyter ended: killed by SIGKILL", again.stderr)
        self.muster("notebook", job, "--stop")

    def test_nothing_outlives_the_command_in_the_foreground(self):
        job = self.run_own()
        for victim in ("command", "server"):
            process, url = self.in_foreground(job, "--password-file", self.password_file())
            client = self.client(url, PASSWORD)
            client.start_kernel()
            if victim == "command":
                process.kill()
            else:
                jupyter, = self.jupyters()
                server = int(pathlib.Path(f"/proc/{jupyter}/stat").read_text().rsplit(")", 1)[1].split()[1])
                os.kill(server, signal.SIGKILL)
                self.assertEqual(process.wait(timeout=60), 1)
                self.assertIn("was killed", process.stderr.read())
            wait_until(lambda: not self.processes(), "nothing is left")

    def test_a_job_file_that_has_not_run(self):
        self.write("own.yaml", OWN)
        url = self.detached("own.yaml", "--password-file", self.password_file())
        client = self.client(url, PASSWORD)
        kernel = client.start_kernel()
        cells = client.cells("metrics.ipynb")
        text, _ = client.run(kernel, *cells)
        self.assertIn("chief: ['127.0.0.1:2222']", text)
        self.assertIn("no metrics yet", text)
        self.run_own()
        text, shown = client.run(kernel, *cells)
        self.assertRegex(text, r"(?m)^loss +3 +30 +0\.53")
        self.assertTrue(shown)
        # The job has a notebook of its own.
        self.assertIn("no notebook is running", self.muster("notebook", "own", "--stop", check=False).stderr)
        self.muster("notebook", "own.yaml", "--stop")
        self.assertEqual(self.processes(), [])

    def test_a_running_job_and_edits_of_the_user(self):
        job = self.run_detached("""
            name: grows
            roles: {worker: {command: 'echo step 1 loss 0.25; until [ -e go ]; do sleep 0.05; done; echo step 2 loss 0.125; sleep 1000'}}
            """)
        wait_until(lambda: b"loss" in self.log(job, "worker:0"), "it prints")
        self.env["MUSTER_NOTEBOOK_PASSWORD"] = PASSWORD
        client = self.client(self.detached(job), PASSWORD)
        kernel, cells = client.start_kernel(), client.cells("metrics.ipynb")
        self.assertRegex(client.run(kernel, *cells)[0], r"(?m)^loss +1 +1 +0\.25")
        self.write("go", "")
        wait_until(lambda: b"0.125" in self.log(job, "worker:0"), "it goes on")
        self.assertRegex(client.run(kernel, *cells)[0], r"(?m)^loss +2 +2 +0\.125 +0\.125 +0\.25")
        # The job ends, and the notebook goes on.
        self.muster("stop", "--yes", "--now", job)
        self.assertRegex(client.run(kernel, *cells)[0], r"(?m)^loss +2 ")
        self.muster("notebook", job, "--stop")

        notebook = self.home / "jobs" / job / "notebook" / "files" / "metrics.ipynb"
        written = notebook.read_text()
        edited = written.replace("no metrics yet", "my own words")
        notebook.write_text(edited)
        self.detached(job)
        self.muster("notebook", job, "--stop")
        self.assertEqual(notebook.read_text(), edited)
        notebook.unlink()
        self.detached(job)
        self.muster("notebook", job, "--stop")
        self.assertEqual(notebook.read_text(), written)

    def test_a_job_on_hosts(self):
        bed = own_hosts(self, 1)
        self.env.update(bed.environment)
        (self.dir / "work").mkdir()
        self.muster("run", "--on", "ssh", "--hosts", ",".join(bed.hosts), self.write("work/own.yaml", OWN.replace("    model_dir: model\n", "")),
                    cwd=self.dir / "work")
        client = self.client(self.detached("own", "--password-file", self.password_file()), PASSWORD)
        text, shown = client.run(client.start_kernel(), *client.cells("metrics.ipynb"))
        self.assertIn(f"chief: {json.loads(self.muster('env', 'own', '--cluster').stdout)['chief']}", text)
        self.assertRegex(text, r"(?m)^loss +3 +30 +0\.53")
        self.assertTrue(shown)
        self.muster("notebook", "own", "--stop")

    def test_settings_of_the_user_do_not_open_it(self):
        settings = self.user / ".jupyter"
        settings.mkdir()
        # The hash of "another password".
        (settings / "jupyter_notebook_config.json").write_text(json.dumps({"NotebookApp": {
            "password": "sha256:5a17:9c3e0d51b8dd1bb4ea7f6ab2fa8e0aef31e61d1fb7ab0c4a0cd3eb0ad0f4b1c6", "token": "stolen", "ip": "0.0.0.0"}}))
        self.run_own()
        url = self.detached("--password-file", self.password_file(), env={**self.env, "JUPYTER_TOKEN": "stolen"})
        self.assertEqual(self.client(url).get("api/contents?token=stolen").status_code, 403)
        self.client(url, PASSWORD)
        port = int(url.split(":")[2].split("/")[0])
        with open("/proc/net/tcp", encoding="ascii") as table:
            local = [line.split()[1] for line in table if line.split()[3] == "0A"]
        self.assertIn(f"0100007F:{port:04X}", local)
        self.assertNotIn(f"00000000:{port:04X}", local)
        self.muster("notebook", "--stop")

    def test_ports(self):
        job = self.run_own()
        options = "-d", job, "--password-file", self.password_file()
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            port = taken.getsockname()[1]
            self.assertIn(f"port {port}", self.refused(*options, "--port", port))
        port, = free_ports(1)
        self.assertIn(f":{port}/", self.link(self.muster("notebook", *options, "--port", port).stdout))
        self.muster("notebook", job, "--stop")

    def test_the_notebook_section_of_a_job(self):
        port, = free_ports(1)
        self.muster("run", self.write("job.yaml", f"""
            name: section
            notebook: {{password: {PASSWORD}, port: {port}}}
            roles: {{worker: {{command: 'true'}}}}
            """))
        said = self.muster("notebook", "-d", "section").stdout
        self.assertIn("the job file's", said)
        self.assertIn(f":{port}/", self.link(said))
        self.client(self.link(said), PASSWORD)
        self.muster("notebook", "section", "--stop")


class WithoutJupyterTest(NotebookTest):
    """Wrong input, and programs that are no Jupyter."""

    def fake(self, script):
        path = self.write("jupyter-fake", "#!/bin/sh\n" + script)
        path.chmod(0o755)
        return path

    def test_no_jupyter(self):
        job = self.run_own()
        tools = self.dir / "bin"
        tools.mkdir()
        said = self.refused(job, env={**self.env, "PATH": str(tools)})
        for word in ("no Jupyter in PATH", "apt install jupyter-notebook", "pip install jupyterlab", "--jupyter"):
            self.assertIn(word, said)
        self.assertIn("/nonexistent/jupyter-lab", self.refused(job, "--jupyter", "/nonexistent/jupyter-lab"))
        self.assertFalse((self.home / "jobs" / job / "notebook" / "jupyter.json").exists())

    def test_passwords_that_are_refused(self):
        self.run_own()
        fake = "--jupyter", self.fake("sleep 1000")
        for text, words in (("", "empty"), ("\n", "empty"), ("short\n", "too short"), ("two\nlines of it\n", "one line")):
            self.assertIn(words, self.refused(*fake, "--password-file", self.password_file(text), code=2))
        self.assertIn("cannot read the password", self.refused(*fake, "--password-file", "absent", code=2))
        self.assertIn("cannot read the password", self.refused(*fake, "--password-file", ".", code=2))
        for value, words in (("", "empty"), ("short", "too short")):
            said = self.refused(*fake, env={**self.env, "MUSTER_NOTEBOOK_PASSWORD": value}, code=2)
            self.assertIn("MUSTER_NOTEBOOK_PASSWORD", said)
            self.assertIn(words, said)
        if os.geteuid() != 0:
            unreadable = self.password_file()
            unreadable.chmod(0)
            self.assertIn("cannot read the password", self.refused(*fake, "--password-file", unreadable, code=2))

    def test_a_program_that_fails(self):
        job = self.run_own()
        said = self.refused(job, "--jupyter", self.fake("echo no module named notebook; exit 3"))
        self.assertIn("ended before it answered: exit code 3", said)
        self.assertIn("no module named notebook", said)
        self.assertIn("no notebook is running", self.refused(job, "--stop"))

    def test_a_program_that_does_not_answer(self):
        for detach in ((), ("-d",)):
            said = self.refused(self.run_own(), "--jupyter", self.fake("echo waiting; exec sleep 1000"), "--timeout", "1", *detach)
            self.assertIn("did not answer within 1 s", said)
            self.assertIn("waiting", said)

    def test_an_interrupted_start(self):
        self.run_own()
        process = self.start("notebook", "-d", "--jupyter", self.fake("trap '' TERM; sleep 1000"))
        wait_until(lambda: len(self.processes()) >= 4, "it starts")
        process.send_signal(signal.SIGINT)
        self.assertIn("stopping", process.stderr.readline())
        process.send_signal(signal.SIGINT)  # the second one does not wait
        self.assertEqual(process.wait(timeout=60), 130)
        self.assertEqual(self.processes(), [])

    def test_ctrl_c_while_it_asks(self):
        self.run_own()
        terminal = self.terminal("notebook", "--jupyter", self.fake("sleep 1000"))
        terminal.expect("Password of the notebook")
        terminal.send("secret")
        terminal.interrupt()
        self.assertEqual(terminal.wait(), 130)
        self.assertNotIn("secret", terminal.output)
        self.assertEqual(self.processes(), [])

    def test_wrong_usage(self):
        self.assertIn("there are no jobs yet", self.refused())
        self.assertIn("mars", self.refused("x", "--on", "mars", code=2))
        self.assertIn("--stop", self.refused("x", "--stop", "--detach", code=2))
        self.assertIn("absent", self.refused("absent", "--on", "local"))
        self.assertIn("--port 65536", self.refused("x", "--port", "65536", code=2))


class NewestTest(NotebookTest):
    """With jupyter-server and matplotlib of the Python package index, as a user installs them."""

    def test_jupyter_server_and_matplotlib(self):
        folder = venv(self, "jupyter-server-2")
        job = self.run_own()
        said = self.muster("notebook", "-d", job, "--jupyter", folder / "bin" / "jupyter",
                           "--password-file", self.password_file()).stdout
        self.assertEqual(self.client(self.link(said)).log_in("wrong password"), 401)
        client = self.client(self.link(said), PASSWORD)
        text, shown = client.run(client.start_kernel(), *client.cells("metrics.ipynb"))
        self.assertRegex(text, r"(?m)^loss +3 +30 +0\.53")
        self.assertIn("image/png", shown)
        self.muster("notebook", job, "--stop")
        self.assertEqual(self.processes(), [])


if __name__ == "__main__":
    unittest.main()
