#!/usr/bin/env python3
"""muster operator on a real API server, beside a client that only creates the same objects.

usage: bench/kubernetes.py [--build build/release] [--jobs 100] [--rounds 3] [--only speed,latency,size]

Build first: cmake --preset release && cmake --build --preset release --target muster bench_kubernetes_post; tests/cluster/build

The control plane (etcd, kube-apiserver; no controllers, no nodes) runs on this machine and shares its cores with the measured program.
  speed    TFJobs of 10 workers exist when the operator starts: the time until all their pods and services exist, beside that of
           a program that POSTs the same objects over as many connections as the operator uses. Interleaved, medians.
  latency  one job of 10 workers at a time: from before its creation until its last pod is observed. Alternates between a namespace that is
           empty and one with 500 finished jobs, each with its own operator.
  size     memory of an operator with 1,000 jobs of 10 pods, and its CPU time in 30 idle seconds.
"""
import argparse
import http.client
import json
import os
import pathlib
import ssl
import statistics
import subprocess
import sys
import threading
import time
import urllib.parse

from reporting import report

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))
sys.dont_write_bytecode = True

from cluster.control_plane import ControlPlane  # noqa: E402

CONNECTIONS = 8  # the operator's workers and helpers: src/controller/operator.h
PODS = 10
PATCH = "application/merge-patch+json"


class Api:
    """One connection to the API server."""

    def __init__(self, cluster):
        address = urllib.parse.urlsplit(cluster.url)
        certificates = cluster.folder / "certificates"
        tls = ssl.create_default_context(cafile=certificates / "ca.crt")
        tls.load_cert_chain(certificates / "admin.crt", certificates / "admin.key")
        self._connection = http.client.HTTPSConnection(address.hostname, address.port, context=tls, timeout=600)

    def ask(self, method, path, value=None, content_type="application/json"):
        answer = self.open(method, path, value, content_type)
        body = json.load(answer)
        if answer.status >= 300:
            raise RuntimeError(f"{method} {path}: {body['message']}")
        return body

    def open(self, method, path, value=None, content_type="application/json"):
        self._connection.request(method, path, None if value is None else json.dumps(value), {"Content-Type": content_type})
        return self._connection.getresponse()

    def count(self, namespace, kind):
        listed = self.ask("GET", f"/api/v1/namespaces/{namespace}/{kind}?limit=1")
        return len(listed["items"]) + listed["metadata"].get("remainingItemCount", 0)


