"""muster render: manifests of every form of job file."""
import json
import re
import unittest

from support import SOURCE, MusterTest

EXAMPLES = SOURCE / "src" / "manifest" / "testdata"


class RenderTest(MusterTest):
    JOB = {"name": "a", "image": "busybox:1", "roles": {"worker": {"replicas": 2, "command": "echo {index}"}}}

    def job(self, **changes):
        return self.write("job.yaml", json.dumps({**self.JOB, **changes}))

    def test_to_a_file_that_others_cannot_read(self):
        result = self.muster("render", self.job(notebook={"password": "hunter2"}), "-o", "out.yaml")
        self.assertEqual(result.stdout, "")
        self.assertIn("kubectl apply -f out.yaml", result.stderr)
        text = (self.dir / "out.yaml").read_text()
        self.assertNotIn("hunter2", text)
        self.assertEqual((self.dir / "out.yaml").stat().st_mode & 0o777, 0o600)
        self.assertEqual(text.count("kind: Job\n"), 2)

    def test_options(self):
        result = self.muster("render", self.job(), "-n", "mine", "--create-namespace", "--domain", "my.domain")
        self.assertIn("kind: Namespace\nmetadata:\n  name: mine\n", result.stdout)
        self.assertIn("a-worker-1.mine.svc.my.domain:2222", result.stdout)

    def test_the_same_every_time(self):
        once, twice = (self.muster("render", self.job()).stdout for _ in range(2))
        self.assertEqual(once, twice)

    def test_fields_that_kubernetes_would_drop_are_reported(self):
        job = ("apiVersion: kubeflow.org/v1\nkind: TFJob\nmetadata: {name: j}\nspec:\n  tfReplicaSpecs:\n    Worker:\n      template:\n        spec:\n"
               "          containers:\n            - {name: tensorflow, image: tf, command: [a], imagePullPolciy: Always}\n")
        path = self.write("job.yaml", job)
        warning = f"{path}:10:59: unknown field 'imagePullPolciy' in the template of 'Worker' (did you mean 'imagePullPolicy'?); Kubernetes ignores it"
        for command in (("render",), ("run", "--dry-run"), ("explain",)):
            self.assertIn(f"warning: {warning}", self.muster(*command, path).stderr, command)
        native = self.write("native.yaml", "name: n\nimage: i\nkubernetes: {pod: {nodeSelctor: {a: b}}}\nroles: {worker: {command: a}}\n")
        self.assertIn("unknown field 'nodeSelctor' in 'pod' of kubernetes (did you mean 'nodeSelector'?)", self.muster("render", native).stderr)
        wrong = self.write("wrong.yaml", "name: n\nimage: i\nkubernetes: {container: {volumeMounts: 5}}\nroles: {worker: {command: a}}\n")
        refused = self.muster("render", wrong, check=False)
        self.assertEqual(refused.returncode, 2)
        self.assertIn("'volumeMounts' in 'container' of kubernetes must be a list, not the number 5", refused.stderr)

    CONFIG = """
        imports: [{name: tensorflow-cluster, path: tensorflow-cluster.jinja}]
        resources:
          - type: tensorflow-cluster
            properties:
              image: IMAGE
              jobs: [{name: ps, num_tasks: 2}, {name: Workers, num_tasks: 1}]
          - type: jupyter-service
            properties: {namespace: notes, password: 0042}
        """

    def test_the_spellings_of_the_first_renderer(self):
        config = self.write("my-config.yaml", self.CONFIG.replace("IMAGE", "gcr.io/me/worker"))
        said = self.muster("render", "--config", config, "--out", "rendered.yaml").stderr
        self.assertIn("the job 'Workers' is called 'workers'", said)
        text = (self.dir / "rendered.yaml").read_text()
        self.assertEqual(text, re.sub(r"password-hash: .*", re.search(r"password-hash: .*", text).group(0), self.muster("render", config).stdout))
        self.assertIn("missing job file", self.muster("render", check=False).stderr)
        self.assertIn("pass one", self.muster("render", config, "--config", config, check=False).stderr)

    def test_the_server_of_an_image_gets_its_contract(self):
        text = self.muster("render", self.write("config.yaml", self.CONFIG.replace("IMAGE", "gcr.io/me/worker"))).stdout
        self.assertEqual(text.count("kind: ReplicaSet"), 3)
        self.assertIn("""- "[{'name': 'ps', 'num_tasks': 2}, {'name': 'workers', 'num_tasks': 1}]\"""", text)
        self.assertEqual(text.count("name: POD_NAMESPACE"), 3)
        self.assertNotIn("runAsUser", text)
        self.assertNotIn("tf_server.py", text)
        self.assertIn("workers-0.default.svc.cluster.local:8080", text)
        strict = self.CONFIG.replace("IMAGE", "gcr.io/me/worker\n              restricted: true")
        self.assertEqual(self.muster("render", self.write("strict.yaml", strict)).stdout.count("readOnlyRootFilesystem: true"), 3)

    def test_an_image_of_tensorflow_runs_our_program(self):
        text = self.muster("render", self.write("config.yaml", self.CONFIG.replace("IMAGE", "tensorflow/tensorflow:1.4.0"))).stdout
        self.assertEqual(text.count("- /ps-server/tf_server.py"), 3)
        self.assertIn("  tf_server.py: |", text)
        self.assertNotIn("--job-config", text)

    def test_the_notebook_knows_the_cluster_and_shares_its_summaries(self):
        text = self.muster("render", self.write("config.yaml", self.CONFIG.replace("IMAGE", "i"))).stdout
        deployment = text[text.index("kind: Deployment"):]
        self.assertIn("namespace: notes", deployment)
        self.assertIn(r'"{\"ps\":[\"ps-0.default.svc.cluster.local:8080\"', deployment)
        self.assertEqual(deployment.count("mountPath: /logs"), 2)
        self.assertIn("--logdir=/logs", deployment)
        alone = self.write("alone.yaml", "resources: [{type: jupyter-service, properties: {namespace: notes, password: x}}]")
        text = self.muster("render", alone).stdout
        self.assertEqual([line for line in text.splitlines() if line.startswith("kind:")], ["kind: Secret", "kind: Service", "kind: Deployment"])

    def test_settings_without_effect_are_reported(self):
        old = self.write("job.yaml", """
            apiVersion: tensorflow.org/v1alpha1
            kind: TfJob
            metadata: {name: old}
            spec:
              RuntimeId: 5oz2
              tfImage: tf:9
              tensorboard: {logDir: /logs, volumes: [{name: v, emptyDir: {}}], volumeMounts: [{name: v, mountPath: /logs}]}
              terminationPolicy: {chief: {replicaName: WORKER, replicaIndex: 0}}
              replicaSpecs:
              - {tfReplicaType: MASTER, template: &pod {spec: {containers: [{name: tensorflow, image: i, command: ["true"]}]}}}
              - {tfReplicaType: WORKER, template: *pod}
              - {tfReplicaType: PS}
            """)
        result = self.muster("render", old)
        self.assertIn("not without the operator: terminationPolicy: ", result.stderr)
        for part in ("name: old-worker-5oz2-0", "name: old-tensorboard", "image: tf:9", "mountPath: /logs", "- /ps-server/tf_server.py"):
            self.assertIn(part, result.stdout)

    def test_mistakes(self):
        del self.JOB["image"]
        self.addCleanup(self.JOB.__setitem__, "image", "busybox:1")
        refused = self.muster("render", self.job(), check=False)
        self.assertEqual((refused.returncode, refused.stdout), (2, ""))
        self.assertIn("role 'worker' has no image", refused.stderr)
        refused = self.muster("render", self.job(image="i", kubernetes={"pods": {}}), check=False)
        self.assertIn("unknown key 'pods' in kubernetes", refused.stderr)
        self.assertEqual(self.muster("render", self.job(image="i"), "-o", "no/such/folder/x", check=False).returncode, 1)


if __name__ == "__main__":
    unittest.main()
