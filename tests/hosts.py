"""Hosts for tests: several machines on this one, each with an address, a home, processes and a real sshd of its own.

    with HostBed(3) as bed:
        subprocess.run([*bed.ssh, "host1", "hostname"])

The hosts are namespaces on a bridge (tests/host_init). The thread that makes a bed moves into its network with all that it starts, so
that `ssh`, or muster with MUSTER_SSH in its environment, reaches the hosts and nothing else; the addresses of one bed do not meet those of another.
Everything ends with the process that made it, however that comes about: the kernel sees to it. Files that a killed one leaves are removed by
the next.
"""
import collections
import contextlib
import ctypes
import fcntl
import json
import os
import pathlib
import pwd
import select
import shlex
import shutil
import signal
import socket
import struct
import subprocess
import sys
import time

from cluster.processes import Child, Folder, start_time, wait_until
from support import MUSTER, PYTHON, SOURCE

CLIENT = "client"  # the machine of the test, where a host is named

_HERE = pathlib.Path(__file__).resolve().parent
_SSHD = "/usr/sbin/sshd"  # it starts itself again, so by its whole path
_PROGRAMS = ("ssh", "ssh-keygen", "ip", "iptables", "unshare", "nsenter", "mount")
_CLONE_NEWNET = 0x40000000
_libc = ctypes.CDLL(None, use_errno=True)

_SSHD_CONFIG = """\
Port 22
HostKey /run/host/host_key
PidFile /run/sshd.pid
AuthorizedKeysFile /run/host/authorized_keys
StrictModes no
UsePAM no
UseDNS no
PermitRootLogin yes
PasswordAuthentication no
KbdInteractiveAuthentication no
PrintMotd no
LogLevel VERBOSE
Subsystem sftp /usr/lib/openssh/sftp-server
"""

# The default key exchange takes half a second of CPU time on slow processors.
_SSH_CONFIG = """\
Host *
  User {user}
  IdentityFile {folder}/key
  IdentitiesOnly yes
  IdentityAgent none
  UserKnownHostsFile {folder}/known_hosts
  GlobalKnownHostsFile /dev/null
  StrictHostKeyChecking yes
  KexAlgorithms curve25519-sha256
"""


def reason_not_available():
    """Returns why hosts cannot run here, or ""."""
    if os.getuid() != 0:
        return "hosts need root: network namespaces, and sshd"
    path = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"
    missing = [name for name in (_SSHD, *_PROGRAMS) if shutil.which(name, path=path) is None]
    if missing:
        return f"hosts need {', '.join(missing)}"
    probe = "ip link add name b type bridge && ip link add v type veth peer name w && mount -t tmpfs tmpfs /tmp"
    tried = subprocess.run(["unshare", "--net", "--mount", "--pid", "--uts", "--fork", "--mount-proc", "sh", "-c", probe],
                           capture_output=True, text=True)
    return "" if tried.returncode == 0 else f"no namespaces for hosts: {tried.stderr.strip()}"


def own_hosts(test, count, **options):
    """Returns a HostBed for the duration of the test. Skips the test if hosts cannot run here."""
    reason = reason_not_available()
    if reason:
        test.skipTest(reason)
    bed = HostBed(count, **options)
    test.addCleanup(bed.close)
    return bed.__enter__()


def _run(*command):
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"{shlex.join(map(str, command))}: {done.stderr.strip()}")
    return done.stdout


def _call(function, *arguments):
    """Calls a C library function that returns 0 on success."""
    if function(*arguments) != 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))


@contextlib.contextmanager
def _network_of(pid):
    """Moves this thread into the network namespace of another process for the duration of the block."""
    with open("/proc/thread-self/ns/net") as here, open(f"/proc/{pid}/ns/net") as there:
        _call(_libc.setns, there.fileno(), _CLONE_NEWNET)
        try:
            yield
        finally:
            _call(_libc.setns, here.fileno(), _CLONE_NEWNET)


