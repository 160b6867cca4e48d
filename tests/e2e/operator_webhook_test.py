"""The operator's webhook, called by a real API server: its errors and warnings reach kubectl."""
import base64
import http.client
import json
import socket
import ssl
import unittest

from cluster.certificates import Authority
from operators import OperatorTest, pod_template, replicas, tfjob
from support import SOURCE, free_ports, wait_until

WEBHOOK = SOURCE / "deploy" / "webhook.yaml"


class WebhookTest(OperatorTest):
    def setUp(self):
        super().setUp()
        self.port, self.http_port = free_ports(2)
        self.authority = Authority(self.dir / "authority")
        self.folder = self.dir / "served"
        self.folder.mkdir()
        self.renew()
        self.operator = self.operate("--no-leader-election", "--webhook-certificate", self.folder, "--webhook-port", self.port, "--http-port", self.http_port)
        self.configure()
        wait_until(lambda: "digit" in self.try_to_create(tfjob("1st", {"Worker": replicas(1)})).stderr, "the server asks the operator")

    def renew(self, authority=None):
        """Replaces the served certificate and its key, atomically, as a cluster does with a secret."""
        issued = (authority or self.authority).issue("webhook", "/CN=webhook", ["IP:127.0.0.1"])
        for path, name in zip(issued, ("tls.crt", "tls.key")):
            path.rename(self.folder / f"{name}.new")
        for name in ("tls.crt", "tls.key"):
            (self.folder / f"{name}.new").rename(self.folder / name)

    def configure(self, authority=None):
        """Returns deploy/webhook.yaml for this namespace only, and for an operator outside of the cluster."""
        self.kubectl("label", "namespace", self.namespace, f"test={self.namespace}", "--overwrite")
        text = self.kubectl("create", "--dry-run=client", "--output=json", "-f", WEBHOOK).stdout
        configuration = json.loads(text)
        configuration["metadata"] = {"name": self.namespace}
        hook, = configuration["webhooks"]
        bundle = base64.b64encode((authority or self.authority).certificate.read_bytes()).decode()
        hook["clientConfig"] = {"url": f"https://127.0.0.1:{self.port}/validate", "caBundle": bundle}
        hook["namespaceSelector"] = {"matchLabels": {"test": self.namespace}}
        self.kubectl("apply", "-f", "-", stdin=json.dumps(configuration))
        self.addCleanup(self.kubectl, "delete", "validatingwebhookconfiguration", self.namespace, "--ignore-not-found")

    def try_to_create(self, job, *options):
        return self.kubectl("create", "--dry-run=server", *options, "-f", "-", stdin=json.dumps(job), check=False)

    def test_39_rejections(self):
        def worker(**changes):
            pod = pod_template()
            pod["spec"]["containers"][0].update(changes)
            return {"Worker": {"replicas": 1, "template": pod}}

        one = {"Worker": replicas(1)}
        cases = [
            (tfjob("1st", one), "the job's name '1st' begins with a digit; expected a letter first"),
            (tfjob("a.b", one), "'a.b'"),
            (tfjob("j" * 55, one), "has 64 characters; expected 63 at most: give the job a shorter name"),
            (tfjob("j", {}), "spec.tfReplicaSpecs in body should have at least 1 properties"),
            (tfjob("j", {"Worker": {"template": {"spec": {"containers": []}}}}), "containers in body should have at least 1 items"),
            (tfjob("j", worker(image="")), "image in body should be at least 1 chars long"),
            (tfjob("j", worker(name="main")), "the template of 'Worker' has no container named 'tensorflow'; expected one"),
            (tfjob("j", {"Chief": replicas(1), "Master": replicas(1)}), "'chief' and 'master'"),
            (tfjob("j", {"Wroker": replicas(1)}), "unknown role 'Wroker' in tfReplicaSpecs; expected one of: Chief, Master, PS, Worker, Evaluator"),
            (tfjob("j", {"Worker": replicas(1), "worker": replicas(1)}), "the role 'worker' appears twice, in different case"),
            (tfjob("j", {"Worker": replicas(-1)}), "replicas in body should be greater than or equal to 0"),
            (tfjob("j", {"Worker": replicas(1, "Sometimes")}), 'supported values: "Never", "OnFailure", "Always", "ExitCode"'),
            (tfjob("j", one, {"cleanPodPolicy": "Some"}), 'supported values: "None", "Running", "All"'),
            (tfjob("j", one, successPolicy="Most"), '"AllWorkers"'),
            (tfjob("j", worker(ports=[{"name": "tfjob-port", "containerPort": 0}])), "'containerPort'"),
            (tfjob("j", worker(ports=[{"name": 8080, "containerPort": 80}])),
             "spec.tfReplicaSpecs.Worker.template.spec.containers[0].ports[0].name: 'name' in the template of 'Worker' must be text"),
            (tfjob("j", worker(env="x")), "containers[0].env: 'env' in the template of 'Worker' must be a list, not text 'x'"),
            (tfjob("j", {"Worker": {"template": {**pod_template(), "metadata": {"annotations": "boom"}}}}),
             "metadata.annotations: 'annotations' in the template of 'Worker' must be a map"),
            (tfjob("j", {"Worker": {**worker(args=["x" * 100_000])["Worker"], "replicas": 4000}}), "the pod templates of all replicas together take"),
        ]
        for job, complaint in cases:
            with self.subTest(complaint):
                refused = self.try_to_create(job, "--validate=false")
                self.assertNotEqual(refused.returncode, 0)
                self.assertIn(complaint, refused.stderr)
        # All mistakes are reported together.
        refused = self.try_to_create(tfjob("1st", {"Boss": replicas(1), **worker(name="main")}))
        for complaint in ("begins with a digit", "'Boss'", "'tensorflow'"):
            self.assertIn(complaint, refused.stderr)
        old = {"apiVersion": "tensorflow.org/v1alpha1", "kind": "TfJob", "metadata": {"name": "j"},
               "spec": {"replicaSpecs": [{"tfReplicaType": "WORKER"}]}}
        self.assertIn("the WORKER lacks 'template'", self.try_to_create(old).stderr)
        self.create("kept", one, {"managedBy": "kubeflow.org/training-operator"})
        answer, body = self.ask("PATCH", "tfjobs", "kept", {"spec": {"runPolicy": {"managedBy": "kueue.x-k8s.io/multikueue"}}},
                                {"Content-Type": "application/merge-patch+json"})
        self.assertEqual(answer, 422, body)
        self.assertIn("runPolicy.managedBy cannot be changed; delete the job and create it again", body["message"])
        self.wait_pods("kept-worker-0")

    def test_unknown_fields_are_warned_of(self):
        template = pod_template(nodeSelctor={"disk": "ssd"}, restartPolicy="Always")
        template["spec"]["containers"][0].update(volumemounts=[], livenessProbe={"httpGet": {"prot": 80}})
        made = self.try_to_create(tfjob("j", {"Worker": {"replicas": 1, "template": template}}), "--validate=false")
        self.assertEqual(made.returncode, 0, made.stderr)
        path = "Warning: spec.tfReplicaSpecs.Worker.template.spec"
        for place, meant in (("nodeSelctor", "nodeSelector"), ("containers[0].volumemounts", "volumeMounts"),
                             ("containers[0].livenessProbe.httpGet.prot", "port")):
            self.assertIn(f"{path}.{place}: unknown field '{place.split('.')[-1]}' in the template of 'Worker' (did you mean '{meant}'?); "
                          "Kubernetes ignores it", made.stderr)
        self.assertIn(f"{path}.restartPolicy: has no effect", made.stderr)
        self.assertEqual(self.try_to_create(tfjob("j", {"Worker": replicas(1)})).stderr, "")

    def test_slow_connections_do_not_delay_others(self):
        """More connections than any thread pool has threads, each in the middle of a request."""
        begun = (b"", b"POST /validate HT", b"POST /validate HTTP/1.1\r\nContent-Length: 100\r\n\r\n{", bytes.fromhex("160301"))
        for port in (self.port, self.http_port):
            for number in range(60):
                slow = self.enterContext(socket.create_connection(("127.0.0.1", port), timeout=30))
                slow.sendall(begun[number % len(begun)])
        for _ in range(5):
            connection = http.client.HTTPConnection("127.0.0.1", self.http_port, timeout=5)
            connection.request("GET", "/healthz")
            self.assertEqual(connection.getresponse().status, 200)
            connection.close()
            self.assertIn("begins with a digit", self.try_to_create(tfjob("1st", {"Worker": replicas(1)})).stderr)

    def test_large_jobs(self):
        """Reviews up to the server's limit, and larger ones."""
        def job(name, size):
            pod = pod_template()
            pod["spec"]["containers"][0]["env"] = [{"name": f"V{index}", "value": "x" * 1000} for index in range(size // 1000)]
            return tfjob(name, {"Worker": {"replicas": 2, "template": pod}})

        answer, body = self.ask("POST", "tfjobs", value=job("large", 1 << 20))
        self.assertEqual(answer, 201, body)
        self.wait_pods("large-worker-0", "large-worker-1")
        self.set_phase("large-worker-0", "Succeeded")
        self.wait_conditions("large", "Created", "Succeeded")
        too_large = self.kubectl("create", "-f", "-", stdin=json.dumps(job("larger", 2 << 20)), check=False)
        self.assertNotEqual(too_large.returncode, 0)
        self.assertRegex(too_large.stderr, "too large|larger than")
        self.assertIn("fits-worker-1", self.muster("render", self.write("job.yaml", json.dumps(job("fits", 1 << 20)))).stdout)
        refused = self.muster("render", self.write("job.yaml", json.dumps(job("over", 5 << 20))), check=False)
        self.assertIn("is larger than 4194304 bytes", refused.stderr)

    def assert_asked(self, what):
        wait_until(lambda: "begins with a digit" in self.try_to_create(tfjob("1st", {"Worker": replicas(1)})).stderr, what)

    def served_to(self, authority):
        """Returns the name of the certificate that a new client receives which trusts that authority."""
        tls = ssl.create_default_context(cafile=authority.certificate)
        with socket.create_connection(("127.0.0.1", self.port), timeout=30) as plain, \
                tls.wrap_socket(plain, server_hostname="127.0.0.1") as connection:
            return [entry for group in connection.getpeercert()["subject"] for entry in group]

    def test_a_renewed_certificate_is_used(self):
        # A certificate of another authority: a client that trusts only that one can connect.
        other = Authority(self.dir / "other")
        self.renew(other)
        self.configure(other)
        self.assert_asked("the new certificate is served")
        # Partly replaced or invalid files leave the last valid certificate in use.
        (self.folder / "tls.key").write_text("nonsense")
        self.assertIn(("commonName", "webhook"), self.served_to(other))
        self.renew()
        self.configure()
        self.assert_asked("the first authority's is served again")
        self.assertIn("tls.crt: loaded a new certificate", self.operator.said())
        self.assertIn("; keeping the last valid certificate", self.operator.said())

    def test_invalid_certificate_files(self):
        empty = self.dir / "empty"
        empty.mkdir()
        for name in ("tls.crt", "tls.key"):
            (empty / name).write_text("nonsense")
        operator = self.operate("--no-leader-election", "--webhook-certificate", empty, "--webhook-port", free_ports(1)[0])
        self.assertEqual(operator.wait(timeout=30), 2)
        self.assertIn(f"{empty / 'tls.crt'}, {empty / 'tls.key'}: not a certificate and its key", operator.said())


if __name__ == "__main__":
    unittest.main()
