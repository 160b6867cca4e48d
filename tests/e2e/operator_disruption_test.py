"""muster operator when the cluster removes or rejects pods, on a real API server without nodes: the tests set the
pods' status themselves. A pod that is bound to a node that does not exist stays Terminating when it is deleted."""
import datetime
import json
import os
import signal
import unittest

from clusters import SharedCluster
from operators import OperatorTest, pod_template, replicas
from support import SOURCE, MusterTest, wait_until

KUBEFLOW = SOURCE / "tests" / "cluster" / "kubeflow_tfjobs.yaml"
STATUS = "muster/status"


class Disrupted(OperatorTest):
    def start_pods(self, *pods):
        """Binds each pod to its own nonexistent node and sets it to Running. The pod garbage collector tolerates such a node for 40 s."""
        wait_until(lambda: set(pods) <= set(self.all("pods")), f"{pods} are there")
        for pod in pods:
            binding = {"metadata": {"name": pod}, "target": {"kind": "Node", "name": f"ghost-{self.uid(pod)}"}}
            answer, body = self.ask("POST", "pods/binding", pod, binding)
            self.assertEqual(answer, 201, body)
        self.set_phases("Running", *pods)

    def terminate(self, pod):
        """Requests the deletion of a pod, which its node has not executed yet."""
        answer, body = self.ask("DELETE", "pods", pod, {"gracePeriodSeconds": 60})
        self.assertEqual(answer, 200, body)
        self.assertIn("deletionTimestamp", self.ask("GET", "pods", pod)[1]["metadata"])

    def wait_terminating(self, pod):
        wait_until(lambda: "deletionTimestamp" in self.ask("GET", "pods", pod)[1]["metadata"], f"{pod} is being deleted")

    def collect(self, pod):
        """Removes a pod as its node does after its containers have ended."""
        uid = self.uid(pod)
        answer, body = self.ask("DELETE", "pods", pod, {"gracePeriodSeconds": 0, "preconditions": {"uid": uid}})
        self.assertIn(answer, (200, 404), body)
        return uid

    def active(self, job, role):
        return self.job(job)["status"]["replicaStatuses"][role]["active"]

    def wait_active(self, job, **counts):
        """Waits until the operator has counted that many running pods of each role."""
        wait_until(lambda: {role: self.active(job, role) for role in counts} == counts, f"{job} has {counts}")

    def restarts(self, job):
        return {task: own["count"] for task, own in self.job(job)["status"].get("restarts", {}).items() if own["count"]}


class LostTest(Disrupted):
    LOSSES = ({"conditions": [{"type": "DisruptionTarget", "status": "True", "reason": "DeletionByPodGC", "message": "PodGC: node not found"}]},
              {"reason": "Evicted", "message": "The node was low on resource: memory.", "code": 137},
              {"reason": "OutOfcpu"},
              {})

    def test_lost_pods_are_replaced_under_every_policy_and_do_not_count(self):
        self.operate()
        policies = ("Never", "ExitCode", "OnFailure", "Always")
        for policy in policies:
            self.create(policy.lower(), {"Chief": replicas(1, policy), "Worker": replicas(len(self.LOSSES), policy)}, {"backoffLimit": 1})
        for policy in policies:
            job = policy.lower()
            workers = [f"{job}-worker-{index}" for index in range(len(self.LOSSES))]
            self.wait_pods(f"{job}-chief-0", *workers, job=job)
            self.set_phases("Running", f"{job}-chief-0", *workers)
            uids = {worker: self.uid(worker) for worker in workers}
            for worker, loss in zip(workers, self.LOSSES):
                self.set_phase(worker, "Failed", **loss)
            for worker in workers:
                self.wait_replaced(worker, uids[worker])
            self.assertNotIn("Failed", self.conditions(job))
            self.assertEqual(self.restarts(job), {})
            self.assertEqual({task: own["lost"] for task, own in self.job(job)["status"]["restarts"].items()},
                             {f"worker:{index}": 1 for index in range(len(workers))})
        def messages():  # events are written after the pods, at a limited rate
            return [event["message"] for event in self.ask("GET", "events")[1]["items"] if event["reason"] == "TFJobRestarting"]
        for word in ("Evicted: The node was low on resource: memory.", "DeletionByPodGC", "OutOfcpu", "its node is gone"):
            wait_until(lambda: any(word in message for message in messages()), f"an event says {word!r}")

    def test_a_pod_lost_repeatedly_is_replaced_with_a_delay(self):
        self.operate()
        self.create("job", {"Worker": replicas(1)})
        for _ in range(2):
            self.wait_pods("job-worker-0")
            uid = self.uid("job-worker-0")
            self.set_phase("job-worker-0", "Failed", reason="UnexpectedAdmissionError")
            wait_until(lambda: self.uid("job-worker-0") != uid, "it is removed")
        wait_until(lambda: self.job("job")["status"]["restarts"]["worker:0"]["lost"] == 2, "both are recorded")
        wait_until(lambda: "job-worker-0" in self.all("pods"), "it is back", 60)
        times = [datetime.datetime.fromisoformat(text.replace("Z", "+00:00")) for text in
                 (self.job("job")["status"]["restarts"]["worker:0"]["lastLost"], self.all("pods")["job-worker-0"]["metadata"]["creationTimestamp"])]
        self.assertGreaterEqual((times[1] - times[0]).total_seconds(), 9)
        self.assertEqual(self.conditions("job"), ["Created", "Restarting"])


