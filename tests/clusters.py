"""Kubernetes for tests: the real one, without nodes, made by tests/cluster/build. Tests are skipped where it cannot be."""
import pathlib
import re
import subprocess
import uuid

from cluster.certificates import make_user
from cluster.control_plane import ControlPlane, Unavailable, programs
from cluster.kubectl import Kubectl
from support import SOURCE

_UNAVAILABLE = 77  # see tests/cluster/up


def require_programs(test):
    """Skips the test where there can be no cluster."""
    try:
        programs()
    except Unavailable as reason:
        test.skipTest(str(reason))


def own_cluster(test, **options):
    """A ControlPlane that only this test has, for those who stop its parts or need all of it."""
    require_programs(test)
    cluster = ControlPlane(**options)
    test.addCleanup(cluster.close)
    return cluster


class SharedCluster:
    """The cluster that all tests of a ctest share, and a namespace of it for this test alone."""

    def __init__(self, test):
        result = subprocess.run([SOURCE / "tests" / "cluster" / "up", "--shared"], capture_output=True, text=True)
        if result.returncode == _UNAVAILABLE:
            test.skipTest(result.stderr.strip())
        test.assertEqual(result.returncode, 0, result.stderr)
        self.kubeconfig = pathlib.Path(result.stdout.strip().partition("=")[2])
        self.namespace = f"test-{uuid.uuid4().hex[:12]}"
        self.kubectl = self.as_user(self.kubeconfig)
        self.kubectl("create", "namespace", self.namespace)
        test.addCleanup(self.kubectl, "delete", "namespace", self.namespace, "--wait=false")

    def as_user(self, kubeconfig):
        """kubectl in the test's namespace for the owner of a kubeconfig."""
        return Kubectl(self.kubeconfig.with_name("kubectl"), kubeconfig, self.namespace)

    def user(self, name, groups=(), expired=False):
        """See make_user; the name is made unique."""
        server = re.search(r"server: (\S+)", self.kubeconfig.read_text()).group(1)
        return make_user(self.kubeconfig.parent, server, f"{name}-{self.namespace}", groups, expired)
