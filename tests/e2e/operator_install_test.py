"""muster operator install and deploy/: a real API server accepts all manifests, and rejects invalid jobs."""
import base64
import copy
import json
import unittest

from cluster.kubectl import Kubectl
from clusters import SharedCluster, own_cluster
from operators import OperatorTest, replicas, violations
from support import SOURCE, MusterTest, wait_until

DEPLOY = SOURCE / "deploy"
EXAMPLES = SOURCE / "examples"
RENDERED = SOURCE / "src" / "manifest" / "testdata"
JOBS = [*sorted((EXAMPLES / "kubernetes").glob("*.yaml")), *sorted(EXAMPLES.glob("tfjob*.yaml")), RENDERED / "tfjob.job.yaml",
        *sorted((SOURCE / "tests" / "fuzz" / "corpus" / "job").glob("tfjob*.yaml"))]
CONTAINER = {"name": "tensorflow", "image": "tf:1"}
REPLICA = {"replicas": 1, "template": {"spec": {"containers": [CONTAINER]}}}
TFJOB = {"apiVersion": "kubeflow.org/v1", "kind": "TFJob", "metadata": {"name": "a"}, "spec": {"tfReplicaSpecs": {"Worker": REPLICA}}}
OLD_TFJOB = {"apiVersion": "tensorflow.org/v1alpha1", "kind": "TfJob", "metadata": {"name": "a"},
             "spec": {"replicaSpecs": [{"tfReplicaType": "MASTER", "template": REPLICA["template"]}]}}


def changed(job, path, value=None):
    """A copy with another value at a path ("a/b/0"); without the member when the value is None."""
    job = copy.deepcopy(job)
    *folders, last = [int(part) if part.isdigit() else part for part in path.split("/")]
    at = job
    for part in folders:
        at = at[part] if isinstance(at, list) else at.setdefault(part, {})
    if value is None:
        del at[last]
    else:
        at[last] = value
    return job


