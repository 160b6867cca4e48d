"""Mutated TFJobs against a real operator on a real API server: no stored object may keep the operator from reconciling other jobs."""
import base64
import collections
import copy
import http.client
import json
import random
import ssl
import sys
import time
import urllib.parse

sys.setrecursionlimit(20_000)  # for deeply nested documents

V1, OLD = "kubeflow.org/v1", "tensorflow.org/v1alpha1"
MERGE = "application/merge-patch+json"

_CONTAINER = {
    "name": "tensorflow", "image": "tf:1", "imagePullPolicy": "IfNotPresent", "command": ["python", "train.py"], "args": ["--steps", "100"],
    "workingDir": "/w", "env": [{"name": "A", "value": "1"}, {"name": "B", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
    "ports": [{"name": "tfjob-port", "containerPort": 2222}, {"name": "http", "containerPort": 80}],
    "resources": {"limits": {"cpu": "500m", "memory": "1Gi", "nvidia.com/gpu": 1}, "requests": {"cpu": 0.1}},
    "readinessProbe": {"httpGet": {"path": "/", "port": "http"}, "periodSeconds": 5},
    "volumeMounts": [{"name": "data", "mountPath": "/data", "readOnly": True}],
    "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}}
_POD = {
    "metadata": {"labels": {"team": "vision"}, "annotations": {"a/b": "c"}},
    "spec": {"containers": [_CONTAINER, {"name": "log", "image": "log:1"}], "volumes": [{"name": "data", "emptyDir": {"sizeLimit": "1Gi"}}],
             "nodeSelector": {"disk": "ssd"}, "tolerations": [{"operator": "Exists"}], "restartPolicy": "Never", "schedulerName": "s",
             "securityContext": {"runAsNonRoot": True, "runAsUser": 1000}, "terminationGracePeriodSeconds": 1,
             "affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
                 {"topologyKey": "zone", "labelSelector": {"matchLabels": {"team": "vision"}}}]}}}}
_PLAIN_POD = {"spec": {"containers": [{"name": "tensorflow", "image": "tf:1"}]}}
_STATUS = {
    "conditions": [{"type": "Created", "status": "True", "reason": "TFJobCreated", "message": "m", "lastUpdateTime": "2026-01-01T00:00:00Z",
                    "lastTransitionTime": "2026-01-01T00:00:00Z"}, {"type": "Running", "status": "True"}],
    "replicaStatuses": {"Worker": {"active": 1, "succeeded": 0, "failed": 0}}, "startTime": "2026-01-01T00:00:00Z",
    "restarts": {"worker:0": {"count": 1, "lastPod": "x"}, "job": {"count": 0, "lastPod": ""}}, "succeeded": ["worker:1"]}

BASES = [
    {"apiVersion": V1, "kind": "TFJob", "metadata": {"labels": {"a": "b"}, "annotations": {"muster/restart-scope": "job", "muster/update": "rolling",
                                                                                        "muster/start-order": "ps,worker"}},
     "spec": {"runPolicy": {"cleanPodPolicy": "Running", "ttlSecondsAfterFinished": 60, "activeDeadlineSeconds": 600, "backoffLimit": 3, "suspend": False,
                            "schedulingPolicy": {"minAvailable": 1, "queue": "q", "minResources": {"cpu": 1}}},
              "successPolicy": "AllWorkers", "enableDynamicWorker": True,
              "tfReplicaSpecs": {"Worker": {"replicas": 2, "restartPolicy": "ExitCode", "template": _POD}, "PS": {"replicas": 1, "template": _POD}}}},
    {"apiVersion": V1, "kind": "TFJob", "metadata": {},
     "spec": {"tfReplicaSpecs": {"Chief": {"replicas": 1, "template": _PLAIN_POD}, "Worker": {"restartPolicy": "OnFailure", "template": _PLAIN_POD},
                                 "Evaluator": {"template": _PLAIN_POD}}}},
    {"apiVersion": V1, "kind": "TFJob", "metadata": {"annotations": {"muster/format": "native", "muster/max-restarts": "3", "muster/finish-grace": "5",
                                                                     "muster/model-dir": "gs://b/m"}},
     "spec": {"tfReplicaSpecs": {"Worker": {"replicas": 2, "template": {"spec": {"containers": [{
         "name": "tensorflow", "image": "tf:1", "command": ["sh", "-c", "train {model_dir} {task_index}"]}]}}}}}},
    {"apiVersion": OLD, "kind": "TfJob", "metadata": {},
     "spec": {"RuntimeId": "5oz2", "tfImage": "tf:2", "tensorboard": {"logDir": "/logs", "volumes": [{"name": "v", "emptyDir": {}}],
                                                                      "volumeMounts": [{"name": "v", "mountPath": "/logs"}], "serviceType": "ClusterIP"},
              "replicaSpecs": [{"tfReplicaType": "MASTER", "template": _POD}, {"tfReplicaType": "WORKER", "replicas": 2, "template": _PLAIN_POD},
                               {"tfReplicaType": "PS", "tfPort": 2222}],
              "terminationPolicy": {"chief": {"replicaName": "MASTER", "replicaIndex": 0}}}},
]


