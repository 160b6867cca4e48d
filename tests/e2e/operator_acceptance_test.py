"""Compatibility with TFJob, on a real API server. Tests are named after the items of a list: creation
1-10, TF_CONFIG 11-15, status 16-24, restarts 25-29, policies 30-37, the rest 38-43. 38, 41 and 42 are in operator_test, 39 in
operator_webhook_test too."""
import datetime
import json
import unittest

from clusters import FaultProxy
from operators import LABEL, PATCH, OperatorTest, labels_of, owner_reference, pod_template, replicas
from support import wait_until


def time_of(text):
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00"))


def names(job, **counts):
    """Returns the labels of the pods and services of a job."""
    return sorted(f"{job}-{role}-{index}" for role, count in counts.items() for index in range(count))


def variables(pod):
    return {variable["name"]: variable.get("value") for variable in pod["spec"]["containers"][0].get("env", [])}


def tf_config(pod):
    return json.loads(variables(pod)["TF_CONFIG"])


class CreationTest(OperatorTest):
    def wait_all(self, job, **counts):
        """Waits until a job has its pods and services, and returns both."""
        expected = names(job, **counts)
        self.wait_pods(*expected, job=job)
        self.wait_services(*expected, job=job)
        return self.all("pods", job), self.all("services", job)

    def test_01_02_05_07_08_created_objects(self):
        self.operate()
        one = self.create("one", {"Worker": replicas(1)})
        self.create("many", {"Worker": replicas(4), "PS": replicas(2)})
        self.create("led", {"Chief": replicas(1), "Worker": replicas(2)})
        pods, services = self.wait_all("one", worker=1)
        self.assertNotIn("TF_CONFIG", variables(pods["one-worker-0"]))
        labels = labels_of("one", "worker", 0)
        for made in (pods["one-worker-0"], services["one-worker-0"]):
            self.assertEqual(made["metadata"]["ownerReferences"], [owner_reference(one)])
            self.assertEqual({**made["metadata"]["labels"], **labels}, made["metadata"]["labels"])
        self.assertEqual(services["one-worker-0"]["spec"]["clusterIP"], "None")
        self.assertEqual(services["one-worker-0"]["spec"]["selector"], labels)
        self.wait_all("many", worker=4, ps=2)
        for job, leader in (("one", "one-worker-0"), ("many", "many-worker-0"), ("led", "led-chief-0")):
            self.wait_conditions(job, "Created")
            roles = {name: pod["metadata"]["labels"].get(LABEL + "job-role") for name, pod in self.all("pods", job).items()}
            self.assertEqual({name for name, role in roles.items() if role}, {leader})
            self.assertEqual(roles[leader], "master")

    def test_03_04_only_missing_objects_are_created(self):
        job = self.create("job", {"Worker": replicas(3)})
        made = self.put_pod("job", 1, ownerReferences=[owner_reference(job)])
        first = self.operate()
        pods, _ = self.wait_all("job", worker=3)
        self.assertEqual(pods["job-worker-1"]["metadata"]["uid"], made["metadata"]["uid"])
        self.end(first)
        # All exist and are pending: the next operator creates nothing.
        proxy = FaultProxy(self, self.cluster.kubeconfig)
        self.operate(kubeconfig=proxy.kubeconfig)
        self.set_phase("job-worker-0", "Running")
        self.wait_conditions("job", "Created", "Running")
        self.assertEqual([entry for entry in proxy.log() if entry["verb"] in ("create", "delete") and "/events" not in entry["path"]], [])
        self.assertEqual({name: pod["metadata"]["uid"] for name, pod in self.all("pods").items()},
                         {name: pod["metadata"]["uid"] for name, pod in pods.items()})

    def test_06_09_10_templates_ports_and_defaults(self):
        template = {**pod_template(nodeSelector={"disk": "ssd"}),
                    "metadata": {"labels": {"team": "vision", LABEL + "job-name": "mine"}, "annotations": {"example.com/a": "b"}}}
        ported = pod_template()
        ported["spec"]["containers"][0]["ports"] = [{"name": "tfjob-port", "containerPort": 3333}, {"name": "web", "containerPort": 80}]
        self.operate()
        self.create("job", {"ps": {"template": template}, "WORKER": {"replicas": 1, "template": ported}})
        pods, services = self.wait_all("job", worker=1, ps=1)
        ps, worker = pods["job-ps-0"], pods["job-worker-0"]
        self.assertEqual(ps["metadata"]["labels"]["team"], "vision")
        self.assertEqual(ps["metadata"]["labels"][LABEL + "job-name"], "job")
        self.assertEqual(ps["metadata"]["annotations"]["example.com/a"], "b")
        self.assertEqual(ps["spec"]["nodeSelector"], {"disk": "ssd"})
        for pod in pods.values():
            self.assertEqual(pod["spec"]["restartPolicy"], "Never")
        ports = {name: [(port.get("name"), port["containerPort"]) for port in pod["spec"]["containers"][0]["ports"]]
                 for name, pod in pods.items()}
        self.assertEqual(ports, {"job-ps-0": [("tfjob-port", 2222)], "job-worker-0": [("tfjob-port", 3333), ("web", 80)]})
        self.assertEqual({name: [(port["name"], port["port"]) for port in service["spec"]["ports"]] for name, service in services.items()},
                         {"job-ps-0": [("tfjob-port", 2222)], "job-worker-0": [("tfjob-port", 3333)]})
        self.assertEqual(tf_config(worker)["cluster"], {"ps": [f"job-ps-0.{self.namespace}.svc:2222"],
                                                        "worker": [f"job-worker-0.{self.namespace}.svc:3333"]})
        # Without a cleanPodPolicy nothing is cleaned up.
        self.set_phases("Running", *pods)
        self.set_phase("job-worker-0", "Succeeded")
        self.wait_conditions("job", "Created", "Succeeded")
        self.wait_all("job", worker=1, ps=1)


