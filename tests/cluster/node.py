"""A cluster with a node that runs real containers: containerd, kubelet, kube-proxy and DNS.

All of it lives in namespaces of its own for processes, mounts and the network. The machine keeps its settings, its mounts and its
rules for packets, and when the first process of the namespaces ends the kernel ends everything in them: containers too, which no
parent could."""
import contextlib
import json
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile

from cluster import images
from cluster.certificates import write_kubeconfig
from cluster.control_plane import ControlPlane, Unavailable
from cluster.processes import Child, Folder, start_time, wait_until

_HERE = pathlib.Path(__file__).resolve().parent
_NAME = "node"
_PODS = "10.244.0.0/24"
_CGROUPS = pathlib.Path("/sys/fs/cgroup")
_CGROUP_PREFIX = "muster-test-"
_CONTROLLERS = {"cpu", "memory", "pids"}  # required to start a container
TOOLS_IMAGE = "test.muster/tools:1"
_PAUSE_IMAGE = "test.muster/pause:1"


def check():
    """Raises Unavailable if no node can run here."""
    if os.geteuid() != 0:
        raise Unavailable("a node with containers needs root")
    for tool in ("unshare", "nsenter", "ip", "iptables"):
        if shutil.which(tool, path=_path()) is None:
            raise Unavailable(f"there is no {tool} here; scripts/test installs it")
    tried = subprocess.run(["unshare", "--mount", "--pid", "--net", "--fork", "--mount-proc", "sh", "-c",
                            "mount -t tmpfs tmpfs /run && iptables --table nat --list >/run/rules"],
                           env=dict(os.environ, PATH=_path()), capture_output=True, text=True)
    if tried.returncode != 0:
        raise Unavailable(f"namespaces, mounts or rules for packets are not permitted here: {tried.stderr.strip()}")
    if not _hierarchies():
        raise Unavailable("no cgroups can be made here")


def _path():
    return f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"


def _is_unified():
    """Returns whether only version 2 of cgroups is mounted."""
    return (_CGROUPS / "cgroup.controllers").exists()


def _hierarchies():
    """Returns the cgroup mount points: one folder, or one per controller on older systems."""
    if _is_unified():
        roots = [_CGROUPS]
    else:
        roots = [path for path in _CGROUPS.glob("*") if (path / "cgroup.procs").exists() and not path.is_symlink()]
    return [root for root in roots if os.access(root, os.W_OK)]


def _pass_on_controllers(cgroup):
    """Enables the controllers of this cgroup for its children (version 2)."""
    for controller in (cgroup / "cgroup.controllers").read_text().split():
        with contextlib.suppress(OSError):
            (cgroup / "cgroup.subtree_control").write_text(f"+{controller}")


def _remove_cgroup(path):
    for folder, _, _ in os.walk(path, topdown=False):
        with contextlib.suppress(OSError):
            os.rmdir(folder)


def clean():
    """Removes the cgroups of killed owners. The next Folder removes their folders."""
    for root in _hierarchies():
        for old in root.glob(f"{_CGROUP_PREFIX}*"):
            if not Folder.is_owned(pathlib.Path(tempfile.gettempdir(), old.name[len(_CGROUP_PREFIX):])):
                _remove_cgroup(old)


class Network:
    """The namespaces of a node, and a link between them and the machine. Addresses are of the range reserved for benchmarking
    networks (198.18.0.0/15)."""

    def __init__(self, folder):
        folder.mkdir()
        self._first = 0
        self._init = Child("node_init", ["unshare", "--mount", "--pid", "--net", "--ipc", "--fork", "--kill-child", "--mount-proc",
                                         _HERE / "node_init", folder], folder / "init.log")
        try:
            wait_until((folder / "started").exists, "the node's namespaces are there", [self._init])
            self._first = int(pathlib.Path(f"/proc/{self._init.pid}/task/{self._init.pid}/children").read_text().split()[0])
            self._connect()
        except BaseException:
            self.close()
            raise

    def close(self):
        self._init.stop(signal.SIGKILL)
        # The first process of the namespaces must end last.
        wait_until(lambda: not self._first or start_time(self._first) is None, "everything on the node has ended")

    @property
    def enter(self):
        """Returns the command prefix to run in its network."""
        return ["nsenter", f"--net=/proc/{self._init.pid}/ns/net"]

    @property
    def enter_all(self):
        """Returns the command prefix to run in all its namespaces."""
        return ["nsenter", f"--target={self._first}", "--net", "--mount", "--pid", "--ipc"]

    def _connect(self):
        for number in range(256):
            wire = f"muster{number}"
            made = subprocess.run(["ip", "link", "add", wire, "type", "veth", "peer", "name", "eth0", "netns", str(self._init.pid)],
                                  capture_output=True, text=True)
            if made.returncode == 0:
                break
            if "File exists" not in made.stderr:
                raise Unavailable(f"no network for the node: {made.stderr.strip()}")
        self.machine, self.address = f"198.18.{number}.1", f"198.18.{number}.2"
        for command in (["ip", "addr", "add", f"{self.machine}/24", "dev", wire], ["ip", "link", "set", wire, "up"],
                        [*self.enter, "ip", "addr", "add", f"{self.address}/24", "dev", "eth0"],
                        [*self.enter, "ip", "link", "set", "eth0", "up"],
                        [*self.enter, "ip", "route", "add", "default", "via", self.machine]):
            subprocess.run(command, check=True, capture_output=True)


