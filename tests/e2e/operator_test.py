"""muster operator on a real API server. There are no nodes: what becomes of pods the tests say themselves, through pods/status."""
import json
import os
import signal
import unittest
import urllib.request

from clusters import FaultProxy, SharedCluster
from support import SOURCE, MusterTest, free_ports, wait_until

CRDS = SOURCE / "deploy" / "crds.yaml"
PATCH = {"Content-Type": "application/merge-patch+json"}


def replicas(count, restart=None):
    spec = {"replicas": count, "template": {"spec": {"containers": [{"name": "tensorflow", "image": "tf:1"}]}}}
    return spec if restart is None else {**spec, "restartPolicy": restart}


class OperatorTest(MusterTest):
    def setUp(self):
        super().setUp()
        self.cluster = SharedCluster(self, [CRDS])
        self.kubectl, self.namespace = self.cluster.kubectl, self.cluster.namespace
        self.api = FaultProxy(self, self.cluster.kubeconfig)

    def operate(self, *options, kubeconfig=None):
        """Starts an operator for the test's namespace."""
        env = {**self.env, "KUBECONFIG": str(kubeconfig or self.cluster.kubeconfig)}
        return self.start("operator", "-n", self.namespace, *(options or ("--alone",)), env=env)

    def create(self, name, specs, run_policy=None, **more):
        job = {"apiVersion": "kubeflow.org/v1", "kind": "TFJob", "metadata": {"name": name},
               "spec": {"tfReplicaSpecs": specs, **({"runPolicy": run_policy} if run_policy else {}), **more}}
        self.kubectl.apply(job)

    def ask(self, method, kind, name="", value=None, headers=None):
        group = "/apis/kubeflow.org/v1" if kind.startswith("tfjobs") else "/api/v1"
        kind, _, part = kind.partition("/")
        path = "/".join(filter(None, (f"{group}/namespaces/{self.namespace}/{kind}", name, part)))
        return self.api.ask(method, path, value, headers)

    def all(self, kind):
        status, listed = self.ask("GET", kind)
        self.assertEqual(status, 200, listed)
        return {item["metadata"]["name"]: item for item in listed["items"] if "deletionTimestamp" not in item["metadata"]}

    def job(self, name):
        return self.ask("GET", "tfjobs", name)[1]

    def conditions(self, name):
        return [c["type"] for c in self.job(name).get("status", {}).get("conditions", []) if c["status"] == "True"]

    def wait_pods(self, *names):
        wait_until(lambda: sorted(self.all("pods")) == sorted(names), f"pods are {names}, not {sorted(self.all('pods'))}", 30)

    def wait_conditions(self, name, *conditions):
        wait_until(lambda: self.conditions(name) == list(conditions), f"{name} is {conditions}", 30)

    def set_phase(self, pod, phase, code=None):
        status = {"phase": phase}
        if code is not None:
            status["containerStatuses"] = [{"name": "tensorflow", "image": "tf:1", "imageID": "", "ready": False, "restartCount": 0,
                                            "state": {"terminated": {"exitCode": code}}}]
        answer, body = self.ask("PATCH", "pods/status", pod, {"status": status}, PATCH)
        self.assertEqual(answer, 200, body)

    def change(self, name, spec):
        answer, body = self.ask("PATCH", "tfjobs", name, {"spec": spec}, PATCH)
        self.assertEqual(answer, 200, body)