class TfConfigTest(OperatorTest):
    def test_11_13_15_dense(self):
        self.operate()
        self.create("job", {"Worker": replicas(2), "PS": replicas(1), "Evaluator": replicas(1), "Chief": replicas(1)})
        self.create("old", {"Master": replicas(1), "Worker": replicas(1)})
        self.wait_pods(*names("job", chief=1, evaluator=1, ps=1, worker=2), job="job")
        at = f"{self.namespace}.svc:2222"
        text = variables(self.all("pods")["job-worker-1"])["TF_CONFIG"]
        self.assertEqual(text, json.dumps({
            "cluster": {"chief": [f"job-chief-0.{at}"], "evaluator": [f"job-evaluator-0.{at}"], "ps": [f"job-ps-0.{at}"],
                        "worker": [f"job-worker-0.{at}", f"job-worker-1.{at}"]},
            "task": {"type": "worker", "index": 1}, "environment": "cloud"}, separators=(",", ":")))
        self.assertEqual(tf_config(self.all("pods")["job-evaluator-0"])["task"], {"type": "evaluator", "index": 0})
        self.wait_pods(*names("old", master=1, worker=1), job="old")
        config = tf_config(self.all("pods")["old-master-0"])
        self.assertEqual(config["cluster"], {"master": [f"old-master-0.{at}"], "worker": [f"old-worker-0.{at}"]})
        self.assertEqual(config["task"], {"type": "master", "index": 0})

    def test_12_14_custom_domain_and_sparse(self):
        self.operate("--no-leader-election", "--domain", "example.local")
        self.create("job", {"Worker": replicas(2), "PS": replicas(2)}, enableDynamicWorker=True)
        self.wait_pods(*names("job", ps=2, worker=2))
        at = f"{self.namespace}.svc.example.local:2222"
        pods = self.all("pods")
        self.assertEqual(tf_config(pods["job-worker-1"]), {
            "cluster": {"ps": [f"job-ps-0.{at}", f"job-ps-1.{at}"], "worker": {"1": f"job-worker-1.{at}"}},
            # Its name in Kubeflow before 1.7.
            "sparseCluster": {"ps": [f"job-ps-0.{at}", f"job-ps-1.{at}"], "worker": {"1": f"job-worker-1.{at}"}},
            "task": {"type": "worker", "index": 1}, "environment": "cloud"})
        self.assertEqual(tf_config(pods["job-worker-0"])["cluster"]["worker"], {"0": f"job-worker-0.{at}"})
        self.assertEqual(tf_config(pods["job-ps-1"])["cluster"], {"ps": {"1": f"job-ps-1.{at}"}, "worker": {}})
        # A failed worker does not fail the job.
        self.set_phases("Running", "job-ps-0", "job-ps-1", "job-worker-0")
        self.set_phase("job-worker-1", "Failed", 1)
        self.wait_conditions("job", "Created", "Running")