class SchemaTest(unittest.TestCase):
    """The definitions of both kinds."""

    WORKER = "spec/tfReplicaSpecs/Worker"
    FIRST = "spec/replicaSpecs/0"

    def setUp(self):
        self.cluster = SharedCluster(self, [DEPLOY / "crds.yaml"])
        self.kubectl = self.cluster.kubectl
        wait_until(lambda: self.kubectl("get", "tfjobs.kubeflow.org,tfjobs.tensorflow.org", check=False).returncode == 0,
                   "both kinds are served")

    def create(self, job, *options):
        return self.kubectl("create", "--dry-run=server", *options, "-f", "-", stdin=json.dumps(job), check=False)

    def assert_refused(self, cases):
        for job, complaint in cases:
            with self.subTest(complaint):
                refused = self.create(job, "--validate=false")
                self.assertNotEqual(refused.returncode, 0)
                self.assertIn(complaint, refused.stderr)

    def test_invalid_replicas_are_rejected(self):
        containers = f"{self.WORKER}/template/spec/containers"
        self.assert_refused([
            (changed(TFJOB, "spec/tfReplicaSpecs"), "spec.tfReplicaSpecs: Required value"),
            (changed(TFJOB, "spec/tfReplicaSpecs", {}), "spec.tfReplicaSpecs in body should have at least 1 properties"),
            (changed(TFJOB, f"{self.WORKER}/template"), "spec.tfReplicaSpecs.Worker.template: Required value"),
            (changed(TFJOB, f"{self.WORKER}/replicas", -1), "spec.tfReplicaSpecs.Worker.replicas in body should be greater than or equal to 0"),
            (changed(TFJOB, f"{self.WORKER}/replicas", "many"), "spec.tfReplicaSpecs.Worker.replicas in body must be of type integer"),
            (changed(TFJOB, f"{self.WORKER}/restartPolicy", "Sometimes"), 'supported values: "Never", "OnFailure", "Always", "ExitCode"'),
            (changed(TFJOB, containers), "spec.tfReplicaSpecs.Worker.template.spec.containers: Required value"),
            (changed(TFJOB, containers, []), "spec.tfReplicaSpecs.Worker.template.spec.containers in body should have at least 1 items"),
            (changed(TFJOB, f"{containers}/0/image"), "containers.image: Required value"),
            (changed(TFJOB, f"{containers}/0/image", ""), "image in body should be at least 1 chars long"),
        ])

    def test_invalid_policies_are_rejected(self):
        policy = "spec/runPolicy"
        self.assert_refused([
            (changed(TFJOB, f"{policy}/cleanPodPolicy", "Some"), 'supported values: "None", "Running", "All"'),
            (changed(TFJOB, f"{policy}/ttlSecondsAfterFinished", -1), "should be greater than or equal to 0"),
            (changed(TFJOB, f"{policy}/activeDeadlineSeconds", 0), "should be greater than or equal to 1"),
            (changed(TFJOB, f"{policy}/backoffLimit", -1), "should be greater than or equal to 0"),
            (changed(TFJOB, f"{policy}/suspend", "yes"), "spec.runPolicy.suspend in body must be of type boolean"),
            (changed(TFJOB, f"{policy}/managedBy", "me"), '"kubeflow.org/training-operator", "kueue.x-k8s.io/multikueue"'),
            (changed(TFJOB, "spec/successPolicy", "Most"), '"AllWorkers"'),
            (changed(TFJOB, "spec/enableDynamicWorker", "yes"), "must be of type boolean"),
        ])

    def test_invalid_jobs_of_v1alpha1_are_rejected(self):
        self.assert_refused([
            (changed(OLD_TFJOB, "spec"), "spec: Required value"),
            (changed(OLD_TFJOB, "spec", {}), "should have at least 1 properties"),
            (changed(OLD_TFJOB, "spec/replicaSpecs", []), "should have at least 1 items"),
            (changed(OLD_TFJOB, f"{self.FIRST}/tfReplicaType", "CHIEF"), 'supported values: "MASTER", "WORKER", "PS"'),
            (changed(OLD_TFJOB, f"{self.FIRST}/replicas", -1), "should be greater than or equal to 0"),
            (changed(OLD_TFJOB, f"{self.FIRST}/tfPort", 0), "should be greater than or equal to 1"),
        ])

    def test_an_unknown_field_is_named(self):
        self.assertIn('unknown field "restarts"', self.create(changed(TFJOB, "spec/runPolicy/restarts", 3)).stderr)

    def test_valid_jobs_are_accepted_unchanged(self):
        pod = {"spec": {"containers": [{**CONTAINER, "env": [{"name": "A", "value": "1"}]}], "tolerations": [{"operator": "Exists"}]},
               "metadata": {"labels": {"team": "vision"}, "annotations": {"a/b": "c"}}}
        for job in (TFJOB, OLD_TFJOB, changed(TFJOB, f"{self.WORKER}/template", pod), changed(TFJOB, f"{self.WORKER}/replicas", 0),
                    changed(TFJOB, "spec/tfReplicaSpecs/pS", REPLICA), changed(OLD_TFJOB, "spec/RuntimeId", "5oz2"),
                    changed(TFJOB, "spec/runPolicy/managedBy", "kueue.x-k8s.io/multikueue"),
                    changed(TFJOB, "spec/runPolicy/schedulingPolicy", {"minAvailable": 2, "minResources": {"cpu": 3, "memory": "1Gi"}})):
            taken = self.create(job, "--output=json")
            self.assertEqual(taken.returncode, 0, taken.stderr)
            self.assertEqual(json.loads(taken.stdout)["spec"], job["spec"])

    def test_examples_are_accepted(self):
        self.assertGreater(len(JOBS), 10)
        for path in JOBS:
            with self.subTest(path.name):
                text = path.read_text().replace("namespace: kubeflow", f"namespace: {self.cluster.namespace}")
                for _ in range(2):
                    done = self.kubectl("apply", "-f", "-", stdin=text, check=False)
                    self.assertEqual(done.returncode, 0, done.stderr)
                self.assertIn(" unchanged", done.stdout)

    def test_the_state_is_shown(self):
        self.kubectl.apply(TFJOB, OLD_TFJOB)
        for kind in ("tfjobs.kubeflow.org", "tfjobs.tensorflow.org"):
            job = self.kubectl.get(kind, "a")
            self.assertNotIn("status", job)
            job["status"] = {"conditions": [{"type": "Created", "status": "True", "reason": "TFJobCreated"}, {"type": "Running", "status": "True"}],
                             "replicaStatuses": {"Worker": {"active": 1}}}
            path = f"/apis/{job['apiVersion']}/namespaces/{self.cluster.namespace}/tfjobs/a/status"
            self.kubectl("replace", f"--raw={path}", "-f", "-", stdin=json.dumps(job))
            header, line = self.kubectl("get", kind).stdout.splitlines()
            self.assertEqual(header.split(), ["NAME", "STATE", "AGE"])
            self.assertEqual(line.split()[:2], ["a", "Running"])
            self.assertEqual(self.kubectl.get(kind, "a")["status"], job["status"])
        # The short name refers to Kubeflow's kind.
        self.assertIn("tfjob.kubeflow.org/a", self.kubectl("get", "tfjobs", "--output=name").stdout)