class LifeTest(OperatorTest):
    def test_from_creation_to_success(self):
        self.operate()
        self.create("dist", {"Chief": replicas(1), "PS": replicas(1), "Worker": replicas(2)}, {"cleanPodPolicy": "Running"})
        self.wait_pods("dist-chief-0", "dist-ps-0", "dist-worker-0", "dist-worker-1")
        self.assertEqual(set(self.all("services")), set(self.all("pods")))
        pod = self.all("pods")["dist-worker-1"]
        owner, = pod["metadata"]["ownerReferences"]
        self.assertEqual((owner["kind"], owner["name"], owner["controller"], owner["blockOwnerDeletion"]), ("TFJob", "dist", True, True))
        env = {variable["name"]: variable["value"] for variable in pod["spec"]["containers"][0]["env"]}
        config = json.loads(env["TF_CONFIG"])
        self.assertEqual(config["cluster"]["chief"], [f"dist-chief-0.{self.namespace}.svc:2222"])
        self.assertEqual(config["task"], {"type": "worker", "index": 1})
        for name in self.all("pods"):
            self.set_phase(name, "Running")
        self.wait_conditions("dist", "Created", "Running")
        self.assertEqual(self.job("dist")["status"]["replicaStatuses"]["Worker"]["active"], 2)
        self.set_phase("dist-chief-0", "Succeeded")
        self.wait_conditions("dist", "Created", "Succeeded")
        self.wait_pods("dist-chief-0")
        reasons = {event["reason"] for event in self.ask("GET", "events")[1]["items"] if event["involvedObject"]["kind"] == "TFJob"}
        self.assertLessEqual({"SuccessfulCreatePod", "SuccessfulCreateService", "SuccessfulDeletePod", "TFJobSucceeded"}, reasons)

    def test_restarts_and_their_limit(self):
        self.operate()
        self.create("job", {"Worker": replicas(2, "ExitCode")}, {"backoffLimit": 1})
        self.wait_pods("job-worker-0", "job-worker-1")
        first = self.all("pods")["job-worker-1"]["metadata"]["uid"]
        self.set_phase("job-worker-1", "Failed", 137)
        wait_until(lambda: self.all("pods").get("job-worker-1", {"metadata": {"uid": first}})["metadata"]["uid"] != first, "it is back")
        self.assertEqual(self.job("job")["status"]["restarts"]["worker:1"]["count"], 1)
        self.set_phase("job-worker-1", "Failed", 137)
        self.wait_conditions("job", "Created", "Failed")
        self.assertEqual(self.job("job")["status"]["conditions"][-1]["reason"], "BackoffLimitExceeded")
        self.create("other", {"Worker": replicas(1, "ExitCode")})
        wait_until(lambda: "other-worker-0" in self.all("pods"), "its pod is there")
        self.set_phase("other-worker-0", "Failed", 1)
        self.wait_conditions("other", "Created", "Failed")
        self.assertIn("exit code 1", self.job("other")["status"]["conditions"][-1]["message"])

    def test_timers_need_no_event(self):
        self.operate()
        self.create("late", {"Worker": replicas(1)}, {"activeDeadlineSeconds": 2, "ttlSecondsAfterFinished": 2, "cleanPodPolicy": "All"})
        self.wait_conditions("late", "Created", "Failed")
        self.assertEqual(self.job("late")["status"]["conditions"][-1]["reason"], "DeadlineExceeded")
        wait_until(lambda: "late" not in self.all("tfjobs"), "the job is deleted")

    def test_suspended_scaled_and_foreign(self):
        self.operate()
        self.create("job", {"Worker": replicas(1)}, {"suspend": True})
        self.create("foreign", {"Worker": replicas(1)}, {"managedBy": "kueue.x-k8s.io/multikueue"})
        self.wait_conditions("job", "Created", "Suspended")
        self.assertEqual(self.all("pods"), {})
        self.change("job", {"runPolicy": {"suspend": False}})
        self.wait_pods("job-worker-0")
        self.change("job", {"tfReplicaSpecs": {"Worker": {"replicas": 3}}})
        self.wait_pods("job-worker-0", "job-worker-1", "job-worker-2")
        self.change("job", {"tfReplicaSpecs": {"Worker": {"replicas": 1}}})
        self.wait_pods("job-worker-0")
        self.change("job", {"runPolicy": {"suspend": True}})
        self.wait_pods()
        wait_until(lambda: not self.all("services"), "services are gone")
        self.assertEqual(self.conditions("foreign"), [])

    def test_a_deleted_job_takes_all_along(self):
        self.operate()
        self.create("job", {"Worker": replicas(2)})
        self.wait_pods("job-worker-0", "job-worker-1")
        self.kubectl("delete", "tfjob", "job")
        self.wait_pods()