class StatusTest(OperatorTest):
    def assert_ended(self, job, verdict):
        """Running stays False after the outcome, and the first outcome is final."""
        self.wait_conditions(job, "Created", verdict)
        self.assertEqual(self.condition(job, "Running")["status"], "False")
        status = self.job(job)["status"]
        self.assertEqual(status["conditions"][-1]["reason"], f"TFJob{verdict}")
        self.assertGreaterEqual(time_of(status["completionTime"]), time_of(status["startTime"]))

    def start_jobs(self, *jobs, **more):
        """Creates jobs of the same roles whose pods are then all Running."""
        specs = more.pop("specs")
        for job in jobs:
            self.create(job, specs, **more)
        counts = {role.lower(): spec["replicas"] for role, spec in specs.items()}
        for job in jobs:
            self.wait_pods(*names(job, **counts), job=job)
            self.set_phases("Running", *names(job, **counts))
        for job in jobs:
            self.wait_conditions(job, "Created", "Running")
            wait_until(lambda: self.counts(job) == {role: (spec["replicas"], 0, 0) for role, spec in specs.items()}, f"{job} is counted")

    def counts(self, job):
        return {role: (one["active"], one["succeeded"], one["failed"]) for role, one in self.job(job)["status"]["replicaStatuses"].items()}

    def test_16_22_24_with_a_chief(self):
        self.operate()
        self.start_jobs("good", "bad", "server", specs={"Chief": replicas(1), "PS": replicas(1), "Worker": replicas(2)})
        self.set_phase("good-worker-0", "Succeeded")
        wait_until(lambda: self.counts("good")["Worker"] == (1, 1, 0), "the worker is counted")
        self.assertEqual(self.conditions("good"), ["Created", "Running"])
        self.set_phase("good-chief-0", "Succeeded", 0)
        self.assert_ended("good", "Succeeded")
        self.set_phase("bad-chief-0", "Failed", 2)
        self.assert_ended("bad", "Failed")
        self.assertRegex(self.condition("bad", "Failed")["message"], "Chief 0 .*exit code 2")
        self.set_phase("server-ps-0", "Failed", 1)
        self.assert_ended("server", "Failed")
        # Failures after the outcome do not change it.
        before = self.job("good")["status"]["conditions"]
        self.set_phase("good-worker-1", "Failed", 1)
        self.create("after", {"Worker": replicas(1)})
        self.wait_conditions("after", "Created")
        self.assertEqual(self.job("good")["status"]["conditions"], before)

    def test_17_18_without_a_chief(self):
        self.operate()
        self.start_jobs("good", "bad", specs={"Worker": replicas(4)})
        self.set_phase("good-worker-1", "Succeeded")
        wait_until(lambda: self.counts("good")["Worker"] == (3, 1, 0), "the worker is counted")
        self.assertEqual(self.conditions("good"), ["Created", "Running"])
        self.set_phase("good-worker-0", "Succeeded")
        self.assert_ended("good", "Succeeded")
        self.assertEqual(self.counts("good"), {"Worker": (2, 2, 0)})
        self.set_phase("bad-worker-3", "Failed", 1)
        self.assert_ended("bad", "Failed")
        self.assertEqual(self.counts("bad"), {"Worker": (3, 0, 1)})

    def test_19_20_21_all_workers(self):
        self.operate()
        self.start_jobs("good", "bad", specs={"Worker": replicas(4)}, successPolicy="AllWorkers")
        self.set_phase("good-worker-0", "Succeeded")
        wait_until(lambda: self.counts("good")["Worker"] == (3, 1, 0), "the worker is counted")
        self.assertEqual(self.conditions("good"), ["Created", "Running"])
        self.set_phases("Succeeded", "good-worker-1", "good-worker-2", "good-worker-3")
        self.assert_ended("good", "Succeeded")
        self.set_phase("bad-worker-2", "Failed", 1)
        self.assert_ended("bad", "Failed")


