"""Tasks started manually on several machines: over TLS with certificates of `muster env`, in plaintext only on request."""
import json
import re
import socket
import unittest

from hosts import CLIENT, own_hosts
from support import wait_until
from training import TrainTest

PORT = 2222
REFUSAL = "is on a network and this task has no certificates"


class ByHandTest(TrainTest):
    def setUp(self):
        super().setUp()
        self.bed = own_hosts(self, 3)
        self.hosts = dict(zip(("chief", "worker", "ps"), self.bed.hosts))
        self.workers = self.bed.hosts

    def address(self, host):
        return f"{self.bed.address(host)}:{PORT}"

    def file(self, **changes):
        roles = {role: {"addresses": [self.address(host)]} for role, host in self.hosts.items()}
        return self.job("hand", roles=roles, **changes)

    def allreduce(self, **changes):
        roles = {"worker": {"replicas": len(self.workers), "addresses": [self.address(host) for host in self.workers]}}
        return self.job("hand", roles=roles, train={"strategy": "allreduce", **changes})

    def variables(self, file, role, index=0, certificates=None, **more):
        options = ["--certificates", certificates] if certificates else []
        variables = json.loads(self.muster("env", file, role, str(index), "--format", "json", *options).stdout)
        return {**self.env, **variables, **more}

    def start(self, host, env):
        """Runs a command with this machine's files and a host's network."""
        return self.by_hand(env, within=() if host == CLIENT else ("nsenter", f"--target={self.bed.pid(host)}", "--net"))

    def start_all(self, file, **options):
        return {role: self.start(host, self.variables(file, role, **options)) for role, host in self.hosts.items()}

    def exits(self, process, code, timeout=60):
        wait_until(lambda: process.poll() is not None, "it ends", timeout)
        self.assertEqual(process.returncode, code, process.output())
        return process.output()

    def end_well(self, processes):
        for process in processes:
            self.exits(process, 0, timeout=120)

    def assert_rejected(self, file, **options):
        env = self.variables(file, "worker", **options)
        said = self.exits(self.start(CLIENT, {**env, "MUSTER_START_TIMEOUT": "3"}), 1)
        self.assertRegex(said, r"timed out after 3s waiting for (ps|worker|chief):0")

    def expect_no_plaintext(self, host):
        """A server without TLS would answer with its settings."""
        with socket.create_connection((self.bed.address(host), PORT), timeout=10) as stranger:
            stranger.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0]))
            stranger.settimeout(20)
            received = b""
            try:
                while len(received) < 9 and (more := stranger.recv(100)):
                    received += more
            except OSError:
                pass  # the server closed the connection
        self.assertFalse(len(received) >= 9 and received[3] == 4, received)

    def test_over_tls(self):
        file = self.file()
        self.end_well(self.start_all(file, certificates="tls").values())
        self.assertEqual(self.bytes_of("hand")[0], 200)

    def test_unauthorized_clients_are_rejected(self):
        file = self.file(train={"steps": 10 ** 7})
        tasks = self.start_all(file, certificates="tls")
        wait_until(lambda: "step 10/" in tasks["chief"].output(), "it trains")
        self.expect_no_plaintext(self.hosts["ps"])
        self.assert_rejected(file, MUSTER_INSECURE_PLAINTEXT="1")
        self.assert_rejected(file, certificates="another")
        for role, process in tasks.items():
            self.assertIsNone(process.poll(), f"{role}: {process.output()}")

    def test_tasks_without_certificates_refuse_to_connect(self):
        for role, process in self.start_all(self.file()).items():
            said = self.exits(process, 1)
            self.assertIn(REFUSAL, said, role)
            self.assertIn("MUSTER_TLS_DIR", said)
            self.assertIn("MUSTER_INSECURE_PLAINTEXT=1", said)
        self.workers = self.bed.hosts[:2]
        for index, host in enumerate(self.workers):
            self.assertIn(REFUSAL, self.exits(self.start(host, self.variables(self.allreduce(), "worker", index)), 1))

    def test_plaintext_on_request(self):
        self.end_well(self.start_all(self.file(), MUSTER_INSECURE_PLAINTEXT="1").values())
        self.assertEqual(self.bytes_of("hand")[0], 200)

    def test_allreduce_over_tls(self):
        file = self.allreduce()
        env = [self.variables(file, "worker", index, certificates="tls") for index in range(3)]
        self.end_well([self.start(host, env[index]) for index, host in enumerate(self.workers)])
        self.assertEqual(self.bytes_of("hand")[0], 200)

    def test_allreduce_rejects_clients_of_other_jobs(self):
        file = self.allreduce(steps=10 ** 7)
        env = [self.variables(file, "worker", index, certificates="tls") for index in range(3)]
        tasks = [self.start(host, env[index]) for index, host in enumerate(self.workers)]
        wait_until(lambda: "step 10/" in tasks[0].output(), "it trains")
        for host in self.workers:
            # Gloo and its store are on the loopback interface; only the task's own address is open to others.
            listening = self.bed.run(host, ["ss", "-Hltn"]).stdout.splitlines()
            listening = {re.sub(r"^\[::ffff:(.*)\]", r"\1", line.split()[3]) for line in listening}  # gRPC's sockets are of IPv6
            reachable = {name for name in listening if not name.startswith("127.") and not name.endswith(":22")}
            self.assertEqual(reachable, {self.address(host)})
            self.expect_no_plaintext(host)
        tasks[1].kill()
        for index in (0, 2):
            self.exits(tasks[index], 138)


class CertificatesTest(TrainTest):
    def test_certificates_are_created_once_for_all_tasks(self):
        file = self.job("hand", roles={"worker": {"replicas": 2}})
        made = self.muster("env", file, "--certificates", "tls")
        self.assertEqual(made.stdout, "")
        self.assertIn("copy ca.crt, tls.crt and tls.key of ", made.stderr)
        key = (self.dir / "tls" / "tls.key").read_text()
        self.assertEqual((self.dir / "tls" / "tls.key").stat().st_mode & 0o777, 0o600)
        told = self.muster("env", file, "worker", "1", "--certificates", "tls").stdout
        self.assertIn(f"export MUSTER_TLS_DIR={self.dir}/tls\n", told)
        self.assertEqual((self.dir / "tls" / "tls.key").read_text(), key)
        (self.dir / "tls" / "tls.crt").unlink()
        refused = self.muster("env", file, "worker", "1", "--certificates", "tls", check=False)
        self.assertEqual(refused.returncode, 1)
        self.assertIn("remove ca.crt, tls.crt and tls.key", refused.stderr)


if __name__ == "__main__":
    unittest.main()