class DeletedTest(Disrupted):
    def test_a_pod_that_is_being_deleted_has_no_outcome(self):
        self.operate()
        roles = ("Chief", "PS", "Worker")
        for policy in ("Never", "ExitCode"):
            for code in (0, 1, 143):
                job = f"{policy.lower()}{code}"
                self.create(job, {role: replicas(1, policy) for role in roles}, {"backoffLimit": 0})
                pods = {role: f"{job}-{role.lower()}-0" for role in roles}
                self.start_pods(*pods.values())
                self.wait_active(job, Chief=1, PS=1, Worker=1)
                for role in ("Chief", "Worker"):
                    self.terminate(pods[role])
                    self.set_phase(pods[role], "Failed" if code else "Succeeded", code)
                # Observed after the others, so the operator has observed all three.
                self.set_phase(pods["PS"], "Pending")
                self.wait_active(job, Chief=0, PS=0, Worker=0)
                status = self.job(job)["status"]
                self.assertEqual([c["type"] for c in status["conditions"] if c["status"] == "True"], ["Created", "Running"])
                self.assertEqual((status.get("restarts"), status.get("succeeded")), (None, None))
                self.assertEqual({(one["succeeded"], one["failed"]) for one in status["replicaStatuses"].values()}, {(0, 0)})
                for role in ("Chief", "Worker"):
                    self.wait_replaced(pods[role], self.collect(pods[role]))
                self.set_phase(pods["Chief"], "Succeeded", 0)
                self.wait_conditions(job, "Created", "Succeeded")

    def test_a_job_that_never_restarts_survives_its_rolling_update(self):
        self.operate()
        self.create("job", {"Worker": replicas(2, "Never")}, {"backoffLimit": 0})
        self.kubectl("annotate", "tfjob", "job", "muster/update=rolling")
        pods = ("job-worker-0", "job-worker-1")
        self.start_pods(*pods)
        self.wait_active("job", Worker=2)
        changed = pod_template()
        changed["spec"]["containers"][0]["image"] = "tf:2"
        self.change("job", {"tfReplicaSpecs": {"Worker": {"template": changed}}})
        for pod in pods:
            self.wait_terminating(pod)
            self.set_phase(pod, "Failed", 143)
            self.wait_replaced(pod, self.collect(pod))
            self.start_pods(pod)
        self.wait_active("job", Worker=2)
        self.assertEqual(self.conditions("job"), ["Created", "Running"])
        self.assertEqual({pod["spec"]["containers"][0]["image"] for pod in self.all("pods").values()}, {"tf:2"})
        self.assertNotIn("restarts", self.job("job")["status"])


class CountTest(Disrupted):
    def test_nothing_is_active_after_the_clean_up(self):
        self.operate()
        for policy, left in (("All", 0), ("Running", 0), ("None", 2)):
            job = policy.lower()
            self.create(job, {"Chief": replicas(1), "PS": replicas(2)}, {"cleanPodPolicy": policy})
            servers = [f"{job}-ps-{index}" for index in range(2)]
            self.start_pods(f"{job}-chief-0", *servers)
            self.wait_active(job, Chief=1, PS=2)
            self.set_phase(f"{job}-chief-0", "Succeeded", 0)
            self.wait_conditions(job, "Created", "Succeeded")
            self.wait_active(job, Chief=0, PS=left)
            self.assertEqual(self.job(job)["status"]["replicaStatuses"]["Chief"], {"active": 0, "succeeded": 1, "failed": 0})
            for server in servers:
                self.collect(server)
            self.wait_active(job, Chief=0, PS=0)

    def test_back_off_ends_at_the_limit(self):
        self.operate()
        for limit, failures in ((0, 1), (1, 1), (2, 2)):
            job, pod = f"limit{limit}", f"limit{limit}-worker-0"
            self.create(job, {"Worker": replicas(1, "OnFailure")}, {"backoffLimit": limit})
            for failure in range(1, failures + 1):
                wait_until(lambda: pod in self.all("pods"), "the pod is there")
                uid = self.uid(pod)
                self.set_phase(pod, "Failed", 1)
                if failure < failures:
                    self.wait_replaced(pod, uid)
                    self.assertEqual(self.conditions(job), ["Created", "Restarting"])
            self.wait_conditions(job, "Created", "Failed")
            self.assertEqual(self.condition(job, "Failed")["reason"], "BackoffLimitExceeded")
            self.assertEqual(self.uid(pod), uid)


