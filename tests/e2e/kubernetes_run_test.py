"""muster run --on kubernetes, and the other commands on such a job, on a real API server with the operator beside it. There are no nodes: the tests set the status of pods themselves."""
import json
import re
import unittest

from dashboards import DashboardMixin
from operators import PATCH, OperatorTest, replicas
from support import SOURCE, wait_until

JOB = """
    name: mnist
    image: tf:1
    env: {GREETING: 'it costs \\$5'}
    roles:
      ps: {command: [serve, --task, "{role}/{index}"]}
      worker: {replicas: 2, command: "train --hosts {worker_hosts} > /tmp/out"}
    """


class KubernetesRunTest(DashboardMixin, OperatorTest):
    def setUp(self):
        super().setUp()
        self.env["KUBECONFIG"] = str(self.cluster.kubeconfig)

    def submit(self, text=JOB, *options):
        said = self.muster("run", "-d", "--on", "kubernetes", "-n", self.namespace, *options, self.write("job.yaml", text)).stdout
        return re.search(r"Started (\S+) in", said).group(1)

    def run_all(self, job, *tasks):
        """Binds the pods of a job to a node and sets them to Running."""
        wait_until(lambda: {f"{job}-{task}" for task in tasks} <= set(self.all("pods")), "the pods are there", 30)
        for task in tasks:
            self.set_status(f"{job}-{task}", "Running", {"running": {"startedAt": "2026-05-01T12:00:00Z"}})

    def set_status(self, pod, phase, state):
        status = {"phase": phase, "containerStatuses": [{"name": "tensorflow", "image": "tf:1", "imageID": "", "ready": False,
                                                         "restartCount": 0, "state": state}]}
        answer, body = self.ask("PATCH", "pods/status", pod, {"status": status}, {"Content-Type": "application/merge-patch+json"})
        self.assertEqual(answer, 200, body)

    def end(self, pod, code):
        self.set_status(pod, "Failed" if code else "Succeeded",
                        {"terminated": {"exitCode": code, "reason": "Error", "finishedAt": "2026-05-01T12:10:00Z"}})

    def container(self, pod):
        return self.all("pods")[pod]["spec"]["containers"][0]

    def variables(self, pod):
        return {entry["name"]: entry.get("value") for entry in self.container(pod)["env"]}

    def test_from_submission_to_success(self):
        self.operate()
        job = self.submit()
        self.assertRegex(job, r"^mnist-\w{5}$")
        wait_until(lambda: len(self.all("pods")) == 3, "the pods are there", 30)
        # Placeholders are filled in, and Kubernetes does not expand a $.
        self.assertEqual(self.container(f"{job}-ps-0")["command"], ["serve", "--task", "ps/0"])
        hosts = ",".join(f"{job}-worker-{i}.{self.namespace}.svc:2222" for i in (0, 1))
        self.assertEqual(self.container(f"{job}-worker-1")["command"], ["/bin/sh", "-c", f"train --hosts {hosts} > /tmp/out"])
        variables = self.variables(f"{job}-worker-1")
        self.assertEqual(variables["GREETING"], "it costs $$5")
        self.assertEqual((variables["MUSTER_TASK"], variables["RANK"], variables["MUSTER_JOB_ID"]), ("worker:1", "1", job))
        self.assertEqual(json.loads(variables["TF_CONFIG"])["task"], {"type": "worker", "index": 1})
        cluster = json.loads(self.muster("env", "--cluster", job).stdout)
        self.assertEqual(cluster, json.loads(variables["TF_CONFIG"])["cluster"])
        # Only the job's own pods may connect to its tasks.
        policy = json.loads(self.kubectl("get", "networkpolicy", job, "--output=json").stdout)
        self.assertEqual(policy["metadata"]["ownerReferences"][0]["kind"], "TFJob")

        self.assertEqual(self.show(job)["state"], "Starting")
        self.run_all(job, "ps-0", "worker-0", "worker-1")
        shown = self.wait_state(job, "Running")
        self.assertEqual({task["task"]: task["state"] for task in shown["tasks"]},
                         {"ps:0": "Running", "worker:0": "Running", "worker:1": "Running"})
        self.assertIn("kubernetes", self.muster("jobs", "--running").stdout)
        for worker in ("worker-0", "worker-1"):
            self.end(f"{job}-{worker}", 0)
        self.assertIsNone(self.wait_state(job, "Succeeded")["reason"])
        self.assertEqual(self.task(job, "ps:0")["state"], "Stopped")
        # Servers end with the job.
        wait_until(lambda: f"{job}-ps-0" not in self.all("pods"), "the server is gone", 30)
        events = self.events(job)
        self.assertTrue(any(event.startswith("worker:1 running") for event in events), events)
        self.assertIn("worker:0 waits: Unschedulable: no nodes available to schedule pods", events)

    def test_the_dashboard_follows_and_stops_it(self):
        self.operate()
        job = self.submit()
        client = self.client()
        stream = self.stream(client, f"/api/stream?job={job}")
        # Nothing but the dashboard asks the cluster.
        self.run_all(job, "ps-0", "worker-0", "worker-1")
        wait_until(lambda: stream.of("job") and stream.of("job")[-1]["job"]["state"] == "Running", "the stream reports it", 60)
        self.assertEqual({task["state"] for task in stream.of("job")[-1]["tasks"]}, {"Running"})
        self.assertEqual(client.get(f"/api/jobs/{job}/logs")["lines"], [])
        stopped = client.request("POST", f"/api/jobs/{job}/stop", {"immediately": True})
        self.assertEqual((stopped.status, stopped.json()["state"]), (200, "Stopped"), stopped.body)

    def test_a_waiting_run_reports_the_failure_and_its_reason(self):
        self.operate()
        job = self.submit("{name: mnist, image: tf:1, roles: {worker: {replicas: 2, command: [train]}}}")
        follower = self.start("logs", "-f", job)
        self.run_all(job, "worker-0", "worker-1")
        self.end(f"{job}-worker-1", 3)
        self.assertEqual(follower.wait(60), 1)
        failure = self.wait_state(job, "Failed")["failure"]
        self.assertEqual((failure["first"]["task"], failure["first"]["cause"]), ("worker:1", "exit code 3"))
        self.assertIn("first failure  worker:1", self.muster("show", job).stdout)

    def test_disruptions_by_the_cluster_are_noted(self):
        """Pods that the cluster rejects, and pods that it removes."""
        operator = self.operate()
        quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "small"}, "spec": {"hard": {"pods": "1"}}}
        self.assertEqual(self.ask("POST", "resourcequotas", value=quota)[0], 201)
        wait_until(lambda: self.ask("GET", "resourcequotas", "small")[1].get("status", {}).get("hard"), "the quota counts")
        job = self.submit("{name: mnist, image: tf:1, roles: {worker: {replicas: 2, command: [train]}}}")
        wait_until(lambda: [task["reason"] for task in self.show(job)["tasks"] if "exceeded quota: small" in (task["reason"] or "")],
                   "the refusal is a task's note", 30)
        wait_until(lambda: "exceeded quota: small" in (self.show(job)["reason"] or ""), "the refusal is the job's note")
        self.assertIn("exceeded quota: small", self.muster("show", job).stdout)
        # No operator replaces it.
        operator.terminate()
        operator.wait(30)
        made, = self.all("pods")
        task = "worker:" + made[-1]
        self.run_all(job, f"worker-{made[-1]}")
        self.assertEqual(self.task(job, task)["state"], "Running")
        lost = {"status": {"phase": "Failed", "reason": "Evicted", "message": "The node was low on resource: memory."}}
        self.assertEqual(self.ask("PATCH", "pods/status", made, lost, PATCH)[0], 200)
        self.assertEqual(self.task(job, task)["reason"], "its pod was lost: Evicted: The node was low on resource: memory.")
        self.assertEqual((self.task(job, task)["state"], self.task(job, task)["restarts"]), ("Restarting", 0))

    def test_stop_resume_and_restarts(self):
        self.operate()
        job = self.submit("{name: mnist, image: tf:1, model_dir: 's3://models/mnist', roles: {worker: {command: [train]}}}")
        self.run_all(job, "worker-0")
        first = self.all("pods")[f"{job}-worker-0"]["metadata"]["uid"]
        self.wait_state(job, "Running")
        self.end(f"{job}-worker-0", 137)  # retryable
        again = wait_until(lambda: (lambda pod: pod and pod["metadata"]["uid"] != first and pod)(self.all("pods").get(f"{job}-worker-0")),
                           "the pod is made anew", 30)
        self.assertEqual(again["spec"]["containers"][0]["command"], ["train"])
        self.run_all(job, "worker-0")
        self.wait_state(job, "Running")
        self.assertEqual(self.task(job, "worker:0")["restarts"], 1)

        refused = self.muster("resume", "-d", job, check=False)
        self.assertIn("stop it before", refused.stderr)
        # No node reports the end of its pods.
        stopped = self.muster("stop", "--yes", "--now", job)
        self.assertIn("Stopped", stopped.stdout)
        self.assertEqual(self.all("tfjobs"), {})
        self.muster("resume", "-d", job)
        later = self.jobs()[0]["id"]
        self.assertEqual(self.jobs()[0]["resumed_from"], job)
        wait_until(lambda: f"{later}-worker-0" in self.all("pods"), "it runs again", 30)
        variables = self.variables(f"{later}-worker-0")
        self.assertEqual((variables["MUSTER_RESUME"], variables["MUSTER_MODEL_DIR"]), ("1", "s3://models/mnist"))

    def test_a_change_restarts_only_affected_tasks(self):
        self.operate()
        job = self.submit()
        self.run_all(job, "ps-0", "worker-0", "worker-1")
        self.wait_state(job, "Running")
        text = JOB.replace("replicas: 2", "replicas: 3")
        planned = self.muster("run", "--dry-run", "--on", "kubernetes", "-n", self.namespace, self.write("job.yaml", text)).stdout
        self.assertIn("start:   worker:2", planned)
        self.assertIn("keep:    ps:0, worker:0, worker:1", planned)
        self.muster("run", "-d", "--yes", "--on", "kubernetes", "-n", self.namespace, self.write("job.yaml", text))
        wait_until(lambda: f"{job}-worker-2" in self.all("pods"), "the third worker is there", 30)
        self.assertEqual(len(self.show(job)["tasks"]), 3 + 1)
        same = self.muster("run", "-d", "--on", "kubernetes", "-n", self.namespace, self.write("job.yaml", text)).stdout
        self.assertIn("nothing changed", same)
        elsewhere = self.muster("run", "-d", self.write("job.yaml", text), check=False)
        self.assertIn("is running on kubernetes", elsewhere.stderr)

    def test_restart_without_a_change(self):
        self.operate()
        job = self.submit()
        self.run_all(job, "ps-0", "worker-0", "worker-1")
        self.wait_state(job, "Running")
        pods = {name: pod["metadata"]["uid"] for name, pod in self.all("pods").items()}
        said = self.muster("run", "-d", "--yes", "--restart", "--on", "kubernetes", "-n", self.namespace, self.dir / "job.yaml").stdout
        self.assertIn("restart: ps:0, worker:0, worker:1", said)
        wait_until(lambda: (lambda now: set(now) == set(pods) and all(now[name]["metadata"]["uid"] != uid for name, uid in pods.items()))
                   (self.all("pods")), "all pods are new", 60)
        self.assertEqual(self.variables(f"{job}-ps-0")["MUSTER_GENERATION"], "1")
        self.assertIn("nothing changed",
                      self.muster("run", "-d", "--on", "kubernetes", "-n", self.namespace, self.dir / "job.yaml").stdout)

    def test_show_lists_the_nodes(self):
        self.operate()
        node = f"node-{self.namespace}"
        made = self.api.ask("POST", "/api/v1/nodes", {
            "apiVersion": "v1", "kind": "Node",
            "metadata": {"name": node, "labels": {"topology.kubernetes.io/region": "us-west1",
                                                  "node.kubernetes.io/instance-type": "n1-standard-4"}},
            "spec": {"providerID": "gce://project/us-west1-a/node", "unschedulable": True},
            "status": {"addresses": [{"type": "ExternalIP", "address": "203.0.113.7"}]}})
        self.assertEqual(made[0], 201, made)
        self.addCleanup(self.api.ask, "DELETE", f"/api/v1/nodes/{node}")
        job = self.submit("{name: mnist, image: tf:1, roles: {worker: {replicas: 2, command: [train]}}}")
        wait_until(lambda: len(self.all("pods")) == 2, "the pods are there", 30)
        self.assertNotIn("MACHINE", self.muster("show", job).stdout)
        bound = self.ask("POST", "pods/binding", f"{job}-worker-0", {
            "apiVersion": "v1", "kind": "Binding", "metadata": {"name": f"{job}-worker-0"},
            "target": {"apiVersion": "v1", "kind": "Node", "name": node}})
        self.assertEqual(bound[0], 201, bound)
        wait_until(lambda: self.task(job, "worker:0")["host"] == node, "it is on the node")
        self.assertRegex(self.muster("show", job).stdout,
                         rf"MACHINE +ROLE +PROVIDER +REGION +SIZE +PUBLIC IP +STATUS\n"
                         rf"{node} +worker +gce +us-west1 +n1-standard-4 +203.0.113.7 +(Connected|NotReady)\n")

    def test_a_manifest_of_kubeflow_runs_as_it_is(self):
        self.operate()
        job = self.submit("""
            apiVersion: kubeflow.org/v1
            kind: TFJob
            metadata: {name: dist, labels: {team: vision}}
            spec:
              runPolicy: {cleanPodPolicy: All}
              tfReplicaSpecs:
                Worker: {replicas: 2, template: {spec: {containers: [{name: tensorflow, image: 'tf:1', command: [train, '{index}', $(HOME)]}]}}}
            """)
        wait_until(lambda: len(self.all("pods")) == 2, "the pods are there", 30)
        self.assertEqual(self.container(f"{job}-worker-0")["command"], ["train", "{index}", "$(HOME)"])
        self.assertEqual(list(self.variables(f"{job}-worker-0")), ["TF_CONFIG"])
        self.assertEqual(self.job(job)["metadata"]["labels"]["team"], "vision")
        self.assertEqual(self.job(job)["spec"]["runPolicy"], {"cleanPodPolicy": "All"})

    def test_jobs_of_others(self):
        self.operate()
        self.create("dist", {"Worker": {"replicas": 2, "template": {"spec": {"containers": [{"name": "tensorflow", "image": "tf:1"}]}}}})
        self.run_all("dist", "worker-0", "worker-1")
        there = "--on", "kubernetes", "-n", self.namespace
        wait_until(lambda: json.loads(self.muster("jobs", "--json", *there).stdout)[0]["state"] == "Running", "it runs", 30)
        listed, = json.loads(self.muster("jobs", "--json", "--running", *there).stdout)
        self.assertEqual((listed["id"], listed["tasks"]), ("dist", 2))
        self.assertEqual(self.jobs(), [], "a list changes nothing")
        self.assertIn("no job 'other'", self.muster("show", "other", check=False).stderr)
        self.assertNotEqual(self.muster("show", "other", *there, check=False).returncode, 0)
        shown = json.loads(self.muster("show", "--json", "dist", *there).stdout)
        self.assertEqual([task["state"] for task in shown["tasks"]], ["Running", "Running"])
        self.assertRegex(shown["id"], r"^dist-[0-9a-f]{5}$")
        # From now on it is in the history.
        self.assertEqual(self.show("dist")["id"], shown["id"])
        cluster = json.loads(self.muster("env", "--cluster", "dist").stdout)
        self.assertEqual(cluster["worker"][1], f"dist-worker-1.{self.namespace}.svc:2222")
        self.muster("stop", "--yes", "--now", "dist", *there)
        self.assertEqual(self.all("tfjobs"), {})
        self.assertEqual(self.show("dist")["state"], "Stopped")

    def test_another_job_of_the_same_name_is_left_alone(self):
        self.operate()
        there = "--on", "kubernetes", "-n", self.namespace
        self.create("dist", {"Worker": replicas(1)})
        first = json.loads(self.muster("show", "--json", "dist", *there).stdout)["id"]
        self.kubectl("delete", "tfjob", "dist", "--wait=true")
        self.create("dist", {"Worker": replicas(1)})
        self.assertEqual(self.wait_state(first, "Stopped")["state"], "Stopped")
        second = json.loads(self.muster("show", "--json", "dist", *there).stdout)["id"]
        self.assertNotEqual(first, second)
        self.muster("stop", "--yes", first)
        self.assertEqual(list(self.all("tfjobs")), ["dist"])

    def test_a_rejected_stop_is_reported_immediately(self):
        job = self.submit()
        place = self.home / "jobs" / job / "submission.json"
        place.write_text(place.read_text().replace(str(self.cluster.kubeconfig), str(self.api.kubeconfig)))
        self.api.fail({"kind": "status", "verb": "delete", "path": "/tfjobs/", "status": 403})
        refused = self.muster("stop", "--yes", job, check=False, timeout=40)
        self.assertEqual(refused.returncode, 1)
        self.assertIn(f"{job}: ", refused.stderr)
        self.assertEqual(list(self.all("tfjobs")), [job])
        self.api.fail()

    def test_a_submission_without_a_response_leaves_no_objects(self):
        self.api.fail({"kind": "cut-answer", "verb": "patch", "path": "/tfjobs/", "times": 100})
        env = {**self.env, "KUBECONFIG": str(self.api.kubeconfig)}
        refused = self.muster("run", "-d", "--on", "kubernetes", "-n", self.namespace, self.write("job.yaml", JOB), check=False, env=env)
        self.assertEqual(refused.returncode, 1)
        self.api.fail()
        self.assertEqual(self.all("tfjobs"), {})
        self.assertEqual(json.loads(self.kubectl("get", "networkpolicy", "--output=json").stdout)["items"], [])

    def test_a_change_adds_and_removes_objects(self):
        run = "run", "-d", "--yes", "--on", "kubernetes"
        job = self.submit()
        # The platform need not be given again.
        text = JOB + "\n    notebook: {password: secret}\n"
        self.muster(*run, self.write("job.yaml", text))
        service = json.loads(self.kubectl("get", "service", f"{job}-notebook", "--output=json").stdout)
        self.assertEqual(service["metadata"]["ownerReferences"][0]["name"], job)
        self.muster(*run, self.write("job.yaml", JOB))
        self.assertIn("NotFound", self.kubectl("get", "service", f"{job}-notebook", check=False).stderr)
        self.assertEqual(len(self.jobs()), 1)

    def test_a_job_is_found_again_from_anywhere(self):
        (self.dir / "here").mkdir()
        (self.dir / "here" / "config").write_text(self.cluster.kubeconfig.read_text())
        env = {**self.env, "KUBECONFIG": "config"}
        self.muster("run", "-d", "--on", "kubernetes", "-n", self.namespace, self.write("job.yaml", JOB), env=env, cwd=self.dir / "here")
        job = self.jobs()[0]["id"]
        del self.env["KUBECONFIG"]
        self.assertEqual(self.show(job)["state"], "Pending")

    def test_a_job_that_was_started_elsewhere_is_not_resumed_without_its_file(self):
        job = self.submit()
        self.env["MUSTER_HOME"] = str(self.dir / "other")
        there = "--on", "kubernetes", "-n", self.namespace
        self.assertEqual(json.loads(self.muster("show", "--json", job, *there).stdout)["id"], job)
        self.muster("stop", "--yes", "--now", job)
        self.assertIn("was started by another client", self.muster("resume", "-d", job, check=False).stderr)

    def test_notebooks(self):
        job = self.submit("{name: mnist, image: tf:1, notebook: {password: secret}, roles: {worker: {command: [train]}}}")
        said = self.muster("notebook", job).stdout
        self.assertIn("is starting", said)
        self.assertRegex(said, rf"kubectl --namespace {self.namespace} --context \S+ port-forward service/{job}-notebook 8888 6006")
        self.assertIn("http://localhost:8888", said)
        other = self.submit("{name: other, image: tf:1, roles: {worker: {command: [train]}}}")
        self.assertIn("no 'notebook' section", self.muster("notebook", other, check=False).stderr)
        file = self.write("config.yaml", "{name: late, image: tf:1, notebook: {}, roles: {worker: {command: [train]}}}")
        missing = self.muster("notebook", file, "-n", self.namespace, check=False)
        self.assertIn("there is no service 'late-notebook'", missing.stderr)
        self.kubectl("apply", "-f", "-", stdin=self.muster("render", "-n", self.namespace, file).stdout)
        self.assertIn("its log holds the token", self.muster("notebook", file, "-n", self.namespace).stdout)

    def test_without_an_operator(self):
        job = self.submit()
        self.assertEqual(self.show(job)["state"], "Pending")
        self.muster("stop", "--yes", "--now", job)
        self.assertEqual(self.show(job)["state"], "Stopped")

    def test_a_job_deleted_by_others_is_stopped(self):
        self.operate()
        job = self.submit()
        wait_until(lambda: len(self.all("pods")) == 3, "the pods are there", 30)
        self.kubectl("delete", "tfjob", job)
        shown = self.wait_state(job, "Stopped")
        self.assertIn("deleted from the cluster", shown["reason"])

    def test_a_cluster_that_does_not_answer_is_unreachable(self):
        job = self.submit()
        for settings in (self.home / "jobs" / job).glob("submission.json"):
            settings.write_text(settings.read_text().replace(str(self.cluster.kubeconfig), str(self.dir / "other")))
        (self.dir / "other").write_text(re.sub(r"server: .*", "server: https://127.0.0.1:9", self.cluster.kubeconfig.read_text()))
        self.assertEqual(self.show(job)["state"], "Unreachable")
        self.assertIn("127.0.0.1:9", self.show(job)["reason"])
        stopped = self.muster("stop", "--yes", job, check=False)
        self.assertEqual(stopped.returncode, 1)
        self.assertIn("127.0.0.1:9", stopped.stderr)

    def test_a_submission_that_is_killed(self):
        self.api.fail({"kind": "stall", "verb": "write", "path": "/tfjobs/"})
        env = {**self.env, "KUBECONFIG": str(self.api.kubeconfig)}
        submitter = self.start("run", "-d", "--on", "kubernetes", "-n", self.namespace, self.write("job.yaml", JOB), env=env)
        wait_until(lambda: self.home.glob("jobs/*") and any("tfjobs" in entry["path"] for entry in self.api.log() if entry.get("verb") == "patch"),
                   "it is submitting", 30)
        self.assertEqual(self.jobs()[0]["state"], "Pending")
        submitter.kill()
        submitter.wait()
        job = self.jobs()[0]
        self.assertEqual(job["state"], "Failed")
        self.assertIn("never started", job["reason"])

    def test_a_manifest_of_v1alpha1_keeps_everything(self):
        self.operate()
        text = (SOURCE / "examples" / "kubernetes" / "distributed_mnist_v1alpha1.yaml").read_text()
        text = text.replace("replicaName: MASTER", "replicaName: WORKER").replace(
            "serviceType: ClusterIP", "serviceType: NodePort\n    volumes: [{name: v, emptyDir: {}}]\n    volumeMounts: [{name: v, mountPath: /tmp/tensorflow}]")
        job = self.submit(text.replace("RuntimeId: 5oz2", "RuntimeId: 5oz2\n  tfImage: my/tf:2"))
        tasks = [f"{job}-{task}" for task in ("master-5oz2-0", "ps-5oz2-0", "worker-5oz2-0", "worker-5oz2-1")]
        board = f"{job}-tensorboard-5oz2-0"
        self.wait_pods(*tasks, board)
        server = self.all("pods")[tasks[1]]["spec"]
        self.assertEqual((server["containers"][0]["image"], server["containers"][0]["command"]), ("my/tf:2", ["python", "/ps-server/tf_server.py"]))
        program, = [volume["configMap"]["name"] for volume in server["volumes"] if "configMap" in volume]
        self.assertEqual(self.all("configmaps")[program]["metadata"]["ownerReferences"][0]["name"], job)
        pod = self.all("pods")[board]["spec"]
        self.assertEqual((pod["containers"][0]["image"], pod["volumes"][0]["name"]), ("my/tf:2", "v"))
        self.assertEqual(self.all("services")[board]["spec"]["type"], "NodePort")
        for name in tasks:
            self.set_status(name, "Running", {"running": {"startedAt": "2026-05-01T12:00:00Z"}})
        self.wait_state(job, "Running")
        self.assertEqual(len(self.show(job)["tasks"]), 4)
        self.end(tasks[0], 0)  # the MASTER is not the chief
        self.wait_conditions(job, "Created", "Running")
        self.end(tasks[2], 0)
        self.wait_state(job, "Succeeded")
        self.wait_pods(tasks[0], tasks[2], board)  # servers end with the job

    def test_a_rendered_cluster_has_pods_with_three_part_names(self):
        config = self.write("config.yaml", "resources: [{type: tensorflow-cluster, properties: {image: gcr.io/me/worker, jobs: "
                            "[{name: ps, num_tasks: 1}, {name: workers, num_tasks: 2}]}}, {type: jupyter-service, properties: {password: x}}]\n")
        self.muster("render", "--config", config, "--out", self.dir / "out.yaml", "-n", self.namespace)
        self.kubectl("apply", "-f", self.dir / "out.yaml")
        wait_until(lambda: len(self.all("pods")) == 4, "the pods are there", 30)
        pods = [name for name in self.all("pods") if not name.startswith("jupyter")]
        self.assertEqual(sorted(tuple(name.split("-")[:2]) for name in pods), [("ps", "0"), ("workers", "0"), ("workers", "1")])
        for name in pods:
            self.assertEqual(len(name.split("-")), 3)
        self.kubectl("apply", "-f", self.dir / "out.yaml")

    def test_jobs_that_cannot_run_there(self):
        file = self.write("job.yaml", "{name: x, image: tf:1, roles: {trainer: {command: [train]}}}")
        refused = self.muster("run", "--on", "kubernetes", file, check=False)
        self.assertEqual(refused.returncode, 2)
        self.assertIn("does not support the role 'trainer'", refused.stderr)
        refused = self.muster("run", "--on", "kubernetes", SOURCE / "examples" / "rendered_cluster.yaml", check=False)
        self.assertIn("`muster render` prints manifests", refused.stderr)
        refused = self.muster("jobs", "-n", "ml", check=False)
        self.assertIn("add --on kubernetes", refused.stderr)
        file = self.write("job.yaml", "{name: x, image: tf:1, roles: {worker: {command: [train]}}}")
        refused = self.muster("run", "--context", "nowhere", "--on", "kubernetes", file, check=False)
        self.assertIn("nowhere", refused.stderr)
        refused = self.muster("run", "-n", "ml", file, check=False)
        self.assertIn("add --on kubernetes", refused.stderr)
        refused = self.muster("run", "-d", "-n", "no-such-namespace", "--on", "kubernetes", file, check=False)
        self.assertIn("no-such-namespace", refused.stderr)
        planned = self.muster("run", "--dry-run", "-n", self.namespace, "--on", "kubernetes", file).stdout
        self.assertIn(f"in namespace '{self.namespace}'", planned)
        self.assertEqual(self.all("tfjobs"), {})


if __name__ == "__main__":
    unittest.main()
