"""Provisioning: the checks and transfers before a job starts on hosts (tests/hosts.py)."""
import os
import pathlib
import re
import subprocess
import time
import unittest

from ssh_test import SshTestBase
from support import MUSTER, plain

ONE = "{name: x, command: 'true', roles: {worker: {}}}"


class ProvisionTestBase(SshTestBase):
    def forget_connections(self):
        """Uses a new folder for shared ssh connections, so that later commands reuse none."""
        folder = self.dir / "r"
        folder.mkdir(mode=0o700)
        self.env["XDG_RUNTIME_DIR"] = str(folder)

    def run_to_end(self, text, *options):
        """Returns the output of a job's worker."""
        said = self.muster("run", "-d", "--on", "ssh", *options, self.write("work/job.yaml", text), cwd=self.dir / "work").stdout
        job = re.search(r"Started (\S+) in", said).group(1)
        self.wait_state(job, "Succeeded")
        return self.log(job, "worker:0")

    def configure_ssh(self, text):
        """Adds lines that override the ssh configuration."""
        config = self.bed.folder / "ssh_config"
        config.write_text(text + config.read_text())

    def doctor(self, hosts):
        start = time.monotonic()
        done = self.muster("doctor", "--hosts", hosts, check=False)
        self.took = time.monotonic() - start
        return done.stdout


class TransferTest(ProvisionTestBase):
    """Files that exist on the host, and files that do not."""

    def test_truncated_files_are_sent_again(self):
        hosts = self.use(1)
        self.write("work/data.txt", "hello")
        text = "{name: x, command: 'wc -c < data.txt', roles: {worker: {}}}"
        self.assertEqual(self.run_to_end(text, "--hosts", hosts), "5\n")
        for path in self.bed.path("host1", ".cache/muster/files").glob("*/*"):
            path.write_bytes(b"")
        self.assertEqual(self.run_to_end(text, "--hosts", hosts), "5\n")
        agent = next(self.bed.path("host1", ".cache/muster").glob("agent-*"))
        start = agent.read_bytes()[:1000]
        agent.unlink()  # the agent of the job before may still run, and a running program cannot be written
        agent.write_bytes(start)
        agent.chmod(0o700)
        self.assertEqual(self.run_to_end(text, "--hosts", hosts), "5\n")

    def test_a_full_disk_leaves_no_partial_agent(self):
        hosts = self.use(1, size="64m")
        self.bed.fill_disk("host1", free=1 << 20)
        self.assertRegex(self.refused(hosts, ONE), "host1: .*No space left")
        self.assertEqual(self.bed.run("host1", ["sh", "-c", "ls -A ~/.cache/muster"]).stdout, "")

    def test_a_home_mounted_noexec(self):
        hosts = self.use(1)
        self.bed.run("host1", ["sh", "-c", "mount -o remount,noexec ~"])
        self.assertRegex(self.refused(hosts, ONE), "host1: cannot execute the agent.*noexec.*XDG_CACHE_HOME")
        self.bed.configure_sshd("host1", "SetEnv XDG_CACHE_HOME=/var/tmp/cache")
        self.forget_connections()
        self.wait_state(self.submit(ONE, hosts), "Succeeded")

    def test_credentials_are_not_sent_and_are_named(self):
        hosts = self.use(1)
        self.write("work/.ssh/id_ed25519", "PRIVATE KEY")
        self.write("work/.aws/credentials", "SECRET")
        self.write("work/.env", "TOKEN=1")
        self.write("work/here", "")
        job = self.write("work/job.yaml", "{name: x, command: 'ls -A', roles: {worker: {}}}")
        ran = self.muster("run", "--on", "ssh", "--hosts", hosts, job, cwd=self.dir / "work")
        self.assertIn("contain credentials: .aws, .env, .ssh;", ran.stderr)
        self.assertRegex(ran.stdout, r"(?s)here\n.*job\.yaml")
        for name in (".aws", ".env", ".ssh"):
            self.assertNotIn(name, ran.stdout)
        self.write("work/.gitignore", "!.env\n")
        self.assertIn(".env\n", self.muster("run", "--on", "ssh", "--hosts", hosts, job, cwd=self.dir / "work").stdout)

    def test_a_home_folder_is_sent_on_request_only(self):
        hosts = self.use(1)
        job = self.write("work/job.yaml", "{name: x, command: 'ls -A', roles: {worker: {}}}")
        env = dict(self.env, HOME=str(self.dir / "work"))
        run = ("run", "--on", "ssh", "--hosts", hosts, job)
        refused = self.muster(*run, cwd=self.dir / "work", env=env, check=False)
        self.assertEqual(refused.returncode, 1)
        self.assertRegex(refused.stderr, "your home folder.*--send-home")
        self.assertIn("job.yaml", self.muster(*run, "--send-home", cwd=self.dir / "work", env=env).stdout)

    def test_the_working_directory_itself_is_data(self):
        hosts = self.use(1)
        self.write("work/part", "x")
        said = self.run_to_end("""
            name: x
            roles: {worker: {command: "ls $(grep -o '/[^\\"]*work' $MUSTER_TRAIN_CONFIG)"}}
            train: {model: mlp, data: {format: mnist, path: .}, batch_size: 1, steps: 10}
            """, "--hosts", hosts)
        self.assertEqual(said, "job.yaml\npart\n")

    def test_a_local_model_dir_on_several_hosts_is_noted(self):
        hosts = self.use(2)
        job = self.write("work/job.yaml", "{name: x, model_dir: runs/x, command: 'true', roles: {worker: {replicas: 2}}}")
        self.assertRegex(self.muster("explain", "--on", "ssh", job, cwd=self.dir / "work").stdout, "model_dir: .*work/runs/x.* each host")
        said = self.muster("run", "--on", "ssh", "--hosts", hosts, job, cwd=self.dir / "work").stderr
        self.assertRegex(said, "model_dir: .*work/runs/x.* each host")
        self.assertNotIn("model_dir", self.muster("run", "--on", "ssh", "--hosts", "host1", job, cwd=self.dir / "work").stderr)
        self.write("work/job.yaml", "{name: x, model_dir: ~/runs/x, command: 'true', roles: {worker: {replicas: 2}}}")
        said = self.muster("explain", "--on", "ssh", job, cwd=self.dir / "work", env={**self.env, "HOME": "/home/me"}).stdout
        self.assertRegex(said, "model_dir: /home/me/runs/x .* each host")