class NodeCluster(ControlPlane):
    """A ControlPlane with one node. `machine` is the address by which pods reach this machine."""

    def __init__(self, manifests=(), name=""):
        check()
        self._network = None
        self._cgroup = ""
        super().__init__(manifests=manifests, name=name)
        try:
            self._start_node()
        except BaseException as error:
            self.close()
            if _is_unified() and isinstance(error, RuntimeError):
                raise Unavailable(f"the kubelet, which is older than most cgroups of version 2, does not start here: {error}") from error
            raise

    def close(self):
        if self._network:
            self._network.close()
        super().close()
        for root in _hierarchies() if self._cgroup else ():
            _remove_cgroup(root / self._cgroup)

    @property
    def machine(self):
        return self._network.machine

    def load(self, archive):
        """Loads an image into the node from an archive of `docker save` or images.make()."""
        done = subprocess.run([*self._network.enter_all, self._bin / "ctr", f"--address={self._socket}", "--namespace=k8s.io",
                               "images", "import", archive], capture_output=True, text=True)
        if done.returncode != 0:
            raise RuntimeError(f"the image {archive} cannot be loaded: {done.stderr}")

    def load_programs(self, name, programs):
        """Loads an image `name` of programs of this machine, {path in the image: file}, with their libraries and the tools, into the node."""
        self.load_files([name], images.files_of(programs))

    def load_files(self, names, files):
        """Loads an image of these names into the node: files of this machine, {path in the image: file}, and the tools."""
        self.load(images.make(self._images, names[0], {**images.tools(), **files}, also=names[1:]))

    @property
    def _images(self):
        return self._bin.parent.parent / "images"

    def _make_network(self):
        self._make_cgroup()
        return Network(self.folder / "node")

    def _server_flags(self):
        certificates = self.folder / "certificates"
        return ["--allow-privileged=true", f"--kubelet-certificate-authority={self.authority.certificate}",
                f"--kubelet-client-certificate={certificates / 'admin.crt'}", f"--kubelet-client-key={certificates / 'admin.key'}",
                "--kubelet-preferred-address-types=InternalIP"]

    def _start_node(self):
        self._node = self.folder / "node"
        self._socket = self._node / "containerd.sock"
        self._write_node_files()
        inside = self._network.enter_all
        containerd = self._start("containerd", *inside, "env", f"PATH={self._bin}:{_path()}", self._bin / "containerd",
                                 f"--config={self._node / 'containerd.toml'}")
        self._start("dns", "/usr/bin/python3", "-B", _HERE / "dns.py", self.url, self.folder / "certificates",
                    self._network.address)
        self._start("kube-proxy", *inside, "env", f"PATH={_path()}", self._bin / "kube-proxy",
                    f"--config={self._node / 'proxy.json'}")
        wait_until(self._socket.exists, "containerd listens", [containerd])
        self.load(images.make(self._images, _PAUSE_IMAGE, {"pause": self._bin / "pause"}, ["/pause"], root=False))
        self.load(images.make(self._images, TOOLS_IMAGE, images.tools()))
        self._start("kubelet", *inside, "env", f"PATH={_path()}", "AWS_EC2_METADATA_DISABLED=true", self._bin / "kubelet",
                    f"--config={self._node / 'kubelet.json'}", f"--kubeconfig={self._kubeconfig_of('kubelet')}",
                    f"--hostname-override={_NAME}", f"--node-ip={self._network.address}", f"--root-dir={self._node / 'kubelet'}",
                    "--container-runtime=remote", f"--container-runtime-endpoint=unix://{self._socket}",
                    f"--volume-plugin-dir={self._node / 'plugins'}")
        wait_until(self._is_ready, "the node is ready", self._children.values(), timeout=90)

    def _is_ready(self):
        said = self.kubectl("get", "node", _NAME, "--output=jsonpath={.status.conditions[?(@.type=='Ready')].status}", check=False)
        return said.stdout == "True"

    def _make_cgroup(self):
        clean()
        self._cgroup = _CGROUP_PREFIX + self.folder.name
        for root in _hierarchies():
            (root / self._cgroup).mkdir()
            if _is_unified():
                _pass_on_controllers(root)
                _pass_on_controllers(root / self._cgroup)
                missing = _CONTROLLERS - set((root / self._cgroup / "cgroup.subtree_control").read_text().split())
                if missing:
                    raise Unavailable(f"cgroups here cannot have {', '.join(sorted(missing))}")

    def _kubeconfig_of(self, name):
        return self.folder / f"{name}.kubeconfig"

    def _identify(self, name, subject, hosts=()):
        certificate, key = self.authority.issue(name, subject, hosts)
        write_kubeconfig(self._kubeconfig_of(name), self.url, self.authority.certificate,
                         {name: {"client-certificate": certificate, "client-key": key}})
        return certificate, key

    def _write_node_files(self):
        address = self._network.address
        certificate, key = self._identify("kubelet", f"/O=system:nodes/CN=system:node:{_NAME}", [f"IP:{address}", f"DNS:{_NAME}"])
        self._identify("kube-proxy", "/CN=system:kube-proxy")
        (self._node / "resolv.conf").touch()
        self._write_json("kubelet.json", {
            "apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration", "address": address, "readOnlyPort": 0,
            "authentication": {"anonymous": {"enabled": False}, "webhook": {"enabled": True},
                               "x509": {"clientCAFile": str(self.authority.certificate)}},
            "authorization": {"mode": "Webhook"}, "tlsCertFile": str(certificate), "tlsPrivateKeyFile": str(key),
            "cgroupDriver": "cgroupfs", "cgroupRoot": f"/{self._cgroup}", "failSwapOn": False, "oomScoreAdj": 0,
            "nodeStatusUpdateFrequency": "1s", "clusterDomain": "cluster.local", "clusterDNS": [address],
            "resolvConf": str(self._node / "resolv.conf"), "imageGCHighThresholdPercent": 100, "imageGCLowThresholdPercent": 99,
            "evictionHard": {"memory.available": "100Mi", "nodefs.available": "1%", "imagefs.available": "1%"}})
        self._write_json("proxy.json", {
            "apiVersion": "kubeproxy.config.k8s.io/v1alpha1", "kind": "KubeProxyConfiguration", "bindAddress": address,
            "metricsBindAddress": "127.0.0.1:10249", "healthzBindAddress": "127.0.0.1:10256", "hostnameOverride": _NAME,
            "mode": "iptables",
            "clientConnection": {"kubeconfig": str(self._kubeconfig_of("kube-proxy"))}, "clusterCIDR": _PODS, "oomScoreAdj": 0,
            # Zero: keep the machine's settings.
            "conntrack": {"maxPerCore": 0, "min": 0, "tcpCloseWaitTimeout": "0s", "tcpEstablishedTimeout": "0s"}})
        (self._node / "cni").mkdir()
        # Pods are connected by routes, not by a bridge, so that the rules for services apply to every packet.
        self._write_json("cni/pods.conflist", {"cniVersion": "0.3.1", "name": "pods", "plugins": [
            {"type": "ptp", "ipMasq": True, "ipam": {"type": "host-local", "dataDir": str(self._node / "addresses"),
                                                     "ranges": [[{"subnet": _PODS}]], "routes": [{"dst": "0.0.0.0/0"}]}},
            {"type": "portmap", "capabilities": {"portMappings": True}}]})
        self._write_containerd_settings()

    def _write_json(self, name, value):
        (self._node / name).write_text(json.dumps(value, indent=1))

    def _write_containerd_settings(self):
        kind = subprocess.run(["stat", "--file-system", "--format=%T", self._node], capture_output=True, text=True).stdout
        # An overlay cannot be mounted on another one.
        snapshotter = "native" if kind.strip() == "overlayfs" else "overlayfs"
        cri = 'plugins."io.containerd.grpc.v1.cri"'
        (self._node / "containerd.toml").write_text("\n".join([
            "version = 2", f'root = "{self._node / "containerd"}"', 'state = "/run/containerd-state"',
            "[grpc]", f'address = "{self._socket}"',
            f"[{cri}]", f'sandbox_image = "{_PAUSE_IMAGE}"', "restrict_oom_score_adj = true", "disable_apparmor = true",
            f"[{cri}.cni]", f'bin_dir = "{self._bin / "cni"}"', f'conf_dir = "{self._node / "cni"}"',
            f"[{cri}.containerd]", f'snapshotter = "{snapshotter}"',
            f"[{cri}.containerd.runtimes.runc]", 'runtime_type = "io.containerd.runc.v2"']) + "\n")


