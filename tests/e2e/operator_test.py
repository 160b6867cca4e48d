"""muster operator on a real API server. There are no nodes: the tests set the status of pods themselves, through pods/status."""
import json
import os
import signal
import unittest
import urllib.request

from clusters import FaultProxy
from operators import OperatorTest, replicas
from support import free_ports, wait_until


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
        wait_until(lambda: {"SuccessfulCreatePod", "SuccessfulCreateService", "SuccessfulDeletePod", "TFJobSucceeded"} <= self.reasons(),
                   "all of it is told")

    def test_pods_come_before_the_first_status(self):
        self.operate()
        self.create("earlier", {"Worker": replicas(1)})
        self.wait_pods("earlier-worker-0")  # from now on the namespace has a service account
        self.create("job", {"Worker": replicas(2)})
        self.wait_conditions("job", "Created")
        self.assertEqual(len(self.all("pods", "job")), 2)
        # A scheduler changes pods; no process changes services.
        versions = [int(service["metadata"]["resourceVersion"]) for service in self.all("services", "job").values()]
        self.assertEqual(len(versions), 2)
        self.assertLess(max(versions), int(self.job("job")["metadata"]["resourceVersion"]))

    def test_restarts_and_their_limit(self):
        self.operate()
        self.create("job", {"Worker": replicas(2, "ExitCode")}, {"backoffLimit": 2})
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

    def test_deleting_a_job_deletes_its_objects(self):
        self.operate()
        self.create("job", {"Worker": replicas(2)})
        self.wait_pods("job-worker-0", "job-worker-1")
        self.kubectl("delete", "tfjob", "job")
        self.wait_pods()


class FaultTest(OperatorTest):
    def test_killed_between_any_two_writes(self):
        """The proxy kills the operator after the server has executed its Nth write; the next operator reaches the same end."""
        writes = 10  # two services and pods, the first status; the outcome, and four deletions
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
        self.assertRegex(operator.said(), r"tfjobs")

    def test_health_and_metrics(self):
        port, = free_ports(1)
        self.operate("--no-leader-election", "--http-port", str(port))
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
