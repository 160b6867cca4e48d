"""muster operator when it cannot work: it prints the cause and the remedy, and exits."""
import contextlib
import pathlib
import re
import socket
import ssl
import threading
import unittest

from cluster.certificates import Authority
from clusters import SharedCluster
from operators import OperatorTest, pod_template, replicas
from support import MusterTest, wait_until


def rule(group, resources, *verbs):
    return {"apiGroups": [group], "resources": resources, "verbs": verbs}


RIGHTS = (rule("kubeflow.org", ["tfjobs"], "get", "list", "watch", "patch", "delete"), rule("kubeflow.org", ["tfjobs/status"], "get", "update"),
          rule("", ["pods", "services"], "get", "list", "watch", "create", "patch", "delete"), rule("", ["events"], "create", "patch"),
          rule("coordination.k8s.io", ["leases"], "get", "create", "update"))


class InputTest(OperatorTest):
    def assert_ends(self, *complaints, options=("--no-leader-election",), kubeconfig=None):
        operator = self.operate(*options, kubeconfig=kubeconfig)
        self.assertEqual(operator.wait(timeout=60), 1)
        last = operator.said().splitlines()[-1]
        for complaint in complaints:
            self.assertIn(complaint, last)

    def allow(self, user, *without):
        """Creates a user with the operator's permissions in the namespace, except for some (resource, verb)."""
        rules = []
        for one in RIGHTS:
            for resource in one["resources"]:
                verbs = [verb for verb in one["verbs"] if (resource, verb) not in without]
                rules.append({**one, "resources": [resource], "verbs": verbs})
        kubeconfig = self.cluster.user(user)
        subject = {"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": f"{user}-{self.namespace}"}
        meta = {"name": user, "namespace": self.namespace}
        self.kubectl.apply({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": meta, "rules": rules},
                           {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": meta, "subjects": [subject],
                            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": user}})
        mine = self.cluster.as_user(kubeconfig)
        wait_until(lambda: mine("auth", "can-i", "list", "tfjobs", check=False).returncode == 0, "the role is known")
        return kubeconfig

    def test_a_missing_permission_is_named(self):
        here = f"in a Role of namespace '{self.namespace}'"
        self.assert_ends('{apiGroups: [""], resources: ["services"], verbs: ["list"]}', here, kubeconfig=self.allow("ann", ("services", "list")))
        self.assert_ends('{apiGroups: ["coordination.k8s.io"], resources: ["leases"], verbs: ["create"]}', here,
                         options=("--lease-namespace", self.namespace), kubeconfig=self.allow("cat", ("leases", "create")))

    def test_a_missing_write_permission_is_reported_and_retried(self):
        operator = self.operate(kubeconfig=self.allow("ann", ("pods", "create")))
        self.create("job", {"Worker": replicas(1)})
        missing = '{apiGroups: [""], resources: ["pods"], verbs: ["create"]}'

        def told():
            return any(missing in event["message"] for event in self.ask("GET", "events")[1]["items"] if event["reason"] == "FailedCreatePod")

        wait_until(told, "it is told")
        self.assertIn(missing, operator.said())
        self.allow("ann")
        self.wait_pods("job-worker-0")

    def test_missing_optional_permissions_are_only_logged(self):
        operator = self.operate(kubeconfig=self.allow("ann", ("events", "create"), ("pods", "watch")))
        self.create("job", {"Worker": replicas(1)})
        self.wait_pods("job-worker-0")
        self.set_phase("job-worker-0", "Succeeded")
        self.wait_conditions("job", "Created", "Succeeded")
        for missing in ('resources: ["events"], verbs: ["create"]', 'resources: ["pods"], verbs: ["watch"]'):
            wait_until(lambda: missing in operator.said(), "the log says so")

    def test_an_expired_client_certificate(self):
        self.assert_ends("the client certificate expired at 20", "for a new one", kubeconfig=self.cluster.user("late", expired=True))

    def test_an_expired_server_certificate(self):
        certificate, key = Authority(self.cluster.kubeconfig.parent / "certificates").issue(
            f"server-{self.namespace}", "/CN=server", ["IP:127.0.0.1"], expired=True)
        tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        tls.load_cert_chain(certificate, key)
        listener = self.enterContext(socket.create_server(("127.0.0.1", 0)))

        def greet():
            with contextlib.suppress(OSError):  # closed at the end of the test
                while True:
                    client, _ = listener.accept()
                    with client, contextlib.suppress(ssl.SSLError):
                        tls.wrap_socket(client, server_side=True).close()

        greeter = threading.Thread(target=greet, daemon=True)
        greeter.start()
        self.addCleanup(listener.shutdown, socket.SHUT_RDWR)
        kubeconfig = self.dir / "kubeconfig"
        kubeconfig.write_text(re.sub(r"server: \S+", f"server: https://127.0.0.1:{listener.getsockname()[1]}", self.cluster.kubeconfig.read_text()))
        self.assert_ends("certificate has expired", "administrator must renew the server's certificate", kubeconfig=kubeconfig)

    def test_a_context_that_does_not_exist(self):
        self.assert_ends("there is no context 'nowhere'; available: admin, token", options=("--no-leader-election", "--context", "nowhere"))


class JobTest(OperatorTest):
    """Stored jobs that cannot run do not affect other jobs."""

    def worker(self, **changes):
        template = pod_template()
        template["spec"]["containers"][0].update(changes)
        return {"Worker": {"replicas": 1, "template": template}}

    def failure(self, name):
        wait_until(lambda: self.conditions(name) == ["Failed"], f"{name} is Failed")
        return self.condition(name, "Failed")["message"]

    def test_a_job_with_wrong_types_fails_alone(self):
        operator = self.operate()
        at = "spec.tfReplicaSpecs.Worker.template"
        self.create("annotations", {"Worker": {"template": {**pod_template(), "metadata": {"annotations": "boom"}}}})
        self.create("ports", self.worker(ports=[{"name": 8080, "containerPort": 80}]))
        self.create("env", self.worker(env="x"))
        self.create("nested", self.worker(env=[{"name": "A", "valueFrom": {"fieldRef": 5}}]))
        self.assertIn(f"{at}.metadata.annotations: ", self.failure("annotations"))
        self.assertIn(f"{at}.spec.containers[0].ports[0].name: ", self.failure("ports"))
        self.assertIn(f"{at}.spec.containers[0].env: ", self.failure("env"))
        self.assertIn(f"{at}.spec.containers[0].env[0].valueFrom.fieldRef: ", self.failure("nested"))
        # The schema of v1alpha1 is less strict.
        old = {"apiVersion": "tensorflow.org/v1alpha1", "kind": "TfJob", "metadata": {"name": "old"},
               "spec": {"replicaSpecs": [{"tfReplicaType": "MASTER", "template": {"spec": {"containers": [5]}}}]}}
        path = f"/apis/tensorflow.org/v1alpha1/namespaces/{self.namespace}/tfjobs"
        self.assertEqual(self.api.ask("POST", path, old)[0], 201)
        wait_until(lambda: self.api.ask("GET", f"{path}/old")[1].get("status", {}).get("state") == "Failed", "old is Failed")
        self.assertIn("spec.replicaSpecs[0].template.spec.containers[0]: ",
                      self.api.ask("GET", f"{path}/old")[1]["status"]["conditions"][0]["message"])
        self.create("good", {"Worker": replicas(1)})
        self.wait_pods("good-worker-0")
        self.end(operator)

    def test_a_malformed_status_is_repaired(self):
        job = self.create("job", {"Worker": replicas(1)})
        job["status"] = {"restarts": {"worker:0": {"count": "x"}}, "succeeded": "worker:0", "startTime": 5, "conditions": [],
                         "replicaStatuses": [1]}
        answer, body = self.ask("PUT", "tfjobs/status", "job", job)
        self.assertEqual(answer, 200, body)
        operator = self.operate()
        self.wait_pods("job-worker-0")
        self.set_phase("job-worker-0", "Running")
        self.wait_conditions("job", "Created", "Running")
        self.assertNotIn("succeeded", self.job("job")["status"])
        self.end(operator)

    def peak_mib(self, operator):
        return int(pathlib.Path(f"/proc/{operator.pid}/status").read_text().split("VmHWM:")[1].split()[0]) // 1024

    def test_many_large_pods_take_little_memory(self):
        """120 MB of pods: building all of them before sending would take several times as much memory."""
        operator = self.operate()
        template = self.worker(args=["x" * 600_000])["Worker"]["template"]
        self.create("large", {"Worker": {"replicas": 200, "template": template}})
        wait_until(lambda: len(self.all("services", "large")) == 200, "all services are there", timeout=120)
        # Its status is written after all of its objects were sent.
        wait_until(lambda: "Created" in self.conditions("large"), "all pods are sent", timeout=120)
        self.assertIn("uid", self.ask("GET", "pods", "large-worker-199")[1]["metadata"])
        self.assertLess(self.peak_mib(operator), 160)
        self.change("large", {"runPolicy": {"suspend": True}})
        self.end(operator)

    def test_a_list_larger_than_one_response(self):
        """26 MB of jobs, in pages of 16 at most."""
        template = self.worker(args=["x" * 1_300_000])["Worker"]["template"]
        for number in range(20):
            self.create(f"large{number}", {"Worker": {"replicas": 1, "template": template}}, {"suspend": True})
        self.create("small", {"Worker": replicas(1)})
        operator = self.operate()
        wait_until(lambda: "small-worker-0" in self.all("pods"), "the small job's pod is there", 300)
        self.assertIn("ready: 21 jobs", operator.said())
        self.assertLess(self.peak_mib(operator), 400)
        self.end(operator)


class DefinitionTest(MusterTest):
    def test_a_missing_definition_is_named(self):
        cluster = SharedCluster(self)
        refused = self.muster("operator", "--no-leader-election", "-n", cluster.namespace, check=False, env={**self.env, "KUBECONFIG": str(cluster.kubeconfig)})
        self.assertEqual(refused.returncode, 1)
        self.assertIn("the cluster has no tfjobs of kubeflow.org/v1: is their CRD installed?", refused.stderr)


if __name__ == "__main__":
    unittest.main()
