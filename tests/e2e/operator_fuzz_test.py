"""muster operator survives any TFJob that the API server stores. MUSTER_SOAK_SECONDS sets the duration (45), MUSTER_SOAK_SEED repeats a run."""
import http.client
import json
import os
import pathlib
import ssl
import sys
import unittest

from cluster.certificates import Authority
from clusters import own_cluster
from manifest_fuzz import Api, Soak
from operators import CRDS, OperatorTest
from support import free_ports, wait_until

SECONDS = int(os.environ.get("MUSTER_SOAK_SECONDS", "45"))
SEED = os.environ.get("MUSTER_SOAK_SEED", "1")
MEMORY_MIB = 256  # half of the limit in deploy/operator.yaml


class FuzzTest(OperatorTest):
    def setUp(self):
        super(OperatorTest, self).setUp()
        self.use(own_cluster(self, manifests=[CRDS]), "default")

    def start_operator(self):
        folder = self.dir / "served"
        folder.mkdir()
        authority = Authority(self.dir / "authority")
        for path, name in zip(authority.issue("webhook", "/CN=webhook", ["IP:127.0.0.1"]), ("tls.crt", "tls.key")):
            path.rename(folder / name)
        self.tls = ssl.create_default_context(cafile=authority.certificate)
        self.webhook_port, self.http_port = free_ports(2)
        self.operator = self.operate("--no-leader-election", "--webhook-certificate", folder, "--webhook-port", self.webhook_port, "--http-port", self.http_port)
        wait_until(lambda: "ready" in self.operator.said(), "the operator is ready")

    def ask_webhook(self, review):
        connection = http.client.HTTPSConnection("127.0.0.1", self.webhook_port, timeout=30, context=self.tls)
        try:
            connection.request("POST", "/validate", json.dumps(review))
            answer = connection.getresponse()
            self.assertEqual(answer.status, 200)
            return json.load(answer)
        finally:
            connection.close()

    def check(self):
        self.assertIsNone(self.operator.poll(), f"the operator has ended\n{self.operator.said()[-5000:]}")
        connection = http.client.HTTPConnection("127.0.0.1", self.http_port, timeout=10)
        connection.request("GET", "/healthz")
        self.assertEqual(connection.getresponse().status, 200)
        connection.close()
        status = pathlib.Path(f"/proc/{self.operator.pid}/status").read_text()
        self.rss = int(status.split("VmRSS:")[1].split()[0]) // 1024
        self.peak = int(status.split("VmHWM:")[1].split()[0]) // 1024
        self.assertLess(self.rss, MEMORY_MIB, "MiB in use")

    def test_the_operator_survives_mutated_jobs(self):
        self.start_operator()
        soak = Soak(Api(self.kubectl, self.dir), self.namespace, SEED, self.ask_webhook, self.check)
        try:
            soak.run(SECONDS)
        except BaseException:
            print(f"seed {SEED}; the last requests, the newest last:", file=sys.stderr)
            for method, path, value in soak.history:
                print(method, path, json.dumps(value)[:20_000], file=sys.stderr)
            print(f"the operator's last words:\n{self.operator.said()[-5000:]}", file=sys.stderr)
            raise
        print(f"seed {SEED}, {SECONDS} s: {dict(sorted(soak.counts.items()))}; {self.rss} MiB, {self.peak} at most", file=sys.stderr)
        self.assertGreater(soak.counts["canaries"], 1)
        self.assertGreater(soak.counts["allowed"], 5)
        self.assertGreater(soak.counts["denied"], 5)
        self.end(self.operator)


if __name__ == "__main__":
    unittest.main()
