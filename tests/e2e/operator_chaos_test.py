"""muster operator when the connection to the API server, or the server itself, fails: every job reaches the same end, and no write is repeated."""
import itertools
import random
import signal
import unittest

from clusters import FaultProxy, own_cluster
from operators import CRDS, OperatorTest, replicas
from support import wait_until

PODS = 4
SEED = 7
# The operator's writes: verb and path.
WRITES = (("create", "/pods$"), ("create", "/services$"), ("update", "/status$"), ("delete", "/pods/"), ("delete", "/services/"))


def in_rounds(faults, size):
    """Yields all faults in a fixed order, some at a time."""
    shuffled = random.Random(SEED).sample(faults, len(faults))
    return [shuffled[begin:begin + size] for begin in range(0, len(shuffled), size)]


class Chaos(OperatorTest):
    def operate_through_proxy(self, *faults):
        self.proxy = FaultProxy(self, self.cluster.kubeconfig)
        self.proxy.fail(*faults)
        self.requests = []
        return self.operate(kubeconfig=self.proxy.kubeconfig)

    def struck(self):
        """Returns the number of failed requests so far."""
        self.requests += self.proxy.log()
        return sum(bool(entry["fault"]) for entry in self.requests)

    def made(self, kind):
        """Returns the number of objects of a kind that the server has created for the operator, according to the proxy's log."""
        self.struck()
        return sum((entry["verb"], entry["status"]) == ("create", 201) and entry["path"].endswith(f"/{kind}") for entry in self.requests)

    def start_job(self, name):
        roles = {"Chief": replicas(1, "ExitCode"), "PS": replicas(1, "ExitCode"), "Worker": replicas(2, "ExitCode")}
        self.create(name, roles, {"cleanPodPolicy": "All", "backoffLimit": 2})
        return [f"{name}-chief-0", f"{name}-ps-0", f"{name}-worker-0", f"{name}-worker-1"]

    def run_job(self, name, pods):
        """Waits until the job runs, after the restart of one of its pods."""
        self.wait_pods(*pods, job=name)
        self.wait_services(*pods, job=name)
        self.set_phases("Running", *pods)
        self.wait_conditions(name, "Created", "Running")
        uid = self.uid(pods[-1])
        self.set_phase(pods[-1], "Failed", 137)
        self.wait_replaced(pods[-1], uid)
        self.wait_conditions(name, "Created", "Running")  # the chief runs
        self.set_phase(pods[-1], "Running")

    def finish_job(self, name, pods):
        self.set_phase(pods[0], "Succeeded")
        self.wait_finished(name)

    def wait_finished(self, name, restarts=1):
        self.wait_conditions(name, "Created", "Succeeded")
        self.wait_pods(job=name)
        self.wait_services(job=name)
        status = self.job(name)["status"]
        self.assertEqual(status.get("restarts", {}).get("worker:1", {}).get("count", 0), restarts)
        self.assertEqual(status["replicaStatuses"]["Chief"]["succeeded"], 1)
        self.assertEqual(status["succeeded"], ["chief:0"])

    def play(self, name):
        pods = self.start_job(name)
        self.run_job(name, pods)
        self.finish_job(name, pods)

    def assert_made_once(self, jobs):
        self.assertEqual((self.made("pods"), self.made("services")), (jobs * (PODS + 1), jobs * PODS))