class RestartTest(OperatorTest):
    def test_23_25_26_by_exit_code(self):
        self.operate()
        self.create("job", {"Chief": replicas(1, "ExitCode"), "Worker": replicas(1, "ExitCode")})
        pods = names("job", chief=1, worker=1)
        self.wait_pods(*pods)
        self.assertEqual(self.all("pods")["job-chief-0"]["spec"]["restartPolicy"], "Never")
        self.set_phases("Running", *pods)
        self.wait_conditions("job", "Created", "Running")
        uids = {pod: self.uid(pod) for pod in pods}
        self.set_phase("job-chief-0", "Failed", 130)
        self.wait_replaced("job-chief-0", uids["job-chief-0"])
        self.wait_conditions("job", "Created", "Restarting")
        self.assertEqual(self.condition("job", "Running")["status"], "False")
        self.assertEqual(self.uid("job-worker-0"), uids["job-worker-0"])
        wait_until(lambda: {"TFJobRestarting", "ExitedWithCode", "SuccessfulDeletePod"} <= self.reasons(), "it is told")
        self.set_phase("job-chief-0", "Running")
        self.wait_conditions("job", "Created", "Running")
        self.assertEqual(self.condition("job", "Restarting")["status"], "False")
        uid = self.uid("job-chief-0")
        self.set_phase("job-chief-0", "Failed", 1)
        self.wait_conditions("job", "Created", "Failed")
        self.assertEqual(self.uid("job-chief-0"), uid)

    def test_27_28_29_by_policy(self):
        self.operate()
        policies = ("OnFailure", "Always", "Never")
        for policy in policies:
            worker = {"replicas": 1, "restartPolicy": policy, "template": pod_template(restartPolicy="Never" if policy == "Always" else "Always")}
            self.create(policy.lower(), {"Worker": worker, "PS": replicas(1)})
        for policy in policies:
            job, pod = policy.lower(), f"{policy.lower()}-worker-0"
            self.wait_pods(*names(job, worker=1, ps=1), job=job)
            self.assertEqual(self.all("pods")[pod]["spec"]["restartPolicy"], policy)
            wait_until(lambda: "SetPodTemplateRestartPolicy" in self.reasons(job), "the template's policy is warned of")
            uid = self.uid(pod)
            self.set_phase(pod, "Failed", 1)
            if policy == "Never":
                self.wait_conditions(job, "Created", "Failed")
                self.assertEqual(self.uid(pod), uid)
            else:
                self.wait_replaced(pod, uid)
                self.assertEqual(self.conditions(job), ["Created", "Restarting"])