class TrainerTest(ProvisionTestBase):
    """The check that muster-trainer runs on the host."""

    def setUp(self):
        super().setUp()
        if not pathlib.Path(MUSTER).with_name("muster-trainer").exists():
            self.skipTest("built without the trainer")

    def test_doctor_asks_for_its_libraries(self):
        hosts = self.use(2)
        self.assertRegex(self.doctor(hosts), "host1 +ok +.*, has the libraries of muster-trainer\n")
        self.bed.run("host2", ["sh", "-c", "mkdir ~/bin; printf '#!/bin/sh\necho libc.so.6\n' > ~/bin/ldconfig; chmod +x ~/bin/ldconfig"])
        self.bed.configure_sshd("host2", "SetEnv PATH=/root/bin:/usr/bin:/bin")
        self.forget_connections()
        self.assertRegex(self.doctor(hosts), "host2 +ok +.*, missing libraries of muster-trainer: .*libtorch_cpu.so")

    def test_a_host_where_it_does_not_run(self):
        hosts = self.use(1)
        libraries = subprocess.run(["ldd", pathlib.Path(MUSTER).with_name("muster-trainer")], capture_output=True, text=True).stdout
        library = os.path.realpath(re.search(r"libtorch_cpu\S* => (\S+)", libraries).group(1))
        self.bed.run("host1", ["mount", "--bind", "/dev/null", library])
        text = "{name: x, roles: {chief: {}}, train: {model: mlp, data: {format: mnist, path: .}, batch_size: 1, steps: 10}}"
        self.assertRegex(self.refused(hosts, text), "host1: muster-trainer does not run there: .*libtorch_cpu.*; install its libraries")


class ConnectivityTest(ProvisionTestBase):
    """The check that hosts reach each other."""

    def test_the_ports_that_tasks_have_are_tried(self):
        hosts = self.use(2)
        two = "{name: x, command: 'true', roles: {worker: {replicas: 2}}}"
        self.bed.block("host1", "host2", 20000, 32767)
        said = self.refused(hosts, two)
        self.assertRegex(said, r"host1 cannot reach host2 at 10\.\S+ \(no answer\).*firewall, ports 20000 to 32767")
        self.assertNotIn("host2 cannot", said)
        self.bed.unblock("host1", "host2", 20000, 32767)
        self.wait_state(self.submit(two, hosts), "Succeeded")

    def test_a_port_of_the_users_is_tried(self):
        hosts = self.use(2)
        two = "{name: x, command: 'true', roles: {worker: {replicas: 2, port: 5555}}}"
        self.bed.block("host1", "host2", 5555, reject=True)
        self.assertRegex(self.refused(hosts, two), r"host1 cannot reach host2 at 10\.\S+:5555 \(.*firewall, port 5555$")
        self.bed.unblock("host1", "host2", 5555, reject=True)
        self.wait_state(self.submit(two, hosts), "Succeeded")


