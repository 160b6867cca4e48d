"""A Kubernetes without nodes on loopback: etcd, kube-apiserver, kube-controller-manager and kube-scheduler."""
import json
import os
import pathlib
import secrets
import shutil
import signal
import ssl
import subprocess
import urllib.error
import urllib.request

from cluster.certificates import Authority, make_user, write_key, write_kubeconfig
from cluster.kubectl import Kubectl
from cluster.processes import Child, Folder, Ports, wait_until

_HERE = pathlib.Path(__file__).resolve().parent
_SERVICES = "10.96.0.0/16"


class Unavailable(Exception):
    """No cluster can run here; the message is the reason."""


def programs():
    """Returns the folder of the programs that `tests/cluster/build` has built. Raises Unavailable."""
    result = subprocess.run([_HERE / "build", "--check"], capture_output=True, text=True)
    if result.returncode != 0:
        raise Unavailable(result.stderr.strip())
    if shutil.which("openssl") is None:
        raise Unavailable("there is no openssl here; scripts/test installs it")
    return pathlib.Path(result.stdout.strip())


class Loopback:
    """The network of a cluster that has no nodes."""
    address = "127.0.0.1"
    enter = ()  # command prefix to run in it


class ControlPlane:
    """Ready after construction; the owner calls close(). Its processes end with the thread that created it at the latest.

    `controllers`: with the controller manager and the scheduler. Without, namespaces have no service accounts and nothing is
    garbage-collected.
    `manifests`: applied before the controller manager starts, which is slow to notice new kinds.
    `name`: that of the folder, see Folder.

    The contexts of its kubeconfig are `admin`, with a client certificate, and `token`: both have all permissions."""

    def __init__(self, controllers=True, manifests=(), name=""):
        self._bin = programs()
        self._controllers = controllers
        self._children = {}
        self._ports = Ports()
        self._folder = Folder(name)
        self.folder = self._folder.path
        self.kubeconfig = self.folder / "kubeconfig"
        self.kubectl = Kubectl(self._bin / "kubectl", self.kubeconfig)
        try:
            (self.folder / "logs").mkdir()
            self._network = self._make_network()
            self._start_etcd()
            self._write_files()
            self.start_server()
            for manifest in manifests:
                self.kubectl("apply", "-f", manifest)
            if controllers:
                self._start_controllers()
        except BaseException:
            self.close()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.close()

    def close(self):
        # Its data is discarded, so a graceful shutdown is not needed.
        for child in self._children.values():
            child.stop(signal.SIGKILL)
        self._ports.close()
        self._folder.close()

    @property
    def pids(self):
        """Returns the logs of its processes, by name."""
        return {name: child.pid for name, child in self._children.items() if not child.ended()}

    def as_user(self, kubeconfig):
        """Returns a kubectl with the user of another kubeconfig."""
        return Kubectl(self._bin / "kubectl", kubeconfig)

    def user(self, name, groups=(), expired=False):
        """Returns the kubeconfig of a user without permissions until a role is bound to the name or to one of the groups."""
        return make_user(self.folder, self.url, name, groups, expired)

    def stop_server(self, number=signal.SIGTERM):
        """Stops kube-apiserver; etcd keeps the data."""
        self._children.pop("kube-apiserver").stop(number)

    def start_server(self):
        """Starts kube-apiserver at the same address. Returns when it responds."""
        certificates = self.folder / "certificates"
        server = self._start("kube-apiserver", self._bin / "kube-apiserver",
                             f"--etcd-servers={self._etcd}", f"--bind-address={self._network.address}",
                             f"--secure-port={self._port}", f"--advertise-address={self._network.address}",
                             f"--tls-cert-file={certificates / 'server.crt'}",
                             f"--tls-private-key-file={certificates / 'server.key'}",
                             f"--client-ca-file={self.authority.certificate}", f"--token-auth-file={self.folder / 'tokens.csv'}",
                             f"--requestheader-client-ca-file={self.proxy_authority.certificate}",
                             "--requestheader-username-headers=X-Remote-User", "--requestheader-group-headers=X-Remote-Group",
                             "--authorization-mode=Node,RBAC", "--service-account-issuer=https://kubernetes.default.svc",
                             f"--service-account-key-file={self.folder / 'accounts.key'}",
                             f"--service-account-signing-key-file={self.folder / 'accounts.key'}",
                             f"--service-cluster-ip-range={_SERVICES}", "--profiling=false",
                             *([] if self._controllers else ["--disable-admission-plugins=ServiceAccount"]), *self._server_flags())
        wait_until(lambda: self._answers("/readyz"), "kube-apiserver is ready", [server])

    def compact(self):
        """Compacts etcd: paged lists in progress and watches of old versions end with 410."""
        def ask(path, body):
            request = urllib.request.Request(f"{self._etcd}/v3/{path}", json.dumps(body).encode())
            with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=30) as answer:
                return json.load(answer)
        revision = ask("kv/range", {"key": "AA=="})["header"]["revision"]
        ask("kv/compaction", {"revision": revision, "physical": True})

    def _make_network(self):
        return Loopback()

    def _server_flags(self):
        """Returns additional arguments of kube-apiserver."""
        return ["--endpoint-reconciler-type=none"]

    def _write_files(self):
        certificates = self.folder / "certificates"
        (self.folder / "kubectl").symlink_to(self._bin / "kubectl")
        self._port = self._ports.take()
        self.url = f"https://{self._network.address}:{self._port}"
        self.authority = Authority(certificates)
        # The authority of clients that may impersonate others; see proxy.
        self.proxy_authority = Authority(self.folder / "proxy-certificates")
        self.authority.issue("server", "/CN=kube-apiserver",
                             [f"IP:{self._network.address}", "IP:10.96.0.1", "DNS:localhost", "DNS:kubernetes.default.svc"])
        write_key(self.folder / "accounts.key")
        token = secrets.token_hex(16)
        (self.folder / "tokens.csv").write_text(f'{token},admin,admin,"system:masters"\n')
        certificate, key = self.authority.issue("admin", "/O=system:masters/CN=admin")
        write_kubeconfig(self.kubeconfig, self.url, self.authority.certificate,
                         {"admin": {"client-certificate": certificate, "client-key": key}, "token": {"token": token}})
        self._tls = ssl.create_default_context(cafile=self.authority.certificate)
        self._tls.load_cert_chain(certificate, key)

    def _start(self, name, *command):
        child = Child(name, [*self._network.enter, *command], self.folder / "logs" / f"{name}.log", self._environment())
        self._children[name] = child
        return child

    @staticmethod
    def _environment():
        return {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy") and name != "KUBECONFIG"}

    def _start_etcd(self):
        client, peer = (f"http://{self._network.address}:{self._ports.take()}" for _ in range(2))
        self._etcd = client
        self._start("etcd", self._bin / "etcd", "--name=etcd", f"--data-dir={self.folder / 'etcd'}", f"--listen-client-urls={client}",
                    f"--advertise-client-urls={client}", f"--listen-peer-urls={peer}", f"--initial-advertise-peer-urls={peer}",
                    f"--initial-cluster=etcd={peer}")

    def _start_controllers(self):
        for name in ("kube-controller-manager", "kube-scheduler"):
            certificate, key = self.authority.issue(name, f"/O=system:masters/CN=system:{name}")
            kubeconfig = write_kubeconfig(self.folder / f"{name}.kubeconfig", self.url, self.authority.certificate,
                                          {name: {"client-certificate": certificate, "client-key": key}})
            own = [f"--service-account-private-key-file={self.folder / 'accounts.key'}",
                   f"--root-ca-file={self.authority.certificate}"]
            self._start(name, self._bin / name, f"--kubeconfig={kubeconfig}", "--bind-address=127.0.0.1",
                        f"--secure-port={self._ports.take()}", "--port=0", "--leader-elect=false",
                        *(own if name == "kube-controller-manager" else []))
        wait_until(lambda: self._answers("/api/v1/namespaces/default/serviceaccounts/default"), "namespaces have service accounts",
                   self._children.values())

    def _answers(self, path):
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=self._tls))
        try:
            with opener.open(self.url + path, timeout=5) as answer:
                return answer.status == 200
        except (urllib.error.URLError, OSError):
            return False
