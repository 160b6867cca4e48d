"""The node of our tests' Kubernetes: real containers, real DNS names, and no changes left on the machine."""
import os
import pathlib
import signal
import subprocess
import sys
import unittest

from cluster.control_plane import Unavailable
from cluster.node import TOOLS_IMAGE, NodeCluster, check, clean
from cluster.processes import Folder
from clusters import own_node, require_programs
from support import MUSTER, SOURCE, is_alive, kill, wait_until


def pod(name, script, image=TOOLS_IMAGE, memory="500Mi", **spec):
    """Returns a pod that runs a shell script."""
    container = {"name": "tensorflow", "image": image, "command": ["sh", "-c", script], "resources": {"limits": {"memory": memory}},
                 "securityContext": {"runAsUser": 1000, "runAsNonRoot": True, "readOnlyRootFilesystem": True,
                                     "allowPrivilegeEscalation": False}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": {"name": name}},
            "spec": {"restartPolicy": "Never", "terminationGracePeriodSeconds": 1, "containers": [container], **spec}}


def service(name, headless):
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name},
            "spec": {"selector": {"name": "server"}, "ports": [{"port": 2222}], **({"clusterIP": "None"} if headless else {})}}


def machine():
    """Returns the machine's state that a node could change."""
    settings = ["vm/overcommit_memory", "kernel/panic", "kernel/panic_on_oops", "kernel/keys/root_maxkeys", "net/ipv4/ip_forward"]
    return {"settings": [pathlib.Path("/proc/sys", name).read_text() for name in settings],
            "mounts": [line for line in pathlib.Path("/proc/self/mounts").read_text().splitlines() if "cluster" in line],
            "rules": subprocess.run(["iptables-save", "--table", "nat"], capture_output=True, text=True).stdout.count("KUBE")}


class NodeTest(unittest.TestCase):
    def wait_phase(self, cluster, name, phase):
        def current():
            found = cluster.kubectl.get("pod", name)["status"]
            self.assertFalse(found["phase"] == "Failed" and phase != "Failed", cluster.kubectl("logs", name, check=False).stdout)
            return found if found["phase"] == phase else None
        return wait_until(current, f"{name} is {phase}", 60)

    def test_pods_run_and_find_each_other(self):
        cluster = own_node(self)
        server = pod("server", "sleep 1000", hostname="one", subdomain="many")
        client = pod("client", "echo begun; until getent ahostsv4 many; do sleep 0.1; done; getent ahostsv4 one.many; "
                               "getent ahostsv4 single; getent ahostsv4 none; echo none $?; id -u; touch /file || echo read-only")
        cluster.kubectl.apply(service("many", headless=True), service("single", headless=False), server, client)
        self.wait_phase(cluster, "client", "Succeeded")
        address = cluster.kubectl.get("pod", "server")["status"]["podIP"]
        lines = cluster.kubectl("logs", "client").stdout.splitlines()
        self.assertEqual(lines[0], "begun")
        found = [line.split()[0] for line in lines if "STREAM" in line]
        self.assertEqual(found, [address, address, cluster.kubectl.get("service", "single")["spec"]["clusterIP"]])
        self.assertEqual([line for line in lines if line in ("none 2", "1000", "read-only")], ["none 2", "1000", "read-only"])
        self.assertEqual(cluster.kubectl("exec", "server", "--", "hostname").stdout, "one\n")

    def test_exit_codes_and_our_own_programs(self):
        cluster = own_node(self)
        cluster.load_programs("test.muster/muster:1", {"usr/local/bin/muster": MUSTER})
        cluster.kubectl.apply(pod("version", "muster --version", "test.muster/muster:1"), pod("fails", "exit 138"),
                              pod("greedy", "x=0123456789; while :; do x=$x$x; done", memory="32Mi"))
        self.wait_phase(cluster, "version", "Succeeded")
        said = subprocess.run([MUSTER, "--version"], capture_output=True, text=True, check=True).stdout
        self.assertEqual(cluster.kubectl("logs", "version").stdout, said)
        for name, code, reason in (("fails", 138, "Error"), ("greedy", 137, "OOMKilled")):
            ended = self.wait_phase(cluster, name, "Failed")["containerStatuses"][0]["state"]["terminated"]
            self.assertEqual((ended["exitCode"], ended["reason"]), (code, reason))

    def test_a_node_leaves_the_machine_unchanged(self):
        require_programs(self)
        try:
            check()
        except Unavailable as reason:
            self.skipTest(str(reason))
        before = machine()
        owner = subprocess.Popen([sys.executable, "-B", __file__, "--hold"], stdout=subprocess.PIPE, text=True,
                                 env=dict(os.environ, PYTHONPATH=str(SOURCE / "tests")))
        self.addCleanup(owner.communicate)
        self.addCleanup(owner.kill)
        mark, *children = owner.stdout.readline().split()
        self.assertTrue(children)
        self.assertEqual(machine(), before)
        kill(owner.pid)
        wait_until(lambda: not any(map(is_alive, map(int, children))), "its processes are gone", 20)
        wait_until(lambda: not containers_of(mark), "its containers are gone", 20)
        clean()
        Folder().close()
        self.assertEqual(list(pathlib.Path("/sys/fs/cgroup").glob(f"**/*{mark}*")), [])
        self.assertEqual(machine(), before)


def containers_of(mark):
    """Returns the pids of processes in cgroups with the marker."""
    found = []
    for process in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if mark in (process / "cgroup").read_text() and is_alive(int(process.name)):
                found.append(int(process.name))
        except OSError:
            continue
    return found


def hold():
    """Runs a cluster with a running container until it is killed."""
    cluster = NodeCluster()
    cluster.kubectl.apply(pod("server", "sleep 1000"))
    wait_until(lambda: cluster.kubectl.get("pod", "server")["status"]["phase"] == "Running", "the container runs")
    print(cluster.folder.name, *cluster.pids.values(), *containers_of(cluster.folder.name), flush=True)
    signal.pause()


if __name__ == "__main__":
    if sys.argv[1:] == ["--hold"]:
        hold()
    unittest.main()