class PodTest(MusterTest):
    """Compares Muster's table of pod fields with the API server."""

    def setUp(self):
        super().setUp()
        self.cluster = SharedCluster(self, [DEPLOY / "crds.yaml"])
        self.kubectl = self.cluster.kubectl

    def documents(self, text):
        """Parses YAML as kubectl does."""
        output = self.kubectl("create", "--dry-run=client", "--validate=false", "--output=json", "-f", "-", stdin=text).stdout
        decoder, found = json.JSONDecoder(), []
        while output.strip():
            document, end = decoder.raw_decode(output.lstrip())
            output = output.lstrip()[end:]
            found += document.get("items", [document])
        return found

    def test_trainer_pods_are_allowed_in_restricted_namespaces(self):
        job = self.write("job.yaml", "name: nb\nimage: r.example/train:1\nroles: {worker: {command: train}}\nnotebook: {password: x}\n")
        texts = {"mnist.yaml": (EXAMPLES / "kubernetes" / "mnist.yaml").read_text(), "evaluator.yaml": (EXAMPLES / "kubernetes" / "evaluator.yaml").read_text(),
                 "rendered": self.muster("render", job, "-n", self.cluster.namespace).stdout,
                 "operator.yaml": (DEPLOY / "operator.yaml").read_text().replace("namespace: muster", f"namespace: {self.cluster.namespace}")}
        for name, text in texts.items():
            pods = []
            for document in self.documents(text):
                spec = document.get("spec", {})
                pods += [one["template"]["spec"] for one in [spec, *spec.get("tfReplicaSpecs", {}).values()] if "template" in one]
            self.assertTrue(pods, name)
            for pod in pods:
                self.assertEqual(list(violations(pod)), [], name)

    def test_fields_of_pods_are_those_of_the_server(self):
        """The table has every field of the server, with its type. The server is older, so the table has more."""
        table = (SOURCE / "src" / "job" / "format" / "pod_fields.cc").read_text().split('R"(')[1].split(')"')[0].split()
        known = {}
        for word in table:
            if word.endswith(":"):
                fields = known[word[:-1]] = {}
            else:
                name, fields[name] = word.split("=")
        definitions = self.kubectl.raw("/openapi/v2")["definitions"]
        kinds = {"string": "s", "integer": "i", "boolean": "b", "number": "n"}

        def type_of(schema):
            if "$ref" in schema:
                name = schema["$ref"].split(".")[-1]
                return {"Quantity": "q", "IntOrString": "x", "Time": "s", "OwnerReference": "o", "ManagedFieldsEntry": "o"}.get(name, name)
            if schema.get("type") == "array":
                return "[" + type_of(schema["items"])
            if "additionalProperties" in schema:
                return "{" + type_of(schema["additionalProperties"])
            return kinds[schema["type"]]

        seen, wanted = set(), ["io.k8s.api.core.v1.PodTemplateSpec"]
        renamed = {"Handler": "LifecycleHandler"}
        otherwise = {"ObjectMeta.clusterName", "EphemeralVolumeSource.readOnly", "PersistentVolumeClaimSpec.resources"}  # in later versions
        while wanted:
            full = wanted.pop()
            name = full.split(".")[-1]
            if full in seen or name in ("Quantity", "IntOrString", "Time", "OwnerReference", "ManagedFieldsEntry"):
                continue
            seen.add(full)
            for field, schema in definitions[full].get("properties", {}).items():
                wanted += [part.split('"')[0] for part in json.dumps(schema).split("#/definitions/")[1:]]
                if f"{name}.{field}" in otherwise:
                    continue
                expected = type_of(schema)
                self.assertEqual(known[renamed.get(name, name)].get(field), renamed.get(expected, expected), f"{name}.{field}")
        self.assertGreater(len(seen), 80)


