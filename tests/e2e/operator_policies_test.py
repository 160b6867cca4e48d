"""The operator's policies, and jobs of v1alpha1, on a real API server without nodes: the tests set the status of pods."""
import json
import unittest

from clusters import FaultProxy, SharedCluster, own_cluster
from support import SOURCE, MusterTest, wait_until

from operators import CRDS, PATCH, OperatorTest, replicas

GROUPS = SOURCE / "tests" / "cluster" / "podgroups.yaml"
RIGHTS = SOURCE / "deploy" / "rbac.yaml"
EXAMPLE = SOURCE / "examples" / "kubernetes" / "distributed_mnist_v1alpha1.yaml"


class V1Alpha1Test(OperatorTest):
    def old_job(self, name):
        return self.api.ask("GET", f"/apis/tensorflow.org/v1alpha1/namespaces/{self.namespace}/tfjobs/{name}")[1]

    def wait_phase(self, name, phase, state):
        wait_until(lambda: (status := self.old_job(name).get("status", {})) and (status.get("phase"), status.get("state")) == (phase, state),
                   f"{name} is {phase}, {state}", 30)

    def test_the_example_from_creation_to_success(self):
        self.operate()
        self.kubectl("apply", "-f", EXAMPLE)
        # A job of the other kind with the same name: neither affects the other.
        self.create("distributed-mnist", {"Worker": replicas(1)})
        tasks = [f"distributed-mnist-{task}" for task in ("master-5oz2-0", "ps-5oz2-0", "worker-5oz2-0", "worker-5oz2-1")]
        board, other = "distributed-mnist-tensorboard-5oz2", "distributed-mnist-worker-0"
        self.wait_pods(*tasks, board, other)
        self.assertEqual(set(self.all("services")), set(self.all("pods")))
        self.wait_phase("distributed-mnist", "Creating", "Unknown")
        pod = self.all("pods")[tasks[3]]
        env = {variable["name"]: variable["value"] for variable in pod["spec"]["containers"][0]["env"]}
        self.assertEqual(json.loads(env["TF_CONFIG"]), {
            "cluster": {"master": [f"{tasks[0]}:2222"], "ps": [f"{tasks[1]}:2222"], "worker": [f"{name}:2222" for name in tasks[2:]]},
            "task": {"type": "worker", "index": 1}, "environment": "cloud"})
        ps = self.all("pods")[tasks[1]]["spec"]
        self.assertEqual((ps["containers"][0]["image"], ps["containers"][0]["command"]),
                         ("tensorflow/tensorflow:1.3.0", ["python", "/ps-server/tf_server.py"]))
        programs = [volume["configMap"]["name"] for volume in ps["volumes"] if "configMap" in volume]
        self.assertEqual(len(programs), 1)
        wait_until(lambda: programs[0] in self.all("configmaps"), "the program of the server is there")
        self.assertEqual(self.all("configmaps")[programs[0]]["data"]["tf_server.py"], (SOURCE / "src" / "job" / "tf_server.py").read_text())
        for name in self.all("pods"):
            self.set_phase(name, "Running")
        self.wait_phase("distributed-mnist", "Running", "Running")
        self.set_phase(tasks[0], "Succeeded")
        self.wait_phase("distributed-mnist", "Done", "Succeeded")
        self.wait_pods(tasks[0], board, other)
        self.assertEqual(self.conditions("distributed-mnist"), ["Created", "Running"])  # of the other job
        self.kubectl("delete", "tfjobs.tensorflow.org", "distributed-mnist")
        self.wait_pods(other)
        wait_until(lambda: programs[0] not in self.all("configmaps"), "the program is deleted with the job", 30)