class ConnectionTest(Chaos):
    """Faults between the operator and the server."""

    def play_rounds(self, faults, size):
        operator = self.operate_through_proxy()
        rounds = in_rounds(faults, size)
        for number, some in enumerate(rounds):
            with self.subTest(number=number, faults=some):
                before = self.struck()
                self.proxy.fail(*some)
                self.play(f"job{number}")
                self.assertEqual(self.struck() - before, len(some))
                self.assert_made_once(number + 1)
        self.end(operator)

    def test_rejected_requests(self):
        refusals = [{"status": 500}, {"status": 503}, {"status": 429, "headers": {"Retry-After": "1"}}]
        faults = [{"kind": "status", "verb": verb, "path": path, "skip": skip, **refusal}
                  for (verb, path), refusal, skip in itertools.product(WRITES, refusals, (0, 2))]
        # Conflicts: a quota that changes while a pod is created, and a job that another client has written.
        faults += [{"kind": "status", "verb": verb, "path": path, "skip": skip, "status": 409, "reason": "Conflict"}
                   for (verb, path), skip in itertools.product(WRITES[:3], (0, 2))]
        self.play_rounds(faults, 6)

    def test_cut_connections(self):
        faults = [{"kind": kind, "verb": verb, "path": path, "skip": skip}
                  for (verb, path), kind, skip in itertools.product(WRITES, ("cut", "cut-answer"), (0, 1, 2))]
        self.play_rounds(faults, 6)

    def test_watches(self):
        """Each of the three fails repeatedly, in another order."""
        ends = [{"kind": kind, "events": events} for kind, events in itertools.product(("cut-answer", "end", "gone"), range(3))]
        ends += [{"kind": "cut"}, {"kind": "status", "status": 500}, {"kind": "status", "status": 410, "reason": "Expired"}]
        faults = [{"verb": "watch", "path": f"/{kind}[?]", **end} for kind in ("tfjobs", "pods", "services") for end in ends]
        operator = self.operate_through_proxy(*in_rounds(faults, len(faults))[0])
        jobs = 0
        while self.struck() < len(faults):
            self.assertLess(jobs, 20)
            self.play(f"job{jobs}")
            jobs += 1
        self.assert_made_once(jobs)
        self.end(operator)

    def test_lists(self):
        """An operator starts during faults, with existing pods."""
        first = self.operate()
        pods = self.start_job("job")
        self.wait_pods(*pods)
        self.wait_services(*pods)
        self.end(first)
        uids = {pod: self.uid(pod) for pod in pods}
        faults = [{"verb": "get", "path": f"/{kind}[?]", **fault} for kind in ("tfjobs", "pods", "services")
                  for fault in ({"kind": "cut"}, {"kind": "cut-answer"}, {"kind": "status", "status": 500}, {"kind": "status", "status": 429})]
        self.operate_through_proxy(*faults)
        self.run_job("job", pods)
        self.assertEqual(self.struck(), len(faults))
        self.assertEqual({pod: self.uid(pod) for pod in pods[:3]}, {pod: uids[pod] for pod in pods[:3]})
        self.finish_job("job", pods)
        self.assertEqual((self.made("pods"), self.made("services")), (1, 0))

    def test_requests_without_a_response(self):
        """Requests without a response, executed or not, of three jobs at a time, beside one job without faults."""
        operator = self.operate_through_proxy()
        ended = self.start_job("ended")
        self.run_job("ended", ended)
        self.proxy.fail({"kind": "stall", "verb": "update", "path": "/status-of/status$"},
                        {"kind": "stall-answer", "verb": "create", "path": "/pods$"},
                        {"kind": "stall-answer", "verb": "delete", "path": "/pods/ended-"})
        made = self.start_job("made")
        wait_until(lambda: self.all("pods", "made"), "a pod is made, and its creation not answered")
        written = self.start_job("status-of")
        self.set_phase(ended[0], "Succeeded")
        self.play("other")
        self.run_job("made", made)
        self.run_job("status-of", written)
        for name, pods in (("made", made), ("status-of", written)):
            self.finish_job(name, pods)
        self.wait_finished("ended")
        self.assertEqual(self.struck(), 3)
        self.assert_made_once(4)
        self.end(operator)

    def test_a_name_that_is_taken(self):
        self.operate()
        answer, other = self.ask("POST", "pods", value={"metadata": {"name": "job-worker-0"}, "spec": {"containers": [{"name": "a", "image": "b"}]}})
        self.assertEqual(answer, 201, other)
        self.create("job", {"Worker": replicas(1)})
        wait_until(lambda: "FailedCreatePod" in self.reasons("job"), "it is told")
        self.assertEqual(self.uid("job-worker-0"), other["metadata"]["uid"])
        self.assertEqual(self.ask("DELETE", "pods", "job-worker-0")[0], 200)
        self.wait_replaced("job-worker-0", other["metadata"]["uid"])


class ServerTest(Chaos):
    """Tests with their own cluster."""

    def setUp(self):
        super(OperatorTest, self).setUp()
        self.use(own_cluster(self, controllers=False, manifests=[CRDS]), "default")

    def restart_server(self):
        self.cluster.stop_server(signal.SIGKILL)
        self.cluster.start_server()

    def test_server_killed(self):
        """The server restarts while jobs are being created, and while they end."""
        operator = self.operate_through_proxy()
        jobs = {f"job{number}": self.start_job(f"job{number}") for number in range(4)}
        wait_until(lambda: len(self.all("pods")) >= 5, "some pods are made")
        uids = {name: pod["metadata"]["uid"] for name, pod in self.all("pods").items()}
        self.restart_server()
        for name, pods in jobs.items():
            self.wait_pods(*pods, job=name)
            self.wait_services(*pods, job=name)
            self.set_phases("Running", *pods)
        for name in jobs:
            self.wait_conditions(name, "Created", "Running")
        self.assertEqual({name: self.uid(name) for name in uids}, uids)
        for name in ("job0", "job1"):
            self.set_phase(jobs[name][0], "Succeeded")
        wait_until(lambda: len(self.all("pods")) < PODS * len(jobs), "some are being deleted")
        self.restart_server()
        for name in ("job2", "job3"):
            self.set_phase(jobs[name][0], "Succeeded")
        for name in jobs:
            self.wait_finished(name, restarts=0)
        # A request that was interrupted may have been executed, but never twice.
        self.assertLessEqual(self.made("pods"), PODS * len(jobs))
        self.assertLessEqual(self.made("services"), PODS * len(jobs))
        self.play("after")
        self.end(operator)


if __name__ == "__main__":
    unittest.main()