class NamespacedTest(OperatorTest):
    """An operator with permissions in one namespace."""

    def test_it_runs_jobs_with_a_role_alone(self):
        env = {**self.env, "KUBECONFIG": str(self.cluster.kubeconfig)}
        said = self.muster("operator", "install", "--namespaced", "-n", self.namespace, env=env).stdout
        self.assertEqual({line.split("/")[0] for line in said.splitlines()},
                         {"serviceaccount", "role", "rolebinding", "service", "networkpolicy", "deployment"})
        # There is no node to run its pod: the test runs its command with its role.
        kubeconfig = self.cluster.user("ann")
        self.kubectl("create", "rolebinding", "ann", "--role=muster-operator", f"--user=ann-{self.namespace}")
        ann = self.cluster.as_user(kubeconfig)
        wait_until(lambda: ann("auth", "can-i", "list", "tfjobs", check=False).returncode == 0, "the role is known")
        self.assertNotEqual(ann("auth", "can-i", "list", "pods", "--all-namespaces", check=False).returncode, 0)
        command = self.kubectl.get("deployment", "muster-operator")["spec"]["template"]["spec"]["containers"][0]["args"]
        self.assertIn(f"--namespace={self.namespace}", command)
        operator = self.operate("--lease-namespace", self.namespace, kubeconfig=kubeconfig)
        self.create("job", {"Worker": replicas(2)})
        self.wait_pods("job-worker-0", "job-worker-1", job="job")
        self.set_phase("job-worker-0", "Succeeded")
        self.wait_conditions("job", "Created", "Succeeded")
        self.end(operator)
        again = self.muster("operator", "install", "--namespaced", "-n", self.namespace, env=env).stdout
        self.assertEqual({line.split()[-1] for line in again.splitlines()}, {"unchanged"})


