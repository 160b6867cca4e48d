"""muster operator on a real API server. There are no nodes: tests set the status of pods themselves, through pods/status."""
import signal

from clusters import FaultProxy, SharedCluster
from support import SOURCE, MusterTest, wait_until

CRDS = SOURCE / "deploy" / "crds.yaml"
PATCH = {"Content-Type": "application/merge-patch+json"}
LABEL = "training.kubeflow.org/"


def pod_template(**spec):
    """Returns a pod template with the container `tensorflow`; `spec` has additional members of its spec."""
    return {"spec": {"containers": [{"name": "tensorflow", "image": "tf:1"}], **spec}}


def replicas(count, restart=None):
    spec = {"replicas": count, "template": pod_template()}
    return spec if restart is None else {**spec, "restartPolicy": restart}


def owner_reference(job):
    return {"apiVersion": job["apiVersion"], "kind": job["kind"], "name": job["metadata"]["name"], "uid": job["metadata"]["uid"],
            "controller": True, "blockOwnerDeletion": True}


def labels_of(job, role, index):
    """Returns the labels of a task's pod and service, by which the service selects the pod."""
    return {LABEL + "operator-name": "tfjob-controller", LABEL + "job-name": job, LABEL + "replica-type": role,
            LABEL + "replica-index": str(index)}


def tfjob(name, specs, run_policy=None, **more):
    return {"apiVersion": "kubeflow.org/v1", "kind": "TFJob", "metadata": {"name": name},
            "spec": {"tfReplicaSpecs": specs, **({"runPolicy": run_policy} if run_policy else {}), **more}}


def violations(pod):
    """Returns the violations of the Pod Security Standard `restricted` in a pod's spec."""
    security = pod.get("securityContext", {})
    if security.get("seccompProfile", {}).get("type") != "RuntimeDefault":
        yield "seccompProfile"
    for container in pod.get("initContainers", []) + pod["containers"]:
        own = container.get("securityContext", {})
        if not own.get("runAsNonRoot", security.get("runAsNonRoot")):
            yield "runAsNonRoot"
        if own.get("allowPrivilegeEscalation") is not False:
            yield "allowPrivilegeEscalation"
        if own.get("capabilities", {}).get("drop") != ["ALL"]:
            yield "capabilities"


class OperatorTest(MusterTest):
    """A namespace of a real cluster, and operators that the test starts for it."""

    def setUp(self):
        super().setUp()
        self.use(SharedCluster(self, [CRDS]))

    def use(self, cluster, namespace=None):
        self.cluster = cluster
        self.kubectl, self.namespace = cluster.kubectl, namespace or cluster.namespace
        self.api = FaultProxy(self, self.cluster.kubeconfig)

    def operate(self, *options, kubeconfig=None):
        """Starts an operator for the test's namespace. Its output is in its .said."""
        env = {**self.env, "KUBECONFIG": str(kubeconfig or self.cluster.kubeconfig)}
        said = self.dir / f"operator-{self._count_operators()}.log"
        with open(said, "w") as output:
            operator = self.start("operator", "-n", self.namespace, *(options or ("--no-leader-election",)), env=env, stderr=output)
        operator.said = said.read_text
        return operator

    def _count_operators(self):
        self.operators = getattr(self, "operators", 0) + 1
        return self.operators

    def end(self, operator):
        """Stops an operator gracefully."""
        operator.send_signal(signal.SIGTERM)
        self.assertEqual(operator.wait(timeout=30), 0, operator.said())

    def create(self, name, specs, run_policy=None, **more):
        answer, body = self.ask("POST", "tfjobs", value=tfjob(name, specs, run_policy, **more))
        self.assertEqual(answer, 201, body)
        return body

    def ask(self, method, kind, name="", value=None, headers=None):
        group = "/apis/kubeflow.org/v1" if kind.startswith("tfjobs") else "/api/v1"
        kind, _, part = kind.partition("/")
        path = "/".join(filter(None, (f"{group}/namespaces/{self.namespace}/{kind}", name, part)))
        return self.api.ask(method, path, value, headers)

    def all(self, kind, job=""):
        """Returns the objects of a kind that are not being deleted, by name; only those of `job` if it is given."""
        status, listed = self.ask("GET", kind)
        self.assertEqual(status, 200, listed)
        return {item["metadata"]["name"]: item for item in listed["items"] if "deletionTimestamp" not in item["metadata"]
                and job in ("", item["metadata"].get("labels", {}).get(LABEL + "job-name"))}

    def put_pod(self, job, index, **metadata):
        """Creates a worker's pod as a user would, without an operator."""
        metadata = {"name": f"{job}-worker-{index}", "labels": labels_of(job, "worker", index), **metadata}
        answer, made = self.ask("POST", "pods", value={**pod_template(), "metadata": metadata})
        self.assertEqual(answer, 201, made)
        return made

    def job(self, name):
        return self.ask("GET", "tfjobs", name)[1]

    def conditions(self, name):
        return [c["type"] for c in self.job(name).get("status", {}).get("conditions", []) if c["status"] == "True"]

    def condition(self, name, kind):
        """Returns the condition of that type, whatever its status."""
        return next(c for c in self.job(name)["status"]["conditions"] if c["type"] == kind)

    def wait_pods(self, *names, job=""):
        """Waits until these are exactly the pods of a job or of the namespace."""
        wait_until(lambda: sorted(self.all("pods", job)) == sorted(names), f"pods are {names}")

    def wait_services(self, *names, job=""):
        wait_until(lambda: sorted(self.all("services", job)) == sorted(names), f"services are {names}")

    def wait_conditions(self, name, *conditions):
        wait_until(lambda: self.conditions(name) == list(conditions), f"{name} is {conditions}")

    def uid(self, pod):
        """Returns None if there is no such pod."""
        return self.ask("GET", "pods", pod)[1]["metadata"].get("uid")

    def wait_replaced(self, pod, uid):
        """Waits until the pod with the uid `uid` is replaced by another of its name."""
        wait_until(lambda: self.uid(pod) not in (None, uid), f"{pod} is another")

    def reasons(self, job=""):
        """Returns the reasons of the events of all jobs, or of one."""
        return {event["reason"] for event in self.ask("GET", "events")[1]["items"]
                if event["involvedObject"]["kind"] == "TFJob" and job in ("", event["involvedObject"]["name"])}

    def set_status(self, pod, status):
        answer, body = self.ask("PATCH", "pods/status", pod, {"status": status}, PATCH)
        self.assertEqual(answer, 200, body)

    def set_phase(self, pod, phase, code=None, **more):
        """Sets the phase of a pod. `more` has additional members of the status, set by the same write."""
        status = {"phase": phase, **more}
        if code is not None:
            status["containerStatuses"] = [{"name": "tensorflow", "image": "tf:1", "imageID": "", "ready": False, "restartCount": 0,
                                            "state": {"terminated": {"exitCode": code}}}]
        self.set_status(pod, status)

    def set_phases(self, phase, *pods):
        for pod in pods:
            self.set_phase(pod, phase)

    def change(self, name, spec):
        answer, body = self.ask("PATCH", "tfjobs", name, {"spec": spec}, PATCH)
        self.assertEqual(answer, 200, body)