def _deep(levels, kind):
    value = 1
    for _ in range(levels):
        value = [value] if kind else {"x": value}
    return value


def _value(rng):
    """Returns a random value of an unexpected type or form."""
    return rng.choice([
        lambda: None, lambda: "", lambda: "x", lambda: "boom\n", lambda: "\u202e\u0000\U0001f600", lambda: "{model_dir} $(A) {task",
        lambda: 0, lambda: 5, lambda: -1, lambda: 2**31, lambda: 2**63 - 1, lambda: -2**63, lambda: 1e300, lambda: 0.5, lambda: True, lambda: False,
        lambda: [], lambda: {}, lambda: [None], lambda: [5], lambda: {"": ""}, lambda: {"name": 8080}, lambda: [{"name": None}], lambda: ["x", {}],
        lambda: _deep(rng.choice([3, 60, 70, 300]), rng.random() < 0.5), lambda: "y" * rng.choice([100, 10_000, 200_000]),
        lambda: [{"name": f"n{i}", "value": i} for i in range(50)], lambda: "2026-01-01T00:00:00Z", lambda: "9" * 40])()


def _places(value, path=()):
    """Yields all paths of a document, parents before members."""
    yield path
    if isinstance(value, dict):
        for key, member in value.items():
            yield from _places(member, (*path, key))
    elif isinstance(value, list):
        for index, member in enumerate(value):
            yield from _places(member, (*path, index))


def mutate(rng, document, times):
    """Returns a copy with `times` random changes."""
    document = copy.deepcopy(document)
    for _ in range(times):
        places = [path for path in _places(document) if path]
        if not places:
            return document
        *folder, last = rng.choice(places)
        at = document
        for step in folder:
            at = at[step]
        change = rng.randrange(7)
        if change <= 2:
            at[last] = _value(rng)
        elif change == 3:
            del at[last]
        elif change == 4 and isinstance(at, dict):
            renamed = rng.choice([str(last).swapcase(), f"{last}s", str(last)[:-1] + "x", "x" * 300])
            at[renamed] = at.pop(last)
        elif change == 5:
            path = rng.choice(places)
            other = document
            try:
                for step in path:
                    other = other[step]
            except (KeyError, IndexError, TypeError):
                continue
            at[last] = copy.deepcopy(other)
        elif isinstance(at, list):
            at.extend(copy.deepcopy(at[:1]) * rng.choice([1, 3]))
        else:
            at[rng.choice(["unknown", "status", "template", "a.b/c"])] = _value(rng)
    return document


def _tame(value):
    """Limits replica counts: other tests cover thousands of pods."""
    if isinstance(value, dict):
        return {key: value[key] % 4 if key == "replicas" and type(value[key]) is int else _tame(value[key]) for key in value}
    return [_tame(item) for item in value] if isinstance(value, list) else value