class PolicyTest(OperatorTest):
    def create_with(self, annotations, specs, run_policy=None):
        self.kubectl.apply({"apiVersion": "kubeflow.org/v1", "kind": "TFJob", "metadata": {"name": "job", "annotations": annotations},
                            "spec": {"tfReplicaSpecs": specs, "runPolicy": run_policy or {}}})

    def uids(self):
        return {name: pod["metadata"]["uid"] for name, pod in self.all("pods").items()}

    def images(self):
        return {name: pod["spec"]["containers"][0]["image"] for name, pod in self.all("pods").items()}

    def run_all(self):
        for name in self.all("pods"):
            self.set_phase(name, "Running")

    def test_a_failure_restarts_the_whole_job(self):
        self.operate()
        self.create_with({"muster/restart-scope": "job"}, {"PS": replicas(1), "Worker": replicas(2, "ExitCode")}, {"backoffLimit": 2})
        names = ("job-ps-0", "job-worker-0", "job-worker-1")
        self.wait_pods(*names)
        self.run_all()
        self.wait_conditions("job", "Created", "Running")
        before = self.uids()
        self.set_phase("job-worker-1", "Failed", 137)
        wait_until(lambda: sorted(self.uids()) == sorted(names) and not set(self.uids().values()) & set(before.values()), "all are back", 30)
        self.assertEqual({task: own["count"] for task, own in self.job("job")["status"]["restarts"].items()}, {"job": 1})
        self.set_phase("job-worker-0", "Failed", 137)
        self.wait_conditions("job", "Created", "Failed")
        self.assertEqual(sorted(self.uids()), sorted(names))

    def test_roles_start_in_order(self):
        self.operate()
        probed = replicas(1)
        probed["template"]["spec"]["containers"][0]["readinessProbe"] = {"tcpSocket": {"port": 2222}}
        self.create_with({"muster/start-order": "ps,worker,chief"}, {"Chief": replicas(1), "PS": probed, "Worker": replicas(1)})
        started = []
        for name in ("job-ps-0", "job-worker-0", "job-chief-0"):
            started.append(name)
            self.wait_pods(*started)
            self.assertEqual(len(self.all("services")), 3)
            self.set_phase(name, "Running")
            if name == "job-ps-0":
                wait_until(lambda: self.job("job")["status"]["replicaStatuses"]["PS"]["active"] == 1, "it is seen to run", 30)
                self.assertEqual(list(self.all("pods")), ["job-ps-0"])  # not ready yet
                ready = {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}
                self.assertEqual(self.ask("PATCH", "pods/status", name, ready, {"Content-Type": "application/merge-patch+json"})[0], 200)
        self.wait_conditions("job", "Created", "Running")

    def test_a_changed_template_replaces_pods(self):
        self.operate()
        self.create_with({}, {"Worker": replicas(2)})
        self.wait_pods("job-worker-0", "job-worker-1")
        changed = {"spec": {"containers": [{"name": "tensorflow", "image": "tf:2"}]}}
        self.change("job", {"tfReplicaSpecs": {"Worker": {"template": changed}}})
        wait_until(lambda: self.images() == {"job-worker-0": "tf:2", "job-worker-1": "tf:2"}, "all run the new image", 30)
        self.assertNotIn("restarts", self.job("job")["status"])
        self.kubectl("annotate", "tfjob", "job", "muster/update=rolling")
        changed["spec"]["containers"][0]["image"] = "tf:3"
        self.run_all()
        self.change("job", {"tfReplicaSpecs": {"Worker": {"template": changed}}})
        wait_until(lambda: self.images() == {"job-worker-0": "tf:3", "job-worker-1": "tf:2"}, "one runs the new image", 30)
        self.set_phase("job-worker-0", "Running")
        wait_until(lambda: self.images() == {"job-worker-0": "tf:3", "job-worker-1": "tf:3"}, "both do", 30)
        wait_until(lambda: any("its template has changed" in event["message"] for event in self.ask("GET", "events")[1]["items"]), "it is told")