class Bench:
    def __init__(self, build, cluster):
        self._build = build
        self.cluster = cluster
        self.api = Api(cluster)
        self.env = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
        self.env["KUBECONFIG"] = str(cluster.kubeconfig)

    def namespace(self, name):
        self.api.ask("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
        return name

    def create_job(self, namespace, name, workers=PODS):
        container = {"name": "tensorflow", "image": "tf:1", "command": ["python", "/train.py", "--steps=1000"],
                     "resources": {"limits": {"cpu": "4", "memory": "8Gi"}}, "volumeMounts": [{"name": "data", "mountPath": "/data"}]}
        spec = {"containers": [container], "volumes": [{"name": "data", "emptyDir": {}}]}
        job = {"apiVersion": "kubeflow.org/v1", "kind": "TFJob", "metadata": {"name": name},
               "spec": {"tfReplicaSpecs": {"Worker": {"replicas": workers, "template": {"spec": spec}}}}}
        self.api.ask("POST", f"/apis/kubeflow.org/v1/namespaces/{namespace}/tfjobs", job)

    def operate(self, namespace):
        return subprocess.Popen([self._build / "bin" / "muster", "operator", "--no-leader-election", "-n", namespace], env=self.env,
                                stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)

    def post(self, path):
        return subprocess.Popen([self._build / "bench" / "bench_kubernetes_post", path, str(CONNECTIONS)], env=self.env)

    def wait(self, namespace, pods):
        while self.api.count(namespace, "pods") < pods or self.api.count(namespace, "services") < pods:
            time.sleep(0.05)


def end(process):
    process.terminate()
    process.communicate()


def wait_ready(operator):
    """Waits until the operator has started; discards its other output."""
    for line in operator.stderr:
        if b"ready: " in line:
            break
    threading.Thread(target=operator.stderr.read, daemon=True).start()


def save_objects(bench, namespace, other, path):
    """Saves the objects that the operator has created, as it requested them, for another namespace."""
    with open(path, "w") as file:
        for kind, plural in (("Service", "services"), ("Pod", "pods")):
            for item in bench.api.ask("GET", f"/api/v1/namespaces/{namespace}/{plural}")["items"]:
                metadata = {key: item["metadata"][key] for key in ("name", "labels", "annotations", "ownerReferences") if key in item["metadata"]}
                object = {"apiVersion": "v1", "kind": kind, "metadata": {**metadata, "namespace": other}, "spec": item["spec"]}
                for key in ("clusterIPs", "ipFamilies", "ipFamilyPolicy"):
                    object["spec"].pop(key, None)
                file.write(json.dumps(object, separators=(",", ":")) + "\n")


def speed(bench, jobs, rounds):
    path = bench.cluster.folder / "objects"
    times = []
    for number in range(rounds):
        ours, theirs = bench.namespace(f"ours-{number}"), bench.namespace(f"theirs-{number}")
        for job in range(jobs):
            bench.create_job(ours, f"job-{job}")
        start = time.perf_counter()
        operator = bench.operate(ours)
        threading.Thread(target=operator.stderr.read, daemon=True).start()
        bench.wait(ours, jobs * PODS)
        mine = time.perf_counter() - start
        end(operator)
        save_objects(bench, ours, theirs, path)
        start = time.perf_counter()
        client = bench.post(path)
        bench.wait(theirs, jobs * PODS)
        times.append((mine, time.perf_counter() - start))
        assert client.wait() == 0
    mine, bare = (statistics.median(column) for column in zip(*times))
    count = 2 * jobs * PODS
    ratio = bare / mine
    report(f"{jobs} jobs x {PODS}: pods and services a second / bare client", f"{count / mine:.0f} / {count / bare:.0f} = {ratio:.2f}",
           ">= 0.8", ratio >= 0.8)


class Watcher:
    """Records when the pods of jobs exist, on its own thread."""

    def __init__(self, cluster, namespace):
        self._seen = {}
        self._changed = threading.Condition()
        api = Api(cluster)
        version = api.ask("GET", f"/api/v1/namespaces/{namespace}/pods?limit=1")["metadata"]["resourceVersion"]
        stream = api.open("GET", f"/api/v1/namespaces/{namespace}/pods?watch=true&resourceVersion={version}")
        threading.Thread(target=self._follow, args=(api, stream), daemon=True).start()

    def _follow(self, _, stream):
        for line in stream:
            event = json.loads(line)
            if event["type"] == "ADDED":
                job = event["object"]["metadata"]["labels"]["training.kubeflow.org/job-name"]
                with self._changed:
                    self._seen[job] = self._seen.get(job, 0) + 1
                    self._changed.notify_all()

    def wait(self, job):
        with self._changed:
            self._changed.wait_for(lambda: self._seen.get(job, 0) == PODS)


def finish_jobs(bench, namespace, jobs):
    """Creates succeeded jobs of two pods each."""
    for number in range(jobs):
        bench.create_job(namespace, f"done-{number}", workers=2)
    operator = bench.operate(namespace)
    wait_ready(operator)
    bench.wait(namespace, 2 * jobs)
    for number in range(jobs):
        bench.api.ask("PATCH", f"/api/v1/namespaces/{namespace}/pods/done-{number}-worker-0/status", {"status": {"phase": "Succeeded"}}, PATCH)
    while sum(any(c["type"] == "Succeeded" for c in job["status"]["conditions"])
              for job in bench.api.ask("GET", f"/apis/kubeflow.org/v1/namespaces/{namespace}/tfjobs")["items"]) < jobs:
        time.sleep(0.2)
    end(operator)


def latency(bench, jobs, finished=500):
    empty, full = bench.namespace("empty"), bench.namespace("full")
    finish_jobs(bench, full, finished)
    operators = [bench.operate(namespace) for namespace in (empty, full)]
    for operator in operators:
        wait_ready(operator)
    watchers = {namespace: Watcher(bench.cluster, namespace) for namespace in (empty, full)}
    times = {empty: [], full: []}
    for number in range(jobs):
        for namespace, watcher in watchers.items():
            start = time.perf_counter()
            bench.create_job(namespace, f"job-{number}")
            watcher.wait(f"job-{number}")
            times[namespace].append(1000 * (time.perf_counter() - start))
    for operator in operators:
        end(operator)
    for name, of, target in (("median", statistics.median, 2), ("p99", lambda all: statistics.quantiles(all, n=100)[98], 2)):
        alone, beside = of(times[empty]), of(times[full])
        report(f"one job to its last pod, {name}, beside {finished} finished / none", f"{beside:.0f} ms / {alone:.0f} ms = {beside / alone:.2f}",
               f"<= {target}", beside <= target * alone)


def memory(pid):
    """Returns the resident and the proportional memory in MB."""
    text = pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text()
    return tuple(next(int(line.split()[1]) for line in text.splitlines() if line.startswith(f"{name}:")) / 1024 for name in ("Rss", "Pss"))


def ticks(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return int(fields[11]) + int(fields[12])


def size(bench, jobs=1000, seconds=30):
    namespace = bench.namespace("many")
    for number in range(jobs):
        bench.create_job(namespace, f"job-{number}")
    operator = bench.operate(namespace)
    wait_ready(operator)
    bench.wait(namespace, jobs * PODS)
    working = 0
    while (now := ticks(operator.pid)) - working > 1:  # events are still being written
        working = now
        time.sleep(2)
    after_work = memory(operator.pid)
    end(operator)
    operator = bench.operate(namespace)
    wait_ready(operator)
    time.sleep(10)
    fresh = memory(operator.pid)
    before = ticks(operator.pid)
    time.sleep(seconds)
    used = (ticks(operator.pid) - before) / os.sysconf("SC_CLK_TCK")
    end(operator)
    what = f"{jobs} jobs x {PODS} pods, memory (its share)"
    report(f"{what} after making them", f"{after_work[0]:.0f} MB ({after_work[1]:.0f})", "< 100 MB", after_work[0] < 100)
    report(f"{what} after a restart", f"{fresh[0]:.0f} MB ({fresh[1]:.0f})", "< 100 MB", fresh[0] < 100)
    report(f"the same, CPU in {seconds} idle seconds", f"{1000 * used:.0f} ms", "<= 30 ms", used <= 0.03)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/release")
    parser.add_argument("--jobs", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", default="speed,latency,size")
    arguments = parser.parse_args()
    with ControlPlane(controllers=False, manifests=[ROOT / "deploy" / "crds.yaml"]) as cluster:
        bench = Bench(arguments.build.resolve(), cluster)
        wanted = arguments.only.split(",")
        if "speed" in wanted:
            speed(bench, arguments.jobs, arguments.rounds)
        if "latency" in wanted:
            latency(bench, arguments.jobs)
        if "size" in wanted:
            size(bench)


if __name__ == "__main__":
    main()