class PolicyTest(OperatorTest):
    def test_30_clean_up(self):
        self.operate()
        kept = {"None": (0, 1, 2, 3), "Running": (2, 3), "All": ()}
        for policy in kept:
            self.create(policy.lower(), {"Worker": replicas(4)}, {"cleanPodPolicy": policy})
        for policy in kept:
            job = policy.lower()
            self.wait_pods(*names(job, worker=4), job=job)
            self.wait_services(*names(job, worker=4), job=job)
            for index, (phase, code) in enumerate((("Pending", None), ("Running", None), ("Succeeded", 0), ("Failed", 1))):
                self.set_phase(f"{job}-worker-{index}", phase, code)
        for policy, indices in kept.items():
            job = policy.lower()
            self.wait_conditions(job, "Created", "Failed")
            left = [f"{job}-worker-{index}" for index in indices]
            self.wait_pods(*left, job=job)
            self.wait_services(*left, job=job)

    def test_31_34_times(self):
        self.operate()
        # Only time passes.
        self.create("late", {"Worker": replicas(1)}, {"activeDeadlineSeconds": 2})
        for job, ttl in (("now", 0), ("soon", 3), ("kept", None)):
            self.create(job, {"Worker": replicas(1)}, {"cleanPodPolicy": "None"} if ttl is None else {"ttlSecondsAfterFinished": ttl})
        for job in ("now", "soon", "kept"):
            self.wait_pods(f"{job}-worker-0", job=job)
            self.set_phase(f"{job}-worker-0", "Succeeded")
        self.wait_conditions("soon", "Created", "Succeeded")
        ended = time_of(self.job("soon")["status"]["completionTime"])
        wait_until(lambda: "now" not in self.all("tfjobs"), "the first is deleted")
        self.assertIn("soon", self.all("tfjobs"))
        wait_until(lambda: "soon" not in self.all("tfjobs"), "the second is deleted")
        self.assertGreaterEqual((datetime.datetime.now(datetime.timezone.utc) - ended).total_seconds(), 3)
        self.wait_conditions("late", "Created", "Failed")
        status = self.job("late")["status"]
        self.assertEqual(status["conditions"][-1]["reason"], "DeadlineExceeded")
        self.assertGreaterEqual((time_of(status["completionTime"]) - time_of(status["startTime"])).total_seconds(), 2)
        self.assertEqual(self.conditions("kept"), ["Created", "Succeeded"])

    def test_32_33_back_off(self):
        self.operate()
        self.create("none", {"Worker": replicas(2, "OnFailure")}, {"backoffLimit": 0, "cleanPodPolicy": "None"})
        self.create("two", {"Worker": replicas(2, "OnFailure")}, {"backoffLimit": 2, "cleanPodPolicy": "All"})
        self.wait_pods(*names("none", worker=2), job="none")
        uids = {pod: self.uid(pod) for pod in names("none", worker=2)}
        self.set_phase("none-worker-1", "Failed", 1)
        self.wait_conditions("none", "Created", "Failed")
        self.assertEqual(self.condition("none", "Failed")["reason"], "BackoffLimitExceeded")
        # The limit counts the failures of all pods.
        self.wait_pods(*names("two", worker=2), job="two")
        uid = self.uid("two-worker-1")
        self.set_phase("two-worker-1", "Failed", 1)
        self.wait_replaced("two-worker-1", uid)
        self.assertEqual(self.conditions("two"), ["Created", "Restarting"])
        self.set_phase("two-worker-0", "Failed", 1)
        self.wait_conditions("two", "Created", "Failed")
        self.wait_pods(job="two")
        self.wait_services(job="two")
        self.assertEqual({pod: self.uid(pod) for pod in uids}, uids)

    def test_35_36_37_suspended_and_foreign(self):
        self.operate()
        self.create("foreign", {"Worker": replicas(1)}, {"managedBy": "kueue.x-k8s.io/multikueue"})
        self.create("own", {"Worker": replicas(1)}, {"managedBy": "kubeflow.org/training-operator"})
        self.create("job", {"Chief": replicas(1), "Worker": replicas(1)}, {"suspend": True})
        pods = names("job", chief=1, worker=1)
        self.wait_conditions("job", "Created", "Suspended")
        self.assertEqual((self.all("pods", "job"), self.all("services", "job")), ({}, {}))
        self.assertNotIn("startTime", self.job("job")["status"])
        self.change("job", {"runPolicy": {"suspend": False}})
        self.wait_pods(*pods, job="job")
        self.set_phases("Running", *pods)
        self.wait_conditions("job", "Created", "Running")
        started = self.job("job")["status"]["startTime"]
        self.change("job", {"runPolicy": {"suspend": True}})
        self.wait_conditions("job", "Created", "Suspended")
        self.assertEqual(self.condition("job", "Running")["status"], "False")
        self.wait_pods(job="job")
        self.wait_services(job="job")
        wait_until(lambda: all(one["active"] == 0 for one in self.job("job")["status"]["replicaStatuses"].values()), "nothing is active")
        self.assertEqual(self.job("job")["status"]["startTime"], started)
        # Templates may change while the job is suspended; the deadline starts again.
        self.change("job", {"tfReplicaSpecs": {"Worker": {"template": pod_template(nodeSelector={"disk": "ssd"})}}})
        wait_until(lambda: datetime.datetime.now(datetime.timezone.utc) > time_of(started) + datetime.timedelta(seconds=1), "a second is over")
        self.change("job", {"runPolicy": {"suspend": False}})
        self.wait_pods(*pods, job="job")
        self.assertEqual(self.all("pods")["job-worker-0"]["spec"]["nodeSelector"], {"disk": "ssd"})
        self.assertGreater(time_of(self.job("job")["status"]["startTime"]), time_of(started))
        wait_until(lambda: {"TFJobSuspended", "TFJobResumed"} <= self.reasons("job"), "both are told")
        self.wait_pods("own-worker-0", job="own")
        self.assertEqual((self.all("pods", "foreign"), self.job("foreign").get("status")), ({}, None))