class FaultTest(OperatorTest):
    def test_killed_between_any_two_writes(self):
        """The proxy kills the operator when the server has carried out its Nth write; the next one comes to the same end."""
        writes = 10  # the first status, two services and pods; the verdict, and all four deleted
        ends = set()
        for skip in range(writes):
            name = f"job{skip}"
            proxy = FaultProxy(self, self.cluster.kubeconfig)
            operator = self.operate(kubeconfig=proxy.kubeconfig)
            proxy.fail({"kind": "kill-answer", "verb": "write", "path": "/(pods|services|status)", "skip": skip, "pid": operator.pid})
            self.create(name, {"Worker": replicas(2)}, {"cleanPodPolicy": "All"})
            pods = [f"{name}-worker-{index}" for index in range(2)]
            operators = [operator]

            def settled(expected):
                if len(operators) == 1 and operator.poll() is not None:
                    self.assertEqual(operator.returncode, -signal.SIGKILL)
                    operators.append(self.operate())
                return sorted(self.all("pods")) == sorted(self.all("services")) == expected

            wait_until(lambda: settled(pods), f"{skip}: pods and services are there")
            self.set_phase(pods[0], "Succeeded")
            wait_until(lambda: settled([]), f"{skip}: all are gone")
            wait_until(lambda: settled([]) and len(operators) == 2, f"{skip}: the operator was killed")
            self.assertEqual(self.conditions(name), ["Created", "Succeeded"])
            status = self.job(name)["status"]
            ends.add(json.dumps([status["replicaStatuses"], status["succeeded"], "restarts" in status]))
            self.end(operators[1])
        self.assertEqual(len(ends), 1, ends)

    def end(self, operator):
        operator.send_signal(signal.SIGTERM)
        self.assertEqual(operator.wait(timeout=30), 0, operator.stderr.read())

    def test_one_of_two_leads_and_the_other_takes_over(self):
        options = ("--lease-namespace", self.namespace)
        first = self.operate(*options)
        self.create("before", {"Worker": replicas(1)})
        self.wait_pods("before-worker-0")
        self.operate(*options)
        os.kill(first.pid, signal.SIGKILL)
        self.create("after", {"Worker": replicas(1)})
        self.wait_pods("after-worker-0", "before-worker-0")
        lease = self.api.ask("GET", f"/apis/coordination.k8s.io/v1/namespaces/{self.namespace}/leases/muster-operator")[1]
        self.assertEqual(lease["spec"]["leaseTransitions"], 1)

    def test_no_permission_names_the_rule(self):
        operator = self.operate(kubeconfig=self.cluster.user("nobody"))
        self.assertEqual(operator.wait(timeout=60), 1)
        self.assertRegex(operator.stderr.read(), r"tfjobs")

    def test_health_and_metrics(self):
        port, = free_ports(1)
        self.operate("--alone", "--http-port", str(port))
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))

        def read(path):
            try:
                with opener.open(f"http://127.0.0.1:{port}/{path}", timeout=5) as answer:
                    return answer.read().decode()
            except OSError:
                return ""

        wait_until(lambda: read("readyz") == "ok\n", "it is ready")
        self.assertEqual(read("healthz"), "ok\n")
        self.create("job", {"Worker": replicas(1)})
        self.wait_pods("job-worker-0")
        self.set_phase("job-worker-0", "Succeeded")
        line = f'training_operator_jobs_successful_total{{job_namespace="{self.namespace}",framework="tensorflow"}} 1'
        wait_until(lambda: line in read("metrics"), "it is counted")


if __name__ == "__main__":
    unittest.main()