class InstallTest(MusterTest):
    """The whole operator in the test's own cluster, since its objects affect all namespaces."""

    ACCOUNT = "system:serviceaccount:muster:muster-operator"

    def setUp(self):
        super().setUp()
        self.cluster = own_cluster(self, controllers=False)
        self.kubectl = self.cluster.kubectl
        self.in_muster = Kubectl(self.cluster.folder / "kubectl", self.cluster.kubeconfig, "muster")
        self.env = {name: value for name, value in self.env.items() if not name.lower().endswith("_proxy")}
        self.env["KUBECONFIG"] = str(self.cluster.kubeconfig)

    def install(self, *options, **more):
        return self.muster("operator", "install", *options, **more)

    def apply(self, text):
        """Returns kubectl's line for each object."""
        return [line.split()[-1] for line in self.in_muster("apply", "-f", "-", stdin=text).stdout.splitlines()]

    def rules(self, namespace):
        """Returns {(group, resource): verbs} of the operator, without those of all users."""
        review = {"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectRulesReview", "spec": {"namespace": namespace}}
        answer = self.kubectl("create", f"--as={self.ACCOUNT}", "-f", "-", "--output=json", stdin=json.dumps(review)).stdout
        rules = {}
        for rule in json.loads(answer)["status"]["resourceRules"]:
            self.assertNotIn("resourceNames", rule)
            for group in rule["apiGroups"]:
                for resource in rule["resources"]:
                    if group != "authorization.k8s.io":
                        rules.setdefault((group, resource), set()).update(rule["verbs"])
        return rules

    def test_printed_manifests_are_applied_once(self):
        text = self.install("--dry-run").stdout
        first = self.apply(text)
        self.assertEqual(set(first), {"created"})
        self.assertEqual(len(first), text.count("\nkind: "))
        self.assertEqual(self.apply(text), ["unchanged" if word == "created" else word for word in first])
        pod = self.in_muster.get("deployment", "muster-operator")["spec"]["template"]["spec"]
        self.assertEqual(pod["containers"][0]["image"], f"muster:{self.muster('--version').stdout.split()[-1]}")
        # Deleting the printed objects leaves nothing behind.
        self.in_muster("delete", "--wait=false", "-f", "-", stdin=text)
        self.assertEqual(self.kubectl("get", "clusterroles,crds,validatingwebhookconfigurations", "-lapp.kubernetes.io/name=muster",
                                      "--output=name").stdout, "")

    def test_files_are_applied_by_kubectl_too(self):
        for word in ("created", "unchanged"):
            said = self.in_muster("apply", "-k", DEPLOY).stdout.splitlines()
            self.assertEqual({line.split()[-1] for line in said}, {word})

    def test_the_operator_has_only_the_permissions_it_needs(self):
        self.apply(self.install("--dry-run", "--no-webhook").stdout)
        expected = {}
        for group in ("kubeflow.org", "tensorflow.org"):
            expected[group, "tfjobs"] = {"get", "list", "watch", "patch", "delete"}
            expected[group, "tfjobs/status"] = {"get", "update", "patch"}
            expected[group, "tfjobs/finalizers"] = {"update"}
        for resource in ("pods", "services"):
            expected["", resource] = {"get", "list", "watch", "create", "patch", "delete"}
        expected["", "configmaps"] = {"get", "list", "watch", "create"}
        expected["", "events"] = {"create", "patch"}
        for group in ("scheduling.volcano.sh", "scheduling.x-k8s.io", "scheduling.sigs.k8s.io"):
            expected[group, "podgroups"] = {"get", "list", "watch", "create", "update", "patch", "delete"}
        wait_until(lambda: len(self.rules("default")) >= len(expected), "the roles are known")
        self.assertEqual(self.rules("default"), expected)
        expected["coordination.k8s.io", "leases"] = {"get", "create", "update"}
        self.assertEqual(self.rules("muster"), expected)
        for allowed, question in ((True, ["delete", "pods"]), (True, ["patch", "tfjobs.kubeflow.org", "--subresource=status"]), (False, ["get", "secrets"]),
                                  (False, ["delete", "nodes"]), (False, ["create", "pods", "--subresource=exec"]), (False, ["create", "leases"])):
            answer = self.kubectl("auth", "can-i", *question, f"--as={self.ACCOUNT}", check=False)
            self.assertEqual(answer.returncode == 0, allowed, question)

    def test_editors_of_a_namespace_may_have_jobs(self):
        self.apply(self.install("--dry-run", "--no-webhook").stdout)
        labels = self.kubectl.get("clusterrole", "muster-tfjobs-edit")["metadata"]["labels"]
        self.assertEqual(labels["rbac.authorization.k8s.io/aggregate-to-edit"], "true")
        # Without controllers the rules are not aggregated into `edit`, so the test checks the role itself.
        self.kubectl("create", "rolebinding", "ann", "--clusterrole=muster-tfjobs-edit", "--user=ann")
        ann = self.cluster.as_user(self.cluster.user("ann"))
        wait_until(lambda: ann("auth", "can-i", "create", "tfjobs.kubeflow.org", check=False).returncode == 0, "ann may have jobs")
        self.assertNotEqual(ann("auth", "can-i", "patch", "tfjobs.kubeflow.org", "--subresource=status", check=False).returncode, 0)

    def test_installing_twice_changes_nothing(self):
        first = self.install("--namespace=mine", "--image=r.example/muster:1").stdout.splitlines()
        self.assertIn("customresourcedefinition/tfjobs.kubeflow.org created", first)
        self.assertEqual(first[-1], "validatingwebhookconfiguration/muster-operator created")
        self.assertEqual({line.split()[-1] for line in first}, {"created"})
        again = self.install("--namespace=mine", "--image=r.example/muster:1").stdout.splitlines()
        self.assertEqual(again, [line.replace(" created", " unchanged") for line in first])
        newer = self.install("--namespace=mine", "--image=r.example/muster:2").stdout.splitlines()
        self.assertEqual([line for line in newer if not line.endswith(" unchanged")], ["deployment/muster-operator configured"])
        secret = self.kubectl.get("--namespace=mine", "secret", "muster-webhook")["data"]
        self.assertIn(b"BEGIN PRIVATE KEY", base64.b64decode(secret["tls.key"]))
        hook, = self.kubectl.get("validatingwebhookconfiguration", "muster-operator")["webhooks"]
        self.assertEqual(hook["clientConfig"]["caBundle"], secret["ca.crt"])
        self.assertEqual(hook["clientConfig"]["service"]["namespace"], "mine")
        self.assertEqual({(group, kind) for rule in hook["rules"] for group in rule["apiGroups"] for kind in rule["resources"]},
                         {("kubeflow.org", "tfjobs"), ("tensorflow.org", "tfjobs")})
        without = self.install("--namespace=mine", "--image=r.example/muster:2", "--no-webhook").stdout.splitlines()
        self.assertEqual([line for line in without if not line.endswith(" unchanged")],
                         ["validatingwebhookconfiguration/muster-operator deleted", "secret/muster-webhook deleted"])

    def test_objects_of_another_operator_are_not_adopted(self):
        definition = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "tfjobs.kubeflow.org"},
                      "spec": {"group": "kubeflow.org", "scope": "Namespaced",
                               "names": {"kind": "TFJob", "listKind": "TFJobList", "plural": "tfjobs", "singular": "tfjob"},
                               "versions": [{"name": "v1", "served": True, "storage": True,
                                             "schema": {"openAPIV3Schema": {"type": "object", "description": "another's",
                                                                            "x-kubernetes-preserve-unknown-fields": True}}}]}}
        self.kubectl("apply", "--server-side", "--field-manager=kubeflow", "-f", "-", stdin=json.dumps(definition))
        refused = self.install(check=False)
        self.assertEqual((refused.returncode, refused.stdout), (1, ""))
        self.assertIn("another TFJob operator", refused.stderr)
        self.assertIn("--force", refused.stderr)
        self.assertNotEqual(self.kubectl("get", "namespace", "muster", check=False).returncode, 0)
        self.assertIn("customresourcedefinition/tfjobs.kubeflow.org configured", self.install("--force").stdout)

    def test_definitions_come_first(self):
        refused = self.install("--namespaced", "-n", "default", check=False)
        self.assertEqual(refused.returncode, 1)
        self.assertIn("the cluster has no TFJob definition; an administrator installs it with `muster operator install --definitions-only`", refused.stderr)
        self.assertEqual(self.install("--definitions-only").stdout.splitlines(),
                         ["customresourcedefinition/tfjobs.kubeflow.org created", "customresourcedefinition/tfjobs.tensorflow.org created"])
        wait_until(lambda: self.install("--namespaced", "-n", "default", check=False).returncode == 0, "the definitions are known")

    def test_missing_permissions_are_named(self):
        self.env["KUBECONFIG"] = str(self.cluster.user("bob"))
        refused = self.install("--no-webhook", check=False)
        self.assertEqual(refused.returncode, 1)
        self.assertRegex(refused.stderr, "customresourcedefinitions")
        self.assertRegex(refused.stderr, "apiextensions.k8s.io")
        self.env["KUBECONFIG"] = str(self.cluster.kubeconfig)
        self.assertIn("'nowhere'", self.install("--context=nowhere", check=False).stderr)