def _send_whole_frames(interface):
    """Disables offloading, so that packets have the size and the checksums that they have on a wire."""
    ethtool, tx_checksums, tcp_segments, segments = 0x8946, 0x17, 0x1F, 0x24  # offloads to disable
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as handle:
        for setting in (tx_checksums, tcp_segments, segments):
            value = ctypes.create_string_buffer(struct.pack("II", setting, 0))
            fcntl.ioctl(handle, ethtool, struct.pack("16sP16x", interface.encode(), ctypes.addressof(value)))


def _details(interface):
    return json.loads(_run("ip", "-json", "-details", "link", "show", interface))[0]


def _wait_until_up(interface):
    """Waits until the kernel reports both ends as up. Packets that are sent earlier are lost."""
    wait_until(lambda: _details(interface)["operstate"] == "UP", f"{interface} is up")


def _plug_in(port):
    """Adds an interface, whose other end is up, to the bridge."""
    _run("ip", "link", "set", port, "master", "bridge", "up")
    wait_until(lambda: _details(port)["linkinfo"]["info_slave_data"]["state"] == "forwarding", f"{port} carries packets")


class _Host:
    """The state of one host of a bed. The host's end of its link is eth0; the other end is named after the host's number."""

    def __init__(self, number, folder):
        self.number = number
        self.name = f"host{number}"
        self.address = f"10.77.0.{10 + number}"
        self.port = f"port{number}"  # of the bridge
        self.folder = folder
        self.init = None
        self.first = 0  # its first process
        self.relay = None

    @property
    def enter(self):
        return ["nsenter", f"--target={self.first}", "--net", "--mount", "--pid", "--uts", f"--wd={_home()}"]


def _home():
    return pwd.getpwuid(os.getuid()).pw_dir


