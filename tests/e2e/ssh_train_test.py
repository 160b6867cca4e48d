"""The MNIST example on three hosts, one of which is lost and returns."""
import pathlib
import re
import unittest

from digits import write_digits
from hosts import own_hosts
from support import MUSTER, SOURCE, MusterTest, wait_until


class SshTrainTest(MusterTest):
    def setUp(self):
        super().setUp()
        if not pathlib.Path(MUSTER).with_name("muster-trainer").exists():
            self.skipTest("there is no muster-trainer: it was built without libtorch")
        self.bed = own_hosts(self, 3)
        self.env.update(self.bed.environment)
        self.addCleanup(self._end_everything)
        self.work = self.dir / "work"
        write_digits(self.work / "data" / "mnist")

    def example(self, steps, **policies):
        text = (SOURCE / "examples" / "mnist.yaml").read_text().replace("  evaluator: {}\n", "").replace("model: cnn", "model: mlp")
        text = text.replace("worker: {replicas: 2}", "worker: {replicas: 1}").replace("runs/mnist", "/var/tmp/runs/mnist")
        text = re.sub(r"\bsteps: \d+", f"steps: {steps}", re.sub(r"every_steps: \d+", "every_steps: 50", text))
        text = re.sub(r"policies: .*\n", "", text) + "policies: {" + ", ".join(f"{k}: {v}" for k, v in policies.items()) + "}\n"
        (self.work / "mnist.yaml").write_text(text)
        return "run", "--on", "ssh", "--hosts", ",".join(self.bed.hosts), "mnist.yaml"

    def host_of(self, job, task):
        return self.task(job, task)["host"]

    def test_mnist_with_a_host_lost_and_back(self):
        self.muster(*self.example(400, host_timeout="5s", max_restarts=9), "-d", cwd=self.work)
        job = self.jobs()[0]["id"]
        wait_until(lambda: b"step 100" in self.log(job, "chief:0"), "it trains", 90)
        self.assertEqual(len({task["host"] for task in self.show(job)["tasks"]}), 3)
        lost = self.host_of(job, "worker:0")
        self.bed.cut(lost)
        wait_until(lambda: self.task(job, "worker:0")["restarts"] >= 1, "the worker is known to be lost", 60)
        self.bed.mend(lost)
        self.wait_state(job, "Succeeded", timeout=90)
        self.assertIn(b"step 400", self.log(job, "chief:0"))
        self.assertIn(f"lost with {lost}", "\n".join(self.events(job)))

    def test_traffic_between_hosts_is_for_the_job_alone(self):
        self.muster(*self.example(100000), "-d", cwd=self.work)
        job = self.jobs()[0]["id"]
        wait_until(lambda: b"step 50" in self.log(job, "chief:0"), "it trains", 90)
        host, port = self.task(job, "ps:0")["address"].rsplit(":", 1)
        stranger = next(name for name in self.bed.hosts if name != self.host_of(job, "ps:0"))
        probe = ["openssl", "s_client", "-connect", f"{host}:{port}", "-alpn", "h2", "-brief"]
        # Without a client certificate the server closes the connection after its own certificate.
        said = self.bed.run(stranger, ["sh", "-c", "sleep 3 | " + " ".join(probe)], check=False)
        self.assertRegex(said.stdout + said.stderr, "(?i)alert|eof while reading")
        # It does not respond without TLS either.
        plain = self.bed.run(stranger, ["timeout", "5", "python3", "-c",
                                        f"import socket; s = socket.create_connection(('{host}', {port})); s.sendall(b'PRI * HTTP/2.0\\r\\n\\r\\nSM\\r\\n\\r\\n'); "
                                        "s.settimeout(3); print(s.recv(100))"], check=False)
        self.assertNotRegex(plain.stdout, r"\\x00\\x00.*\\x04")  # a SETTINGS frame
        self.assertEqual(self.show(job)["state"], "Running")
        self.muster("stop", "--yes", job)


if __name__ == "__main__":
    unittest.main()