class CommandTest(MusterTest):
    """Tests without a cluster."""

    def test_the_namespace_and_the_image_are_where_they_belong(self):
        text = self.muster("operator", "install", "--dry-run", "-n", "mine", "--image", "r.example/muster:1").stdout
        self.assertIn("kind: Namespace\nmetadata:\n  labels:\n    app.kubernetes.io/name: muster\n  name: mine\n", text)
        self.assertIn("image: r.example/muster:1\n", text)
        self.assertNotIn("namespace: muster\n", text)

    def test_the_certificate_is_new_each_time(self):
        texts = [self.muster("operator", "install", "--dry-run").stdout for _ in range(2)]
        keys = [text.split("tls.key:")[1].split("\n")[0] for text in texts]
        self.assertNotEqual(*keys)
        without = self.muster("operator", "install", "--dry-run", "--no-webhook").stdout
        for kind in ("Secret", "ValidatingWebhookConfiguration"):
            self.assertNotIn(f"kind: {kind}\n", without)

    def test_mistakes(self):
        for option in ("--namespace=Mine", "--namespace=a.b", "--image=a b"):
            refused = self.muster("operator", "install", "--dry-run", option, check=False)
            self.assertEqual((refused.returncode, refused.stdout), (2, ""), option)
            self.assertIn("expected", refused.stderr)
        self.env["KUBECONFIG"] = str(self.dir / "none")
        self.assertEqual(self.muster("operator", "install", check=False).returncode, 1)


class RenderedTest(MusterTest):
    """The output of `muster render`, validated by the API server."""

    def assert_accepted(self, name):
        cluster = SharedCluster(self)
        text = self.muster("render", RENDERED / f"{name}.job.yaml", "-n", cluster.namespace).stdout
        count = text.count("\nkind: ")
        for word in ("created", "unchanged"):
            said = cluster.kubectl("apply", "-f", "-", stdin=text).stdout.splitlines()
            self.assertEqual([line.split()[-1] for line in said], [word] * count)

    def test_command(self):
        self.assert_accepted("command")

    def test_train(self):
        self.assert_accepted("train")

    def test_tfjob(self):
        self.assert_accepted("tfjob")

    def test_cluster(self):
        self.assert_accepted("cluster")


if __name__ == "__main__":
    unittest.main()