class HostBed:
    """`count` hosts (200 at most), host1 and so on. `size` is the size of each home. `hide`: folders of this machine that hosts do not have; the folders
    of the sources and the built programs are always hidden. `share`: folders of this machine that all hosts have."""

    def __init__(self, count, size="1g", hide=(), share=()):
        self._count = count
        self._size = size
        built = pathlib.Path(MUSTER).resolve().parent
        self._hide = [str(SOURCE), *([] if built.is_relative_to(SOURCE) or str(built).startswith("/usr") else [str(built)]), *hide]
        self._share = [os.path.realpath(folder) for folder in share]
        self._hosts = {}
        self._folder = None
        self._outside = None

    def __enter__(self):
        self._folder = Folder()
        self._outside = open("/proc/thread-self/ns/net")
        try:
            _call(_libc.unshare, _CLONE_NEWNET)
            self._make_network()
            self._make_files()
            for host in self._hosts.values():
                self._boot(host)
            for host in self._hosts.values():
                self._connect(host)
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        if self._folder is None:
            return
        for host in self._hosts.values():
            if host.init:
                host.init.stop(signal.SIGKILL)
        for host in self._hosts.values():
            self._halt(host)
        _call(_libc.setns, self._outside.fileno(), _CLONE_NEWNET)
        self._outside.close()
        self._folder.close()
        self._folder = None

    # Operations of tests.

    @property
    def hosts(self):
        return list(self._hosts)

    @property
    def folder(self):
        """Returns the path of one of the client's files: ssh_config, known_hosts, key."""
        return self._folder.path

    @property
    def ssh(self):
        """Returns the ssh command line that resolves the hosts' names and addresses."""
        return ["ssh", "-F", str(self.folder / "ssh_config")]

    @property
    def environment(self):
        """Returns the environment variables with which a program reaches the hosts."""
        return {"MUSTER_SSH": shlex.join(self.ssh)}

    def pid(self, host):
        """Returns the pid of its first process in this machine's pid namespace."""
        return self._hosts[host].first

    def address(self, host):
        return "10.77.0.1" if host == CLIENT else self._hosts[host].address

    def run(self, host, argv, check=True, **options):
        """Runs a command on the host without sshd. Returns the result with its output."""
        environment = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": _home(), "LANG": "C.UTF-8"}
        return subprocess.run([*self._hosts[host].enter, *map(str, argv)], check=check, capture_output=True, text=True,
                              **{"env": environment, **options})

    def path(self, host, path="~"):
        """Returns the path of a host's file in this process's view."""
        return pathlib.Path(f"/proc/{self._hosts[host].first}/root", os.path.join(_home(), path.replace("~", _home(), 1)).lstrip("/"))

    def processes(self, host):
        """Returns the host's processes, {pid here: argv}, without sshd and those of the host itself."""
        first = self._hosts[host].first
        namespace = os.stat(f"/proc/{first}/ns/pid").st_ino
        found = {}
        for folder in pathlib.Path("/proc").glob("[0-9]*"):
            pid = int(folder.name)
            with contextlib.suppress(OSError):
                if os.stat(folder / "ns/pid").st_ino != namespace or pid == first:
                    continue
                words = (folder / "cmdline").read_bytes().decode(errors="replace").split("\0")[:-1]
                if words and not words[0].startswith(("sshd:", _SSHD)) and words != ["sleep", "infinity"]:
                    found[pid] = words
        return found

    def log(self, host):
        """Returns the log of its sshd."""
        return (self._hosts[host].folder / "sshd.log").read_text(errors="replace")

    # The link.

    def cut(self, host):
        """Cuts the link: packets are dropped silently."""
        _run("ip", "link", "set", self._hosts[host].port, "down")

    def mend(self, host):
        host = self._hosts[host]
        if host.relay:
            _run("ip", "link", "set", host.port, "up")
            _wait_until_up(host.port)
        else:
            _plug_in(host.port)
        with _network_of(host.first):
            _wait_until_up("eth0")

    def latency(self, host, milliseconds):
        """Adds to the round-trip time of packets, until the host is switched off."""
        host = self._hosts[host]
        if host.relay:
            host.relay.stop(signal.SIGKILL)
            host.relay = None
        qdisc = ["tc", "qdisc", "replace", "dev", host.port, "root", "netem", "delay", f"{milliseconds}ms"]
        if subprocess.run(qdisc, capture_output=True).returncode == 0:
            return
        # A kernel without netem: a process forwards the packets.
        way = f"way{host.number}"
        if subprocess.run(["ip", "link", "show", way], capture_output=True).returncode != 0:
            _run("ip", "link", "add", way, "type", "veth", "peer", "name", f"{way}b")
            _run("ip", "link", "set", way, "up")
            _plug_in(f"{way}b")
            _wait_until_up(way)
            _send_whole_frames(f"{way}b")
        if milliseconds == 0:
            _plug_in(host.port)
            return
        with _network_of(host.first):
            _send_whole_frames("eth0")
        _run("ip", "link", "set", host.port, "nomaster")
        log = host.folder / "relay.log"
        log.unlink(missing_ok=True)
        host.relay = Child("relay", [PYTHON, "-B", __file__, host.port, way, milliseconds / 2000], log,
                           env={**os.environ, "PYTHONPATH": str(_HERE)})
        wait_until(lambda: log.exists() and "ready" in log.read_text(), "the relay is ready", [host.relay])

    def limit(self, host, rate):
        """Limits the bandwidth towards the host ("1gbit"; "": no limit), until it is switched off."""
        port = self._hosts[host].port
        if rate:
            _run("tc", "qdisc", "replace", "dev", port, "root", "tbf", "rate", rate, "burst", "1mb", "latency", "50ms")
        else:
            _run("tc", "qdisc", "del", "dev", port, "root")

    def block(self, source, host, first_port, last_port=None, reject=False):
        """Adds a firewall rule on `host` that drops, or rejects, packets of `source` (a host, or CLIENT) to these TCP ports."""
        self._firewall("-I", source, host, first_port, last_port, reject)

    def unblock(self, source, host, first_port, last_port=None, reject=False):
        self._firewall("-D", source, host, first_port, last_port, reject)

    # The host itself.

    def kill_sshd(self, host, sessions=True):
        """Stops its sshd; with `sessions`, also its open connections, as a network restart does."""
        entered = self._hosts[host].enter
        pid = self.path(host, "/run/sshd.pid")
        with contextlib.suppress(FileNotFoundError):
            number = pid.read_text().strip()
            subprocess.run([*entered, "kill", "-KILL", number], capture_output=True)
            pid.unlink()
            # It holds its port until it has exited, and the next one could not listen.
            wait_until(lambda: not self.path(host, f"/proc/{number}").exists(), "sshd is gone")
        if sessions:
            subprocess.run([*entered, "pkill", "-KILL", "-x", "sshd"], capture_output=True)

    def start_sshd(self, host):
        host = self._hosts[host]
        _run(*host.enter, "env", "-i", "PATH=/usr/bin:/bin", _SSHD, "-f", "/run/host/sshd_config", "-E", "/run/host/sshd.log")
        wait_until((pathlib.Path(f"/proc/{host.first}/root/run/sshd.pid")).exists, "sshd listens", [host.init])

    def configure_sshd(self, host, *lines):
        """Starts its sshd again, with lines that override its configuration. Connections stay open."""
        (self._hosts[host].folder / "sshd_config").write_text("\n".join([*lines, _SSHD_CONFIG]))
        self.kill_sshd(host, sessions=False)
        self.start_sshd(host)

    def change_host_key(self, host):
        """Replaces its host key, as if another machine had its address."""
        self._make_host_key(self._hosts[host])
        self.kill_sshd(host, sessions=False)
        self.start_sshd(host)

    def fill_disk(self, host, free=0):
        """Fills its home up to `free` bytes."""
        used = os.statvfs(self.path(host))
        pages = used.f_blocks - used.f_bfree + (free + used.f_frsize - 1) // used.f_frsize
        self._resize_home(host, max(pages, 1) * used.f_frsize)

    def empty_disk(self, host):
        """Undoes fill_disk()."""
        self._resize_home(host, self._size)

    def switch_off(self, host):
        """Kills all of its processes immediately, without closing connections. Its home is kept for switch_on()."""
        host = self._hosts[host]
        _run("ip", "link", "set", host.port, "down")
        subprocess.run([*host.enter, "kill", "-KILL", "--", "-1"], capture_output=True)
        saved = host.folder / "home"
        shutil.rmtree(saved, ignore_errors=True)
        _run("cp", "-ax", f"/proc/{host.first}/root{_home()}", saved)
        self._halt(host)

    def switch_on(self, host):
        """Starts the host again after switch_off(), with another boot id."""
        host = self._hosts[host]
        self._boot(host)
        self._connect(host)

    # Setup.

    def _make_network(self):
        _run("ip", "link", "set", "lo", "up")
        _run("ip", "link", "add", "bridge", "type", "bridge", "forward_delay", "0")
        _run("ip", "addr", "add", f"{self.address(CLIENT)}/24", "dev", "bridge")
        _run("ip", "link", "set", "bridge", "up")

    def _make_files(self):
        for number in range(1, self._count + 1):
            folder = self.folder / f"host{number}"
            (folder / "home").mkdir(parents=True)
            host = _Host(number, folder)
            self._hosts[host.name] = host
        _run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", self.folder / "key")
        names = [("127.0.0.1", "localhost"), ("10.77.0.1", CLIENT), *((host.address, host.name) for host in self._hosts.values())]
        known, config = [], []
        for host in self._hosts.values():
            key = self._make_host_key(host)
            known.append(f"{host.name},{host.address} {key}")
            config.append(f"Host {host.name}\n  HostName {host.address}\n")
            shutil.copy(self.folder / "key.pub", host.folder / "authorized_keys")
            (host.folder / "sshd_config").write_text(_SSHD_CONFIG)
            (host.folder / "hosts").write_text("".join(f"{address} {name}\n" for address, name in names))
        (self.folder / "known_hosts").write_text("\n".join(known) + "\n")
        config.append(_SSH_CONFIG.format(folder=self.folder, user=pwd.getpwuid(os.getuid()).pw_name))
        (self.folder / "ssh_config").write_text("".join(config))

    @staticmethod
    def _make_host_key(host):
        """Creates a key pair and returns the public key."""
        key = host.folder / "host_key"
        key.unlink(missing_ok=True)
        _run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", host.name, "-f", key)
        return key.with_suffix(".pub").read_text().strip()

    def _boot(self, host):
        (host.folder / "started").unlink(missing_ok=True)
        host.init = Child(host.name, ["unshare", "--net", "--mount", "--pid", "--uts", "--ipc", "--fork", "--kill-child", "--mount-proc",
                                      _HERE / "host_init", host.folder, host.name, _home(), self._size, *self._hide, "--", *self._share],
                          host.folder / "init.log")

    def _connect(self, host):
        wait_until((host.folder / "started").exists, f"{host.name} is up", [host.init])
        host.first = int(pathlib.Path(f"/proc/{host.init.pid}/task/{host.init.pid}/children").read_text().split()[0])
        _run("ip", "link", "add", host.port, "type", "veth", "peer", "name", "eth0", "netns", host.init.pid)
        with _network_of(host.init.pid):
            # The same after each start, since clients store it.
            _run("ip", "link", "set", "eth0", "address", f"02:00:00:00:00:{host.number:02x}")
            _run("ip", "addr", "add", f"{host.address}/24", "dev", "eth0")
            _run("ip", "link", "set", "eth0", "up")
        self.mend(host.name)
        self.start_sshd(host.name)

    @staticmethod
    def _halt(host):
        if host.init is None:
            return
        if host.relay:
            host.relay.stop(signal.SIGKILL)
            host.relay = None
        host.init.stop(signal.SIGKILL)
        # The first process of the namespaces must end last.
        wait_until(lambda: not host.first or start_time(host.first) is None, f"everything on {host.name} has ended")
        host.init = None
        # The kernel would remove it with the host's network, but later.
        subprocess.run(["ip", "link", "delete", host.port], capture_output=True)

    def _firewall(self, action, source, host, first_port, last_port, reject):
        with _network_of(self._hosts[host].first):
            _run("iptables", "--wait", action, "INPUT", "-p", "tcp", "-s", self.address(source), "--dport",
                 f"{first_port}:{last_port or first_port}", "-j", "REJECT" if reject else "DROP")

    def _resize_home(self, host, size):
        _run(*self._hosts[host].enter, "mount", "-o", f"remount,size={size}", _home())