class GangTest(OperatorTest):
    """An operator with the permissions of deploy/."""

    def setUp(self):
        MusterTest.setUp(self)
        self.cluster = SharedCluster(self, [CRDS, GROUPS])
        self.kubectl, self.namespace = self.cluster.kubectl, self.cluster.namespace
        self.api = FaultProxy(self, self.cluster.kubeconfig)
        role = next(text for text in RIGHTS.read_text().split("\n---\n") if "kind: ClusterRole\n" in text)
        self.kubectl("apply", "-f", "-", stdin=role)
        self.kubectl("create", "rolebinding", "operator", "--clusterrole=muster-operator", f"--user=operator-{self.namespace}")

    def groups(self, api):
        return {group["metadata"]["name"]: group
                for group in self.api.ask("GET", f"/apis/{api}/namespaces/{self.namespace}/podgroups")[1]["items"]}

    def set_group_phase(self, api, phase, job="job"):
        """Sets the phase of a group as a scheduler does."""
        wait_until(lambda: job in self.groups(api), "the group is made", 30)
        answer, body = self.api.ask("PATCH", f"/apis/{api}/namespaces/{self.namespace}/podgroups/{job}/status", {"status": {"phase": phase}}, PATCH)
        self.assertEqual(answer, 200, body)

    def admit(self, scheduler, api):
        """Pods of a Volcano group are not created before Volcano has admitted the group."""
        if scheduler == "volcano":
            self.set_group_phase(api, "Pending")
            wait_until(lambda: len(self.all("services")) >= 3, "the services are made", 30)
            self.assertEqual(self.all("pods"), {})
            self.set_group_phase(api, "Inqueue")

    def test_min_resources_are_those_of_the_pods(self):
        api = "scheduling.volcano.sh/v1beta1"
        self.operate("--no-leader-election", "--gang-scheduler", "volcano", kubeconfig=self.cluster.user("operator"))
        worker, server = replicas(2), replicas(1)
        worker["template"]["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "500m"}, "limits": {"cpu": "2", "nvidia.com/gpu": 1}}
        server["template"]["spec"]["containers"][0]["resources"] = {"limits": {"memory": "1Gi"}}
        self.create("job", {"PS": server, "Worker": worker})
        wait_until(lambda: "job" in self.groups(api), "the group is made", 30)
        self.assertEqual(self.groups(api)["job"]["spec"], {"minMember": 3, "queue": "default",
                                                           "minResources": {"cpu": "1", "memory": "1Gi", "nvidia.com/gpu": "2"}})

    def live(self, scheduler, api):
        """From the creation of a job to its end."""
        self.operate("--no-leader-election", "--gang-scheduler", scheduler, kubeconfig=self.cluster.user("operator"))
        self.create("job", {"PS": replicas(1), "Worker": replicas(2)},
                    {"schedulingPolicy": {"minResources": {"cpu": "2"}, "queue": "q", "scheduleTimeoutSeconds": 60}})
        self.admit(scheduler, api)
        self.wait_pods("job-ps-0", "job-worker-0", "job-worker-1")
        spec = self.groups(api)["job"]["spec"]
        self.assertEqual((spec["minMember"], spec["minResources"]), (3, {"cpu": "2"}))
        self.change("job", {"tfReplicaSpecs": {"Worker": {"replicas": 3}}})
        wait_until(lambda: self.groups(api)["job"]["spec"]["minMember"] == 4, "the group has grown", 30)
        self.wait_pods("job-ps-0", "job-worker-0", "job-worker-1", "job-worker-2")
        pod = self.all("pods")["job-worker-2"]
        self.change("job", {"runPolicy": {"suspend": True}})
        wait_until(lambda: not self.groups(api) and not self.all("pods"), "a suspended job has no group", 30)
        self.change("job", {"runPolicy": {"suspend": False}})
        self.admit(scheduler, api)
        wait_until(lambda: "job-worker-0" in self.all("pods"), "its pods are back", 30)
        self.set_phase("job-worker-0", "Succeeded")
        wait_until(lambda: not self.groups(api), "a finished job has no group", 30)
        self.assertEqual(self.conditions("job"), ["Created", "Succeeded"])
        return pod, spec

    def test_volcano(self):
        pod, spec = self.live("volcano", "scheduling.volcano.sh/v1beta1")
        self.assertEqual(spec["queue"], "q")
        self.assertEqual(pod["spec"]["schedulerName"], "volcano")
        self.assertEqual(pod["metadata"]["annotations"]["scheduling.k8s.io/group-name"], "job")
        self.assertEqual(pod["metadata"]["annotations"]["volcano.sh/task-spec"], "worker")

    def test_scheduler_plugins(self):
        pod, spec = self.live("scheduler-plugins", "scheduling.x-k8s.io/v1alpha1")
        self.assertEqual(spec["scheduleTimeoutSeconds"], 60)
        self.assertEqual(pod["spec"]["schedulerName"], "scheduler-plugins-scheduler")
        self.assertEqual(pod["metadata"]["labels"]["scheduling.x-k8s.io/pod-group"], "job")

    def test_an_unknown_gang_scheduler(self):
        result = self.muster("operator", "--no-leader-election", "--gang-scheduler", "gangs", check=False)
        self.assertNotEqual(result.returncode, 0)
        self.assertIn("expected none, volcano or scheduler-plugins", result.stderr)


class KindsTest(MusterTest):
    def test_one_of_the_two_kinds_is_enough(self):
        cluster = own_cluster(self, controllers=False)
        env = {**self.env, "KUBECONFIG": str(cluster.kubeconfig)}
        neither = self.start("operator", "--no-leader-election", env=env)
        self.assertEqual(neither.wait(timeout=60), 1)
        self.assertRegex(neither.stderr.read(), "kubeflow.org")
        kubectl = cluster.as_user(cluster.kubeconfig)
        old = CRDS.read_text().split("\n---\n")[1]
        kubectl("apply", "-f", "-", stdin=old)
        kubectl("wait", "--for=condition=Established", "crd/tfjobs.tensorflow.org")
        operator = self.start("operator", "--no-leader-election", env=env)
        wait_until(lambda: kubectl("get", "--raw=/apis/tensorflow.org/v1alpha1", check=False).returncode == 0, "the kind is served")
        kubectl("apply", "-f", EXAMPLE)
        wait_until(lambda: len(kubectl.get("pods")["items"]) == 5, "its pods are there", 30)
        operator.terminate()
        self.assertEqual(operator.wait(timeout=30), 0)
        self.assertRegex(operator.stderr.read(), r"jobs of kubeflow\.org/v1 wait until it is available")


if __name__ == "__main__":
    unittest.main()
