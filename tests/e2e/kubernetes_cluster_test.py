"""The Kubernetes of our tests: it is a real one, and no process of it outlives its owner."""
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import unittest

from cluster.processes import Folder
from clusters import SharedCluster, own_cluster, require_programs
from support import SOURCE, is_alive, kill, wait_until

UP = SOURCE / "tests" / "cluster" / "up"
KINDS = {
    "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "songs.test.muster"},
    "spec": {"group": "test.muster", "scope": "Namespaced", "names": {"kind": "Song", "plural": "songs", "singular": "song"},
             "versions": [{"name": "v1", "served": True, "storage": True, "subresources": {"status": {}},
                           "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                               "spec": {"type": "object", "properties": {"verses": {"type": "integer", "minimum": 1}}},
                               "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}}}}]}}


def song(name, verses):
    return {"apiVersion": "test.muster/v1", "kind": "Song", "metadata": {"name": name}, "spec": {"verses": verses}}


def settings(name, **data):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def pod(name, owner=None):
    references = [] if owner is None else [{"apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": owner["metadata"]["name"],
                                            "uid": owner["metadata"]["uid"], "controller": True}]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "ownerReferences": references},
            "spec": {"containers": [{"name": "tensorflow", "image": "none"}]}}


def children_of(pid):
    return [int(child) for child in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


class SharedClusterTest(unittest.TestCase):
    """Operations of the shared cluster."""

    def setUp(self):
        self.cluster = SharedCluster(self)
        self.kubectl = self.cluster.kubectl

    def test_objects_are_applied_and_found(self):
        self.assertEqual(self.kubectl.raw("/version")["gitVersion"][:6], "v1.20.")
        self.assertIn("configmap/first created", self.kubectl.apply(settings("first", answer="42")))
        self.assertIn("configmap/first configured", self.kubectl.apply(settings("first", answer="43")))
        self.assertEqual(self.kubectl.get("configmap", "first")["data"], {"answer": "43"})
        self.assertEqual(self.kubectl.get("configmaps", "--context=token", "first")["data"], {"answer": "43"})

    def test_objects_of_an_owner_are_collected(self):
        self.kubectl.apply(settings("owner"))
        self.kubectl.apply(pod("child", self.kubectl.get("configmap", "owner")))
        self.kubectl("delete", "configmap", "owner")
        wait_until(lambda: self.kubectl("get", "pod", "child", check=False).returncode, "the pod is collected")

    def test_objects_of_a_custom_resource_are_collected(self):
        with tempfile.NamedTemporaryFile("w", suffix=".json") as kinds:
            json.dump(KINDS, kinds)
            kinds.flush()
            kubectl = SharedCluster(self, [kinds.name]).kubectl
        kubectl.apply(song("owner", 1))
        kubectl.apply(pod("child", kubectl.get("song", "owner")))
        kubectl("delete", "song", "owner")
        wait_until(lambda: kubectl("get", "pod", "child", check=False).returncode, "the pod is collected")

    def test_all_callers_get_the_same_cluster(self):
        answers = [subprocess.run([UP, "--shared"], capture_output=True, text=True, check=True).stdout for _ in range(2)]
        self.assertEqual(answers, [f"export KUBECONFIG={self.cluster.kubeconfig}\n"] * 2)


class OwnClusterTest(unittest.TestCase):
    """Operations of a test's own cluster."""

    def test_custom_resources_and_permissions(self):
        cluster = own_cluster(self, controllers=False)
        cluster.kubectl.apply(KINDS)
        cluster.kubectl("wait", "--for=condition=Established", "crd/songs.test.muster")
        wait_until(lambda: cluster.kubectl("get", "songs", check=False).returncode == 0, "songs are served")
        cluster.kubectl.apply(song("short", 1))
        self.assertEqual(cluster.kubectl.get("song", "short")["spec"], {"verses": 1})
        with self.assertRaisesRegex(RuntimeError, "spec.verses in body should be greater than or equal to 1"):
            cluster.kubectl.apply(song("empty", 0))

        bob = cluster.as_user(cluster.user("bob", groups=["singers"]))
        refused = bob("get", "songs", check=False)
        self.assertIn('User "bob" cannot list resource "songs" in API group "test.muster" in the namespace "default"', refused.stderr)
        cluster.kubectl("create", "role", "listener", "--verb=get,list", "--resource=songs.test.muster")
        cluster.kubectl("create", "rolebinding", "listeners", "--role=listener", "--group=singers")
        wait_until(lambda: bob("get", "song", "short", check=False).returncode == 0, "bob may read")
        self.assertNotEqual(bob("delete", "song", "short", check=False).returncode, 0)

        late = cluster.as_user(cluster.user("late", groups=["system:masters"], expired=True))
        self.assertIn("You must be logged in", late("get", "songs", check=False).stderr)

    def test_a_restarted_server_keeps_its_objects(self):
        cluster = own_cluster(self, controllers=False)
        cluster.kubectl.apply(settings("kept", answer="42"))
        cluster.stop_server(signal.SIGKILL)
        self.assertNotEqual(cluster.kubectl("get", "configmaps", check=False).returncode, 0)
        cluster.start_server()
        self.assertEqual(cluster.kubectl.get("configmap", "kept")["data"], {"answer": "42"})

    def test_old_resource_versions_can_be_compacted(self):
        cluster = own_cluster(self, controllers=False)
        cluster.kubectl.apply(*(settings(f"page-{i}") for i in range(3)))
        page = cluster.kubectl.raw("/api/v1/namespaces/default/configmaps?limit=1")
        cluster.kubectl.apply(settings("page-3"))
        cluster.compact()
        rest = f"/api/v1/namespaces/default/configmaps?limit=1&continue={page['metadata']['continue']}"
        expired = cluster.kubectl("get", f"--raw={rest}", check=False)
        self.assertIn("expired", expired.stderr.lower())

    def test_two_clusters_are_isolated(self):
        first, second = (own_cluster(self, controllers=False) for _ in range(2))
        first.kubectl.apply(settings("mine"))
        self.assertNotEqual(second.kubectl("get", "configmap", "mine", check=False).returncode, 0)


class UpTest(unittest.TestCase):
    """tests/cluster/up leaves nothing behind."""

    def start(self, *arguments, **options):
        """Starts `up`. Returns it, its kubeconfig and its children."""
        server = subprocess.Popen([UP, "--no-controllers", *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                  **options)
        self.addCleanup(server.stdout.close)
        self.addCleanup(server.stderr.close)
        self.addCleanup(server.wait)
        self.addCleanup(server.kill)
        line = server.stdout.readline()
        if not line and server.wait() == 77:
            self.skipTest(server.stderr.read().strip())
        self.assertRegex(line, "^export KUBECONFIG=/")
        children = children_of(server.pid)
        self.assertEqual(len(children), 2)
        return server, pathlib.Path(line.strip().partition("=")[2]), children

    def assert_gone(self, children):
        wait_until(lambda: not any(map(is_alive, children)), "its processes are gone", 20)

    def test_it_ends_with_its_input(self):
        server, kubeconfig, children = self.start("--stdin", stdin=subprocess.PIPE)
        server.stdin.write("stop\n")
        server.stdin.flush()
        self.assertEqual(server.stdout.readline(), "done\n")
        self.assertEqual(sum(map(is_alive, children)), 1)
        server.stdin.write("start\n")
        server.stdin.flush()
        self.assertEqual(server.stdout.readline(), "done\n")
        children = children_of(server.pid)
        server.stdin.close()
        self.assertEqual(server.wait(20), 0)
        self.assert_gone(children)
        self.assertFalse(kubeconfig.parent.exists())

    def test_it_ends_with_a_signal(self):
        server, kubeconfig, children = self.start()
        server.terminate()
        self.assertEqual(server.wait(20), 130)
        self.assert_gone(children)
        self.assertFalse(kubeconfig.parent.exists())

    def test_its_processes_end_when_it_is_killed(self):
        server, kubeconfig, children = self.start()
        server.kill()
        server.wait()
        self.assert_gone(children)
        # The next start cleans up.
        Folder().close()
        self.assertFalse(kubeconfig.parent.exists())

    def test_it_ends_when_its_owner_is_killed(self):
        owner = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(1000)"])
        self.addCleanup(owner.wait)
        self.addCleanup(owner.kill)
        server, kubeconfig, children = self.start(f"--owner={owner.pid}")
        owner.kill()
        self.assertEqual(server.wait(20), 0)
        self.assert_gone(children)
        self.assertFalse(kubeconfig.parent.exists())

    def test_the_cluster_of_a_killed_test_ends(self):
        require_programs(self)
        script = ("import clusters, time; cluster = clusters.ControlPlane(controllers=False); "
                  "print(*cluster.pids.values(), flush=True); time.sleep(1000)")
        test = subprocess.Popen([sys.executable, "-B", "-c", script], stdout=subprocess.PIPE, text=True,
                                env=dict(os.environ, PYTHONPATH=str(SOURCE / "tests")))
        self.addCleanup(test.communicate)
        self.addCleanup(test.kill)
        children = list(map(int, test.stdout.readline().split()))
        self.assertEqual(len(children), 2)
        kill(test.pid)
        self.assert_gone(children)
        Folder().close()

    def test_it_runs_a_command(self):
        require_programs(self)
        result = subprocess.run([UP, "--no-controllers", "sh", "-c", "kubectl create configmap made && exit 3"],
                                capture_output=True, text=True, timeout=120)
        self.assertEqual((result.returncode, result.stdout), (3, "configmap/made created\n"), result.stderr)


if __name__ == "__main__":
    unittest.main()