def _relay(first, second, delay):
    """Forwards packets between two interfaces with a delay."""
    everything = 3  # ETH_P_ALL; set by bind(), else the socket would receive packets of other interfaces
    ends = [socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0) for _ in range(2)]
    waiting = [collections.deque(), collections.deque()]  # by destination
    for end, interface in zip(ends, (first, second)):
        end.bind((interface, everything))
        index = socket.if_nametoindex(interface)
        end.setsockopt(263, 1, struct.pack("iHH8s", index, 1, 0, b""))  # SOL_PACKET, PACKET_ADD_MEMBERSHIP: promiscuous
    print("ready", flush=True)
    while True:
        due = min((queue[0][0] for queue in waiting if queue), default=None)
        readable, _, _ = select.select(ends, [], [], None if due is None else max(0.0, due - time.monotonic()))
        for end in readable:
            with contextlib.suppress(OSError):  # the link is cut
                frame, source = end.recvfrom(65536)
                if source[2] != socket.PACKET_OUTGOING:
                    waiting[1 - ends.index(end)].append((time.monotonic() + delay, frame))
        for end, queue in zip(ends, waiting):
            while queue and queue[0][0] <= time.monotonic():
                with contextlib.suppress(OSError):
                    end.send(queue.popleft()[1])


if __name__ == "__main__":
    _relay(sys.argv[1], sys.argv[2], float(sys.argv[3]))