class RefusedTest(OperatorTest):
    def events_of(self, job, reason):
        return [event for event in self.ask("GET", "events")[1]["items"]
                if event["involvedObject"]["name"] == job and event["reason"] == reason]

    def test_an_exceeded_quota_is_reported_once_and_retried(self):
        quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "small"}, "spec": {"hard": {"pods": "0"}}}
        self.assertEqual(self.ask("POST", "resourcequotas", value=quota)[0], 201)
        wait_until(lambda: self.ask("GET", "resourcequotas", "small")[1].get("status", {}).get("hard"), "the quota counts")
        self.operate()
        self.create("job", {"Worker": replicas(3)})
        self.wait_conditions("job", "Created", "ReplicaFailure")
        refused = self.condition("job", "ReplicaFailure")
        self.assertEqual(refused["reason"], "FailedCreatePod")
        self.assertRegex(refused["message"], r"exceeded quota: small.*\(and 2 more\)")
        # Attempts are five to ten seconds apart, then ten to fifteen; each counts once for all three pods.
        wait_until(lambda: [event for event in self.events_of("job", "FailedCreatePod") if event["count"] >= 3], "the event is counted", 90)
        event, = self.events_of("job", "FailedCreatePod")
        self.assertLessEqual(event["count"], 6)  # not one for each pod
        self.assertGreater(event["lastTimestamp"], event["firstTimestamp"])
        answer, body = self.ask("PATCH", "resourcequotas", "small", {"spec": {"hard": {"pods": "5"}}},
                                {"Content-Type": "application/merge-patch+json"})
        self.assertEqual(answer, 200, body)
        wait_until(lambda: len(self.all("pods")) == 3, "all pods are made", 60)
        self.wait_conditions("job", "Created")

    def test_a_corrected_spec_is_retried_immediately(self):
        self.operate()
        refused = replicas(1)
        refused["template"]["spec"]["containers"][0]["imagePullPolicy"] = "Sometimes"
        self.create("job", {"Worker": refused})
        self.wait_conditions("job", "Created", "ReplicaFailure")
        self.assertIn("imagePullPolicy", self.condition("job", "ReplicaFailure")["message"])
        self.assertEqual(set(self.all("services")), {"job-worker-0"})
        self.change("job", {"tfReplicaSpecs": {"Worker": replicas(1)}})
        self.wait_pods("job-worker-0")
        self.wait_conditions("job", "Created")


class PrunedTest(OperatorTest):
    """A cluster with Kubeflow's CRD."""

    def setUp(self):
        MusterTest.setUp(self)
        self.use(SharedCluster(self, [KUBEFLOW]))

    def kept(self, job):
        return json.loads(self.job(job)["metadata"].get("annotations", {}).get(STATUS, "{}"))

    def test_restarts_and_successes_survive(self):
        first = self.operate()
        self.create("job", {"Worker": replicas(3, "ExitCode")}, {"backoffLimit": 3}, successPolicy="AllWorkers")
        pods = [f"job-worker-{index}" for index in range(3)]
        self.wait_pods(*pods)
        self.set_phases("Running", *pods)
        self.wait_conditions("job", "Created", "Running")
        self.set_phase(pods[2], "Succeeded", 0)
        wait_until(lambda: self.kept("job").get("succeeded") == ["worker:2"], "the success is kept")
        uid = self.uid(pods[0])
        self.set_phase(pods[0], "Failed", 137)
        self.wait_replaced(pods[0], uid)
        self.assertEqual(self.kept("job")["restarts"]["worker:0"], {"count": 1, "lastPod": uid})
        status = self.job("job")["status"]
        self.assertFalse({"restarts", "succeeded"} & set(status), "the CRD has no such fields")
        # A succeeded task does not run again, also with an operator that has not observed its success.
        os.kill(first.pid, signal.SIGKILL)
        first.wait()
        self.assertEqual(self.ask("DELETE", "pods", pods[2], {"gracePeriodSeconds": 0})[0], 200)
        self.operate()
        uid = self.uid(pods[1])
        self.set_phase(pods[1], "Failed", 137)
        self.wait_replaced(pods[1], uid)
        self.wait_pods(*pods[:2])
        # The third failure reaches the limit.
        uid = self.uid(pods[1])
        self.set_phase(pods[1], "Failed", 137)
        self.wait_conditions("job", "Created", "Failed")
        self.assertEqual(self.condition("job", "Failed")["reason"], "BackoffLimitExceeded")
        self.assertEqual(self.uid(pods[1]), uid)

    def test_a_copied_manifest_starts_from_scratch(self):
        self.operate()
        self.create("job", {"Worker": replicas(2)}, successPolicy="AllWorkers")
        self.wait_pods("job-worker-0", "job-worker-1")
        self.set_phase("job-worker-1", "Succeeded", 0)
        wait_until(lambda: self.kept("job").get("succeeded") == ["worker:1"], "the success is kept")
        copied = self.job("job")
        copied["metadata"] = {"name": "copy", "annotations": copied["metadata"]["annotations"]}
        self.assertEqual(self.ask("POST", "tfjobs", value=copied)[0], 201)
        self.wait_pods("copy-worker-0", "copy-worker-1", job="copy")


if __name__ == "__main__":
    unittest.main()