class Api:
    """One connection to the API server with the user of a kubeconfig."""

    def __init__(self, kubectl, folder):
        settings = json.loads(kubectl("config", "view", "--raw", "--minify", "--output=json").stdout)
        cluster, user = settings["clusters"][0]["cluster"], settings["users"][0]["user"]
        tls = ssl.create_default_context(cadata=base64.b64decode(cluster["certificate-authority-data"]).decode())
        files = []
        for name in ("client-certificate", "client-key"):
            path = folder / name
            if name not in user:
                path.write_bytes(base64.b64decode(user[f"{name}-data"]))
            files.append(user.get(name) or path)
        tls.load_cert_chain(*files)
        self._server, self._tls, self._connection = urllib.parse.urlsplit(cluster["server"]), tls, None
        self.delay = 0.0  # total time that requests took beyond the usual

    def __call__(self, *request):
        """Returns the status and content of the response, or (0, {}) if there is none."""
        begun = time.monotonic()
        try:
            return self._ask(*request)
        finally:
            self.delay += max(0.0, time.monotonic() - begun - 1.0)

    def _ask(self, method, path, value=None, kind="application/json"):
        for _ in range(2):
            if self._connection is None:
                self._connection = http.client.HTTPSConnection(self._server.hostname, self._server.port, timeout=30, context=self._tls)
            try:
                self._connection.request(method, path, None if value is None else json.dumps(value), {"Content-Type": kind})
                answer = self._connection.getresponse()
                return answer.status, json.loads(answer.read() or b"{}")
            except (OSError, http.client.HTTPException, ValueError):
                self._connection.close()
                self._connection = None
        return 0, {}