class OtherTest(OperatorTest):
    def test_39_invalid_jobs_report_their_mistakes(self):
        """Without a webhook, invalid jobs that the CRD accepts become Failed."""
        self.operate()
        other = pod_template()
        other["spec"]["containers"][0]["name"] = "main"
        long = "j" * 55
        for name, specs, complaint in (("both", {"Chief": replicas(1), "Master": replicas(1)}, "master"),
                                       ("role", {"Boss": replicas(1)}, "unknown role 'Boss'"),
                                       ("container", {"Worker": {"template": other}}, "no container named 'tensorflow'"),
                                       ("1st", {"Worker": replicas(1)}, "begins with a digit"),
                                       (long, {"Worker": replicas(1)}, "64 characters; expected 63 at most")):
            with self.subTest(name):
                self.create(name, specs)
                self.wait_conditions(name, "Failed")
                failed = self.condition(name, "Failed")
                self.assertEqual(failed["reason"], "FailedValidation")
                self.assertIn(complaint, failed["message"])
        self.create(long[1:], {"Worker": replicas(1)})
        self.wait_pods(long[1:] + "-worker-0")
        self.wait_services(long[1:] + "-worker-0")

    def test_40_claims(self):
        job = self.create("job", {"Worker": replicas(3)})
        answer, other = self.ask("POST", "configmaps", value={"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "other"}})
        self.assertEqual(answer, 201)
        # An owner that is not the controller stays.
        orphan = self.put_pod("job", 0, ownerReferences=[{**owner_reference(other), "controller": False}])
        foreign = self.put_pod("job", 1, ownerReferences=[owner_reference(other)])
        self.create("going", {"Worker": replicas(1)})
        self.assertEqual(self.ask("PATCH", "tfjobs", "going", {"metadata": {"finalizers": ["example.com/wait"]}}, PATCH)[0], 200)
        self.addCleanup(self.ask, "PATCH", "tfjobs", "going", {"metadata": {"finalizers": None}}, PATCH)
        self.assertEqual(self.ask("DELETE", "tfjobs", "going")[0], 200)
        claimed = self.put_pod("going", 0)
        self.operate()
        self.wait_pods(*names("job", worker=3), job="job")

        def adopted():
            owners = self.all("pods")["job-worker-0"]["metadata"].get("ownerReferences", [])
            return {one["uid"] for one in owners} == {job["metadata"]["uid"], other["metadata"]["uid"]}

        wait_until(adopted, "the orphan has an owner")
        pods = self.all("pods")
        self.assertEqual(pods["job-worker-0"]["metadata"]["uid"], orphan["metadata"]["uid"])
        wait_until(lambda: "FailedCreate" in self.reasons("job"), "the foreign one is told of")
        for pod in (foreign, claimed):
            now = pods[pod["metadata"]["name"]]["metadata"]
            self.assertEqual((now["uid"], now.get("ownerReferences")), (pod["metadata"]["uid"], pod["metadata"].get("ownerReferences")))
        self.assertEqual(self.all("services", "going"), {})
        self.assertNotIn("status", self.job("going"))

    def test_43_pods_of_a_lost_node_are_replaced(self):
        self.operate("--no-leader-election", "--lost-pods-after", "1s")
        self.create("job", {"Chief": replicas(1), "Worker": replicas(3)})
        pods = names("job", chief=1, worker=3)
        self.wait_pods(*pods)
        self.set_phases("Running", *pods)
        self.wait_conditions("job", "Created", "Running")
        uids = {pod: self.uid(pod) for pod in pods}
        for pod, reason in (("job-worker-0", "NodeLost"), ("job-worker-1", "Evicted")):
            self.set_status(pod, {"phase": "Failed", "reason": reason, "message": "the node is gone"})
            self.wait_replaced(pod, uids[pod])
        # A pod whose kubelet does not respond.
        binding = {"metadata": {"name": "job-worker-2"}, "target": {"kind": "Node", "name": "lost"}}
        uid = uids["job-worker-2"]
        self.assertEqual(self.ask("POST", "pods/binding", "job-worker-2", binding)[0], 201)
        self.assertEqual(self.ask("DELETE", "pods", "job-worker-2", {"gracePeriodSeconds": 1})[0], 200)
        self.assertEqual(self.uid("job-worker-2"), uid)
        self.wait_replaced("job-worker-2", uid)
        self.wait_pods(*pods)
        self.set_phases("Running", *pods)
        self.wait_conditions("job", "Created", "Running")
        self.set_phase("job-chief-0", "Succeeded")
        self.wait_conditions("job", "Created", "Succeeded")
        self.assertEqual(self.uid("job-chief-0"), uids["job-chief-0"])


if __name__ == "__main__":
    unittest.main()