class ConnectTest(ProvisionTestBase):
    """Jump hosts, host keys and authentication."""

    def use_far(self, first, last):
        """Puts hosts behind host1."""
        self.configure_ssh("".join(f"Host far{i}\n  HostName {self.bed.address(f'host{i}')}\n  ProxyJump host1\n"
                                   for i in range(first, last + 1)))
        return ",".join(f"far{i}" for i in range(first, last + 1))

    def test_a_login_that_leaves_something_running(self):
        hosts = self.use(1)
        self.bed.path("host1", ".bashrc").write_text("sleep 90 &\n")
        self.assertRegex(self.doctor(hosts), "host1 +ok")
        self.assertLess(self.took, 40)

    def test_a_login_shell_that_prints(self):
        hosts = self.use(1)
        self.bed.path("host1", ".bashrc").write_text("echo 'Welcome! This was brought to you by ACME'; echo warning >&2\n")
        self.bed.configure_sshd("host1", 'SetEnv "XDG_CACHE_HOME=/root/a b\'c"')
        self.assertRegex(self.run_to_end("{name: x, command: 'pwd', roles: {worker: {}}}", "--hosts", hosts), "^/root/a b'c/muster/jobs/")

    def test_a_jump_host_that_rejects_some_connections(self):
        self.use(5)
        far = self.use_far(2, 5)
        self.bed.configure_sshd("host1", "MaxStartups 2:100:2")
        self.wait_state(self.submit("{name: x, command: 'true', roles: {worker: {replicas: 4}}}", far), "Succeeded")

    def test_a_jump_host_that_wants_a_password(self):
        self.use(2)
        far = self.use_far(2, 2)
        self.assertRegex(self.doctor(far), "far2 +ok")
        self.bed.configure_sshd("host1", "PubkeyAuthentication no", "PasswordAuthentication yes")
        self.forget_connections()
        # On a terminal, where ssh could prompt.
        start = time.monotonic()
        terminal = self.terminal("doctor", "--hosts", far)
        self.assertEqual(terminal.wait(), 1)
        self.assertLess(time.monotonic() - start, 25)
        self.assertRegex(plain(terminal.output), r"far2: login refused \(\S+: Permission denied \(password\)")

    def test_a_host_that_wants_a_password(self):
        hosts = self.use(1)
        self.bed.configure_sshd("host1", "PubkeyAuthentication no", "PasswordAuthentication yes")
        self.assertRegex(self.doctor(hosts), r"host1: login refused .*Permission denied \(password\).*must work without a password")
        self.assertLess(self.took, 25)

    def test_port_user_and_key_of_the_file(self):
        self.use(1)
        self.bed.configure_sshd("host1", "Port 2222")
        known = self.bed.folder / "known_hosts"
        known.write_text(re.sub(r"^\S+", "[10.77.0.11]:2222", known.read_text()))
        key = self.bed.folder / "other"
        (self.bed.folder / "key").rename(key)
        text = "{name: x, hosts: [{address: 10.77.0.11, port: 2222, user: root, key: %s}], command: 'echo $USER', roles: {worker: {}}}" % key
        self.assertEqual(self.run_to_end(text), "root\n")
        self.bed.change_host_key("host1")
        self.forget_connections()
        said = self.muster("run", "--on", "ssh", self.write("work/job.yaml", text), cwd=self.dir / "work", check=False).stderr
        command = re.search(r"`(ssh-keygen .*?)`", said).group(1)
        self.assertIn("-R '[10.77.0.11]:2222'", command)
        subprocess.run(["sh", "-c", command], check=True, capture_output=True)
        self.assertEqual(known.read_text(), "")
        said = self.muster("run", "--on", "ssh", self.write("work/job.yaml", text), cwd=self.dir / "work", check=False).stderr
        self.assertRegex(said, rf"its host key is unknown: run `ssh .*-p 2222 -i {key} root@10.77.0.11` once and verify")

    def test_ipv6(self):
        self.use(2)
        subprocess.run(["ip", "addr", "add", "fd77::1/64", "dev", "bridge", "nodad"], check=True)
        known = self.bed.folder / "known_hosts"
        lines = known.read_text().splitlines()
        for i in (1, 2):
            self.bed.run(f"host{i}", ["ip", "addr", "add", f"fd77::1{i}/64", "dev", "eth0", "nodad"])
            lines[i - 1] = f"fd77::1{i}," + lines[i - 1]
        known.write_text("\n".join(lines) + "\n")
        said = self.run_to_end("{name: x, command: 'echo $MASTER_ADDR', roles: {worker: {replicas: 2}}}", "--hosts", "[fd77::11]:1,[fd77::12]:1")
        self.assertEqual(said, "fd77::11\n")

    def test_a_long_folder_for_sockets(self):
        hosts = self.use(1)
        folder = self.dir / ("r" * 60)
        folder.mkdir(mode=0o700)
        self.env["XDG_RUNTIME_DIR"] = str(folder)
        self.wait_state(self.submit(ONE, hosts), "Succeeded")

    def test_another_kind_of_machine(self):
        hosts = self.use(1)
        self.bed.run("host1", ["sh", "-c", "mkdir ~/bin; printf '#!/bin/sh\\ncase $1 in -s) echo Linux;; *) echo riscv64;; esac\\n' > ~/bin/uname; chmod +x ~/bin/uname"])
        self.bed.configure_sshd("host1", "SetEnv PATH=/root/bin:/usr/bin:/bin")
        self.assertRegex(self.refused(hosts, ONE), r"host1 is Linux riscv64, but this muster is for Linux \S+; a job needs hosts of the same architecture")

    def test_a_program_before_ssh(self):
        hosts = self.use(1)
        self.env["MUSTER_SSH"] = "env SOMETHING=set " + self.env["MUSTER_SSH"]
        job = self.submit(ONE, hosts)
        self.wait_state(job, "Succeeded")
        # As configured in ssh_config.
        self.assertRegex(self.task(job, "worker:0")["address"], self.bed.address("host1"))


if __name__ == "__main__":
    unittest.main()
