"""Kubernetes for tests: the real one, built by tests/cluster/build. Tests are skipped if it cannot run."""
import base64
import contextlib
import http.client
import json
import pathlib
import re
import ssl
import subprocess
import urllib.parse
import uuid

from cluster.certificates import make_user
from cluster.control_plane import ControlPlane, Unavailable, programs
from cluster.kubectl import Kubectl
from cluster.node import NodeCluster
from support import SOURCE

_UNAVAILABLE = 77  # see tests/cluster/up


def require_programs(test):
    """Skips the test if no cluster can run here."""
    try:
        programs()
    except Unavailable as reason:
        test.skipTest(str(reason))


def own_cluster(test, **options):
    """Returns a ControlPlane of this test's own, for tests that stop its parts or use all of it."""
    require_programs(test)
    cluster = ControlPlane(**options)
    test.addCleanup(cluster.close)
    return cluster


def own_node(test):
    """Returns a NodeCluster of this test's own, whose node runs containers."""
    require_programs(test)
    try:
        cluster = NodeCluster()
    except Unavailable as reason:
        test.skipTest(str(reason))
    test.addCleanup(cluster.close)
    return cluster


class SharedCluster:
    """The cluster that all tests of a ctest run share, and a namespace of this test's own in it. `manifests`: files that are applied before
    its controllers start, which are slow to discover new kinds; tests with the same manifests share a cluster."""

    def __init__(self, test, manifests=()):
        command = [SOURCE / "tests" / "cluster" / "up", "--shared"] + [f"--manifest={path}" for path in manifests]
        result = subprocess.run(command, capture_output=True, text=True)
        if result.returncode == _UNAVAILABLE:
            test.skipTest(result.stderr.strip())
        test.assertEqual(result.returncode, 0, result.stderr)
        self.kubeconfig = pathlib.Path(result.stdout.strip().partition("=")[2])
        self.namespace = f"test-{uuid.uuid4().hex[:12]}"
        self.kubectl = self.as_user(self.kubeconfig)
        self.kubectl("create", "namespace", self.namespace)
        test.addCleanup(self.kubectl, "delete", "namespace", self.namespace, "--wait=false")

    def as_user(self, kubeconfig):
        """Returns a kubectl for the test's namespace with the user of a kubeconfig."""
        return Kubectl(self.kubeconfig.with_name("kubectl"), kubeconfig, self.namespace)

    def user(self, name, groups=(), expired=False):
        """As make_user, with a unique name."""
        server = re.search(r"server: (\S+)", self.kubeconfig.read_text()).group(1)
        return make_user(self.kubeconfig.parent, server, f"{name}-{self.namespace}", groups, expired)


class FaultProxy:
    """Runs tests/cluster/proxy during a test, between the API server and the user of a kubeconfig."""

    def __init__(self, test, kubeconfig):
        process = subprocess.Popen([SOURCE / "tests" / "cluster" / "proxy", kubeconfig], stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, text=True)
        test.addCleanup(process.stdout.close)
        test.addCleanup(process.wait)
        test.addCleanup(process.kill)
        self.kubeconfig = pathlib.Path(process.stdout.readline().strip().partition("=")[2])
        kubectl = Kubectl(kubeconfig.with_name("kubectl"), self.kubeconfig)
        self._read(json.loads(kubectl("config", "view", "--raw", "--minify", "--output=json").stdout))

    def _read(self, settings):
        cluster, user = settings["clusters"][0]["cluster"], settings["users"][0]["user"]
        self._server = urllib.parse.urlsplit(cluster["server"])
        self._tls = ssl.create_default_context(cadata=base64.b64decode(cluster["certificate-authority-data"]).decode())
        files = []
        for name in ("client-certificate", "client-key"):
            if name not in user:
                path = self.kubeconfig.with_name(name)
                path.write_bytes(base64.b64decode(user[f"{name}-data"]))
            files.append(user.get(name) or path)
        self._tls.load_cert_chain(*files)

    @contextlib.contextmanager
    def open(self, method, path, value=None, headers=None, timeout=30):
        """Sends one request as the kubeconfig's user and returns the open response."""
        connection = http.client.HTTPSConnection(self._server.hostname, self._server.port, timeout=timeout, context=self._tls)
        with contextlib.closing(connection):
            body = None if value is None else json.dumps(value)
            connection.request(method, path, body, {"Content-Type": "application/json", **(headers or {})})
            yield connection.getresponse()

    def ask(self, *request, **options):
        """Returns the status and the content of the response."""
        with self.open(*request, **options) as answer:
            return answer.status, json.load(answer)

    def fail(self, *faults):
        """Sets the faults to inject from now on."""
        status, answer = self.ask("POST", "/-/faults", list(faults))
        if status != 200:
            raise AssertionError(answer["message"])

    def log(self):
        """Returns the requests since the last call."""
        return self.ask("GET", "/-/log")[1]
