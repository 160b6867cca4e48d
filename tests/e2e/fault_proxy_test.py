"""The proxy that injects faults into requests to Kubernetes, as kubectl and a bare client see them."""
import http.client
import json
import signal
import subprocess
import sys
import time
import unittest

from clusters import FaultProxy, SharedCluster


def settings(name, **data):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


class FaultProxyTest(unittest.TestCase):
    def setUp(self):
        self.cluster = SharedCluster(self)
        self.proxy = FaultProxy(self, self.cluster.kubeconfig)
        self.kubectl = self.cluster.as_user(self.proxy.kubeconfig)
        self.path = f"/api/v1/namespaces/{self.cluster.namespace}/configmaps"

    def create(self, name):
        """Sends one request and returns the status and the object of the response."""
        return self.proxy.ask("POST", self.path, settings(name))

    def assert_lost(self, name):
        with self.assertRaises((http.client.HTTPException, OSError)):
            self.create(name)

    def exists(self, name):
        return self.cluster.kubectl("get", "configmap", name, check=False).returncode == 0

    def test_the_proxy_is_transparent_without_faults(self):
        self.kubectl.apply(settings("first", answer="42"))
        self.assertEqual(self.kubectl.get("configmap", "first")["data"], {"answer": "42"})
        self.assertEqual(self.kubectl.get("configmap", "first", "--context=token")["data"], {"answer": "42"})
        large = settings("large", text="x" * 900_000)
        self.assertEqual(self.proxy.ask("POST", self.path, large)[1]["data"], large["data"])
        log = self.proxy.log()
        self.assertIn({"verb": "create", "path": self.path, "user": "admin", "status": 201, "fault": ""}, log)

    def test_a_user_keeps_its_identity(self):
        bob = FaultProxy(self, self.cluster.user("bob"))
        refused = self.cluster.as_user(bob.kubeconfig)("get", "configmaps", check=False)
        self.assertIn(f'configmaps is forbidden: User "bob-{self.cluster.namespace}" cannot list', refused.stderr)
        # A client cannot impersonate another user with the headers that the proxy uses.
        status, answer = bob.ask("GET", self.path, headers={"X-Remote-User": "eve", "X-Remote-Group": "system:masters"})
        self.assertEqual(status, 403)
        self.assertIn(f'configmaps is forbidden: User "bob-{self.cluster.namespace}" cannot list', answer["message"])

    def test_injected_responses(self):
        self.proxy.fail({"kind": "status", "status": 409, "verb": "create"},
                        {"kind": "status", "status": 429, "verb": "create", "headers": {"Retry-After": "1"}},
                        {"kind": "status", "status": 500, "verb": "get", "times": -1})
        status, answer = self.create("one")
        self.assertEqual((status, answer["kind"], answer["reason"]), (409, "Status", "Conflict"))
        self.assertEqual(self.create("one")[0], 429)
        self.assertFalse(self.exists("one"))
        self.assertEqual(self.create("one")[0], 201)
        for _ in range(2):
            self.assertEqual(self.proxy.ask("GET", self.path)[0], 500)
        self.proxy.fail()
        self.assertEqual(self.proxy.ask("GET", self.path)[0], 200)

    def test_lost_requests_and_lost_responses(self):
        self.proxy.fail({"kind": "cut", "verb": "write", "skip": 1})
        self.assertEqual(self.create("one")[0], 201)
        self.assert_lost("two")
        self.assertFalse(self.exists("two"))
        self.proxy.fail({"kind": "cut-answer", "verb": "write"})
        self.assert_lost("three")
        self.assertTrue(self.exists("three"))

    def test_requests_without_a_response(self):
        self.proxy.fail({"kind": "stall", "path": "configmaps"}, {"kind": "stall-answer", "path": "configmaps"},
                        {"kind": "delay", "path": "configmaps", "seconds": 0.5})
        for name, done in (("one", False), ("two", True)):
            with self.assertRaises(TimeoutError):
                self.proxy.ask("POST", self.path, settings(name), timeout=1)
            self.assertEqual(self.exists(name), done)
        begun = time.monotonic()
        self.assertEqual(self.create("three")[0], 201)
        self.assertGreaterEqual(time.monotonic() - begun, 0.5)

    def watch(self):
        """Returns the events of a watch until its end, and whether it ended cleanly."""
        version = self.proxy.ask("GET", self.path)[1]["metadata"]["resourceVersion"]
        for number in range(3):
            self.cluster.kubectl.apply(settings(f"event-{number}-{version}"))
        with self.proxy.open("GET", f"{self.path}?watch=true&resourceVersion={version}") as answer:
            data = b""
            try:
                while piece := answer.read1(65536):
                    data += piece
            except (http.client.IncompleteRead, OSError):
                return data, False
        return data, True

    def test_watches_that_end(self):
        for kind, in_order in (("cut-answer", False), ("end", True), ("gone", True)):
            self.proxy.fail({"kind": kind, "verb": "watch", "events": 2})
            data, ended_in_order = self.watch()
            events = list(map(json.loads, data.splitlines()))
            kinds = [event["type"] for event in events]
            self.assertEqual((kinds, ended_in_order), (["ADDED"] * 2 + ["ERROR"] * (kind == "gone"), in_order), kind)
            if kind == "gone":
                self.assertEqual((events[-1]["object"]["code"], events[-1]["object"]["reason"]), (410, "Expired"))

    def test_a_process_dies_at_its_nth_write(self):
        for kind, done in (("kill", False), ("kill-answer", True)):
            victim = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(1000)"])
            self.addCleanup(victim.wait)
            self.addCleanup(victim.kill)
            self.proxy.fail({"kind": kind, "verb": "write", "skip": 1, "pid": victim.pid})
            self.create(f"{kind}-one")
            self.assertIsNone(victim.poll())
            self.assert_lost(f"{kind}-two")
            self.assertEqual(victim.wait(20), -signal.SIGKILL)
            self.assertEqual((self.exists(f"{kind}-one"), self.exists(f"{kind}-two")), (True, done))

    def test_a_mistake_in_a_rule_is_reported(self):
        for rule in ({"kind": "explode"}, {"kind": "cut", "verbs": "write"}):
            with self.assertRaisesRegex(AssertionError, "not a fault"):
                self.proxy.fail(rule)

    def test_kubectl_sees_the_fault(self):
        self.proxy.fail({"kind": "status", "status": 500, "verb": "create", "path": "configmaps"})
        self.assertIn("injected by the test", self.kubectl("create", "configmap", "one", check=False).stderr)


if __name__ == "__main__":
    unittest.main()
