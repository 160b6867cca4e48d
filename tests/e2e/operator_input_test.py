"""muster operator where it cannot work: it says what is wrong and what to do, and ends."""
import contextlib
import re
import socket
import ssl
import threading
import unittest

from cluster.certificates import Authority
from clusters import SharedCluster
from operators import OperatorTest, replicas
from support import MusterTest, wait_until


def rule(group, resources, *verbs):
    return {"apiGroups": [group], "resources": resources, "verbs": verbs}


RIGHTS = (rule("kubeflow.org", ["tfjobs"], "get", "list", "watch", "patch", "delete"), rule("kubeflow.org", ["tfjobs/status"], "get", "update"),
          rule("", ["pods", "services"], "get", "list", "watch", "create", "patch", "delete"), rule("", ["events"], "create", "patch"),
          rule("coordination.k8s.io", ["leases"], "get", "create", "update"))


class InputTest(OperatorTest):
    def assert_ends(self, *complaints, options=("--alone",), kubeconfig=None):
        operator = self.operate(*options, kubeconfig=kubeconfig)
        self.assertEqual(operator.wait(timeout=60), 1)
        last = operator.said().splitlines()[-1]
        for complaint in complaints:
            self.assertIn(complaint, last)

    def allow(self, user, *without):
        """A user who may do what the operator needs in the namespace, but for some (resource, verb)."""
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

    def test_a_right_that_is_missing_is_named(self):
        here = f"in a Role of namespace '{self.namespace}'"
        self.assert_ends('{apiGroups: [""], resources: ["services"], verbs: ["list"]}', here, kubeconfig=self.allow("ann", ("services", "list")))
        self.assert_ends('{apiGroups: ["coordination.k8s.io"], resources: ["leases"], verbs: ["create"]}', here,
                         options=("--lease-namespace", self.namespace), kubeconfig=self.allow("cat", ("leases", "create")))

    def test_a_right_to_write_that_is_missing_is_told_and_may_come(self):
        operator = self.operate(kubeconfig=self.allow("ann", ("pods", "create")))
        self.create("job", {"Worker": replicas(1)})
        missing = '{apiGroups: [""], resources: ["pods"], verbs: ["create"]}'

        def told():
            return any(missing in event["message"] for event in self.ask("GET", "events")[1]["items"] if event["reason"] == "FailedCreatePod")

        wait_until(told, "it is told")
        self.assertIn(missing, operator.said())
        self.allow("ann")
        self.wait_pods("job-worker-0")

    def test_what_it_can_do_without_keeps_it_from_nothing(self):
        operator = self.operate(kubeconfig=self.allow("ann", ("events", "create"), ("pods", "watch")))
        self.create("job", {"Worker": replicas(1)})
        self.wait_pods("job-worker-0")
        self.set_phase("job-worker-0", "Succeeded")
        self.wait_conditions("job", "Created", "Succeeded")
        for missing in ('resources: ["events"], verbs: ["create"]', 'resources: ["pods"], verbs: ["watch"]'):
            wait_until(lambda: missing in operator.said(), "the log says so")

    def test_an_expired_client_certificate(self):
        self.assert_ends("the client certificate expired at 20", "get a new one", kubeconfig=self.cluster.user("late", expired=True))

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
        self.assert_ends("certificate has expired", "is to be renewed by who runs the cluster", kubeconfig=kubeconfig)

    def test_a_context_that_does_not_exist(self):
        self.assert_ends("there is no context 'nowhere'; there are: admin, token", options=("--alone", "--context", "nowhere"))


class DefinitionTest(MusterTest):
    def test_a_missing_definition_is_named(self):
        cluster = SharedCluster(self)
        refused = self.muster("operator", "--alone", "-n", cluster.namespace, check=False, env={**self.env, "KUBECONFIG": str(cluster.kubeconfig)})
        self.assertEqual(refused.returncode, 1)
        self.assertIn("the cluster has no tfjobs of kubeflow.org/v1: is their CRD installed?", refused.stderr)


if __name__ == "__main__":
    unittest.main()