class Soak:
    """Creates, changes and deletes mutated jobs in an operator's namespace, and checks that it keeps working. `webhook(review)` calls the operator's
    webhook; `check()` fails if the operator is unhealthy."""

    JOBS = 40
    CANARY_PERIOD = 3.0
    CANARY_LIMIT = 60.0
    MAX_DELAY = 180.0

    def __init__(self, api, namespace, seed, webhook, check):
        self._api, self._namespace, self._seed, self._webhook, self._check = api, namespace, seed, webhook, check
        self._jobs = {}  # name -> API version
        self._canary = None
        self.history = collections.deque(maxlen=30)  # the last requests
        self.counts = collections.Counter()

    def run(self, seconds):
        start = time.monotonic()
        next_canary = 0.0
        step = 0

        def goes_on():  # not counting delays of a busy API server, up to a limit
            return time.monotonic() - start - min(self._api.delay, self.MAX_DELAY) < seconds

        while goes_on() or self._canary:
            if goes_on():
                self._step(random.Random(f"{self._seed}:{step}"), step)
            else:
                time.sleep(0.1)
            step += 1
            if time.monotonic() >= next_canary:
                next_canary = time.monotonic() + self.CANARY_PERIOD
                self._watch_canary(step, start=goes_on())
                self._check()

    def _path(self, version, name="", part=""):
        return "/".join(filter(None, (f"/apis/{version}/namespaces/{self._namespace}/tfjobs", name, part)))

    def _send(self, method, path, value=None, kind="application/json"):
        self.history.append((method, path, value))
        status, answer = self._api(method, path, value, kind)
        self.counts[f"{method} {status}"] += 1
        return status, answer

    def _step(self, rng, step):
        choice = rng.random()
        if len(self._jobs) < self.JOBS and choice < 0.5:
            self._create(rng, f"f{step}")
        elif not self._jobs:
            return
        elif choice < 0.65 or len(self._jobs) >= self.JOBS:
            name = rng.choice(sorted(self._jobs))
            self._send("DELETE", self._path(self._jobs.pop(name), name))
        elif choice < 0.75:
            self._change(rng)
        elif choice < 0.87:
            self._spoil_status(rng)
        else:
            self._move_pods(rng)

    def _create(self, rng, name):
        job = copy.deepcopy(rng.choice(BASES))
        version = job["apiVersion"]
        body = {"spec": job["spec"], "metadata": job["metadata"]}
        body = _tame(mutate(rng, body, rng.choice([0, 1, 1, 1, 2, 2, 3, 8])))
        metadata = body.get("metadata") if isinstance(body.get("metadata"), dict) else {}
        job = {**body, "apiVersion": version, "kind": job["kind"], "metadata": {**metadata, "name": name}}
        self._ask_webhook(job)
        status, _ = self._send("POST", self._path(version), job)
        if status == 201:
            self._jobs[name] = version

    def _ask_webhook(self, job):
        job["metadata"].setdefault("namespace", self._namespace)
        answer = self._webhook({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
                                "request": {"uid": "u", "operation": "CREATE", "object": job}})
        assert answer["response"]["uid"] == "u", answer
        self.counts["allowed" if answer["response"]["allowed"] else "denied"] += 1

    def _change(self, rng):
        name = rng.choice(sorted(self._jobs))
        path = self._path(self._jobs[name], name)
        status, job = self._api("GET", path)
        if status != 200:
            self._jobs.pop(name)
            return
        self._send("PUT", path, {**job, "spec": _tame(mutate(rng, {"spec": job["spec"]}, rng.choice([1, 2, 4]))).get("spec")})

    def _spoil_status(self, rng):
        name = rng.choice(sorted(self._jobs))
        status, job = self._api("GET", self._path(self._jobs[name], name))
        if status == 200:
            job["status"] = mutate(rng, rng.choice([_STATUS, job.get("status") or _STATUS]), rng.choice([1, 1, 2, 4]))
            self._send("PUT", self._path(self._jobs[name], name, "status"), job)

    def _move_pods(self, rng):
        """Sets some pods to running or ended."""
        pods = f"/api/v1/namespaces/{self._namespace}/pods"
        status, listed = self._api("GET", f"{pods}?limit=50")
        for pod in rng.sample(listed.get("items", []), min(5, len(listed.get("items", [])))) if status == 200 else ():
            phase = {"phase": rng.choice(["Pending", "Running", "Running", "Succeeded", "Failed", "Unknown"])}
            if phase["phase"] == "Failed":
                phase["reason"] = rng.choice(["", "Evicted", "Error"])
                phase["containerStatuses"] = [{"name": "tensorflow", "image": "", "imageID": "", "ready": False, "restartCount": rng.choice([0, 3]),
                                               "state": {"terminated": {"exitCode": rng.choice([0, 1, 137, 143])}}}]
            if not pod["metadata"]["name"].startswith("canary"):
                self._send("PATCH", f"{pods}/{pod['metadata']['name']}/status", {"status": phase}, MERGE)

    def _watch_canary(self, step, start):
        """Checks that a valid job gets its pod, and succeeds after it, within a limit."""
        if self._canary is None:
            if start:
                name = f"canary{step}"
                job = {"apiVersion": V1, "kind": "TFJob", "metadata": {"name": name},
                       "spec": {"tfReplicaSpecs": {"Worker": {"replicas": 1, "template": _PLAIN_POD}}}}
                status, answer = self._api("POST", self._path(V1), job)
                if status == 0:
                    return  # checked in the next round
                assert status in (201, 409), answer
                self._canary = (name, time.monotonic() - self._api.delay)
            return
        name, begun = self._canary
        waited = time.monotonic() - self._api.delay - begun  # not counting delays of a busy API server
        assert waited < self.CANARY_LIMIT, f"{name} has not succeeded after {waited:.0f} s"
        _, job = self._api("GET", self._path(V1, name))
        if any(one["type"] == "Succeeded" and one["status"] == "True" for one in (job.get("status") or {}).get("conditions", [])):
            self._api("DELETE", self._path(V1, name))
            self._canary = None
            self.counts["canaries"] += 1
            return
        pod = f"/api/v1/namespaces/{self._namespace}/pods/{name}-worker-0/status"
        self._api("PATCH", pod, {"status": {"phase": "Succeeded"}}, MERGE)
