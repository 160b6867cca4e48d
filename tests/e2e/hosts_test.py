"""The hosts that tests run jobs on (tests/hosts.py), checked with plain ssh."""
import os
import pathlib
import signal
import socket
import subprocess
import tempfile
import time
import unittest

from hosts import CLIENT, HostBed, own_hosts, reason_not_available
from support import PYTHON, SOURCE, is_alive, wait_until


def sleeping(bed, host):
    """Returns the pid, in this machine's namespace, of a process that an SSH session leaves running on the host."""
    subprocess.run([*bed.ssh, host, "setsid sleep 1000 >/dev/null 2>&1 & exit 0"], check=True)
    # Waits until it has been executed and the session has ended.
    found = wait_until(lambda: (running := bed.processes(host)) and list(running.values()) == [["sleep", "1000"]] and running, "it sleeps there")
    return next(iter(found))


class HostsTest(unittest.TestCase):
    def ssh(self, bed, host, command, *options, timeout=30):
        return subprocess.run([*bed.ssh, "-o", "BatchMode=yes", *options, host, command], capture_output=True, text=True, timeout=timeout,
                              stdin=subprocess.DEVNULL)

    def said(self, bed, host, command, *options):
        done = self.ssh(bed, host, command, *options)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout.strip()

    def test_hosts_have_names_addresses_homes_and_processes_of_their_own(self):
        bed = own_hosts(self, 3)
        self.assertEqual(bed.hosts, ["host1", "host2", "host3"])
        self.assertEqual([self.said(bed, host, "hostname") for host in bed.hosts], bed.hosts)
        self.assertEqual(self.said(bed, bed.address("host2"), "hostname"), "host2")
        for host in bed.hosts:
            self.said(bed, host, f"mkdir -p ~/.cache && echo {host} >~/.cache/name && echo {host} >/tmp/name")
        self.assertEqual([self.said(bed, host, "cat ~/.cache/name /tmp/name") for host in bed.hosts], [f"{host}\n{host}" for host in bed.hosts])
        self.assertEqual(bed.path("host3", "~/.cache/name").read_text(), "host3\n")
        self.assertFalse(pathlib.Path("~/.cache/name").expanduser().exists())
        self.assertEqual(len({self.said(bed, host, "cat /proc/sys/kernel/random/boot_id") for host in bed.hosts}), 3)
        # Hosts reach each other; they do not have the built programs.
        self.assertEqual(self.said(bed, "host1", "getent hosts host3").split(), [bed.address("host3"), "host3"])
        self.assertEqual(self.said(bed, "host1", f"ls -A {SOURCE}"), "")
        sleeping(bed, "host2")
        wait_until(lambda: not bed.processes("host1"), "what was run there has ended")
        self.assertEqual(bed.run("host1", ["hostname"]).stdout, "host1\n")

    def test_a_link_that_is_cut_and_restored(self):
        bed = own_hosts(self, 2)
        bed.cut("host1")
        done = self.ssh(bed, "host1", "true", "-o", "ConnectTimeout=1")
        self.assertEqual(done.returncode, 255)
        self.assertRegex(done.stderr, "timed out|No route to host")
        self.said(bed, "host2", "true")
        bed.mend("host1")
        self.said(bed, "host1", "true")

    def test_a_connection_outlives_a_short_cut(self):
        bed = own_hosts(self, 1)
        session = subprocess.Popen([*bed.ssh, "host1", "read line; echo got $line"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.addCleanup(session.stdout.close)
        wait_until(lambda: bed.processes("host1"), "the session is there")
        bed.cut("host1")
        session.stdin.write("it\n")
        session.stdin.close()
        with self.assertRaises(subprocess.TimeoutExpired):
            session.wait(0.5)
        bed.mend("host1")
        self.assertEqual((session.wait(60), session.stdout.read()), (0, "got it\n"))

    def test_latency(self):
        bed = own_hosts(self, 2)

        def round_trip(host):
            times = []
            for _ in range(5):
                begun = time.monotonic()
                socket.create_connection((bed.address(host), 22)).close()
                times.append(time.monotonic() - begun)
            return sorted(times)[2]

        round_trip("host1")
        bed.latency("host1", 200)
        self.assertGreater(round_trip("host1"), 0.2)
        self.assertLess(round_trip("host2"), 0.2)
        # Large packets arrive complete.
        self.assertEqual(self.said(bed, "host1", "head -c 300000 /dev/zero | tr '\\0' x | tee ~/sent | sha256sum"),
                         self.said(bed, "host1", "sha256sum <~/sent"))
        self.assertEqual(len(self.said(bed, "host1", "cat ~/sent")), 300000)
        bed.latency("host1", 20)
        self.assertLess(round_trip("host1"), 0.2)
        bed.cut("host1")
        self.assertEqual(self.ssh(bed, "host1", "true", "-o", "ConnectTimeout=1").returncode, 255)
        bed.mend("host1")
        self.said(bed, "host1", "true")
        bed.latency("host1", 0)
        self.said(bed, "host1", "true")
        bed.switch_off("host1")
        bed.switch_on("host1")
        bed.latency("host1", 20)
        self.assertEqual(len(self.said(bed, "host1", "cat ~/sent")), 300000)

    def test_a_changed_host_key_is_rejected(self):
        bed = own_hosts(self, 1)
        self.said(bed, "host1", "true")
        bed.change_host_key("host1")
        done = self.ssh(bed, "host1", "true")
        self.assertEqual(done.returncode, 255)
        self.assertIn("REMOTE HOST IDENTIFICATION HAS CHANGED", done.stderr)

    def test_a_host_that_wants_a_password(self):
        bed = own_hosts(self, 1)
        bed.configure_sshd("host1", "PubkeyAuthentication no", "PasswordAuthentication yes")
        done = self.ssh(bed, "host1", "true")
        self.assertEqual(done.returncode, 255)
        self.assertIn("Permission denied (password)", done.stderr)

    def test_sshd_is_killed_and_started(self):
        bed = own_hosts(self, 1)
        session = subprocess.Popen([*bed.ssh, "host1", "sleep 1000"], stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wait_until(lambda: bed.processes("host1"), "the session is there")
        bed.kill_sshd("host1", sessions=False)
        self.assertIn("Connection refused", self.ssh(bed, "host1", "true").stderr)
        self.assertIsNone(session.poll())
        bed.kill_sshd("host1")
        self.assertEqual(session.wait(30), 255)
        bed.start_sshd("host1")
        self.said(bed, "host1", "true")

    def test_a_firewall_between_two_hosts(self):
        bed = own_hosts(self, 3)
        server = "import socket,time; s=socket.create_server(('', 5000)); print('up', flush=True); time.sleep(1000)"
        serving = subprocess.Popen([*bed.ssh, "host2", "exec python3 -"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.addCleanup(serving.wait)
        self.addCleanup(serving.kill)
        self.addCleanup(serving.stdout.close)
        serving.stdin.write(server)
        serving.stdin.close()
        self.assertEqual(serving.stdout.readline(), "up\n")
        connect = f"timeout 2 bash -c '</dev/tcp/{bed.address('host2')}/5000'"
        self.said(bed, "host1", connect)
        bed.block("host1", "host2", 4000, 6000)
        self.assertEqual(self.ssh(bed, "host1", connect).returncode, 124)
        self.said(bed, "host3", connect)
        self.said(bed, "host2", "true")
        bed.unblock("host1", "host2", 4000, 6000)
        bed.block("host1", "host2", 5000, reject=True)
        self.assertIn("refused", self.ssh(bed, "host1", connect).stderr)
        bed.block(CLIENT, "host3", 22)
        self.assertEqual(self.ssh(bed, "host3", "true", "-o", "ConnectTimeout=1").returncode, 255)

    def test_a_full_disk(self):
        bed = own_hosts(self, 2)
        bed.fill_disk("host1", free=100000)
        done = self.ssh(bed, "host1", "head -c 1000000 /dev/zero >~/large")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("No space left on device", done.stderr)
        self.said(bed, "host2", "head -c 1000000 /dev/zero >~/large")
        bed.empty_disk("host1")
        self.said(bed, "host1", "head -c 1000000 /dev/zero >~/large")

    def test_a_shared_folder(self):
        with tempfile.TemporaryDirectory(dir=pathlib.Path.home()) as home, tempfile.TemporaryDirectory() as other:
            bed = own_hosts(self, 2, share=[home, other])
            for folder in (home, other):
                self.said(bed, "host1", f"echo shared >{folder}/file")
                self.assertEqual(self.said(bed, "host2", f"cat {folder}/file"), "shared")
                self.assertEqual(pathlib.Path(folder, "file").read_text(), "shared\n")
            bed.close()

    def test_a_host_is_switched_off_and_on(self):
        bed = own_hosts(self, 2)
        before = self.said(bed, "host1", "echo kept >~/file; cat /proc/sys/kernel/random/boot_id")
        sleeper = sleeping(bed, "host1")
        bed.switch_off("host1")
        self.assertFalse(is_alive(sleeper))
        self.assertEqual(self.ssh(bed, "host1", "true", "-o", "ConnectTimeout=1").returncode, 255)
        bed.switch_on("host1")
        self.assertEqual(bed.processes("host1"), {})
        self.assertEqual(self.said(bed, "host1", "cat ~/file"), "kept")
        self.assertNotEqual(self.said(bed, "host1", "cat /proc/sys/kernel/random/boot_id"), before)

    @unittest.skipIf(reason_not_available(), reason_not_available())
    def test_two_concurrent_beds_are_isolated(self):
        script = "import sys, hosts, subprocess\nwith hosts.HostBed(1) as bed:\n subprocess.run([*bed.ssh, 'host1', 'touch ~/mine'], check=True)\n" \
                 " print('up', flush=True)\n sys.stdin.read()\n"
        other = subprocess.Popen([PYTHON, "-B", "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.addCleanup(other.wait)
        self.addCleanup(other.stdin.close)
        self.addCleanup(other.stdout.close)
        bed = own_hosts(self, 1)
        self.assertEqual(other.stdout.readline(), "up\n")
        self.assertEqual(self.said(bed, "host1", "ls -A"), "")

    @unittest.skipIf(reason_not_available(), reason_not_available())
    def test_nothing_is_left_of_a_test_that_is_killed(self):
        script = "import sys, hosts, hosts_test\nbed = hosts.HostBed(2).__enter__()\nbed.latency('host1', 20)\n" \
                 "print(bed.folder, hosts_test.sleeping(bed, 'host2'), *map(bed.pid, bed.hosts), flush=True)\nsys.stdin.read()\n"
        victim = subprocess.Popen([PYTHON, "-B", "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.addCleanup(victim.stdin.close)
        self.addCleanup(victim.stdout.close)
        folder, *pids = victim.stdout.readline().split()
        self.assertEqual(len(pids), 3)
        self.assertTrue(all(is_alive(pid) for pid in pids))
        victim.send_signal(signal.SIGKILL)
        victim.wait()
        wait_until(lambda: not any(is_alive(pid) for pid in pids), "the hosts are gone")
        wait_until(lambda: not self.mentioning(folder), "what served them is gone")
        with HostBed(1):
            self.assertFalse(os.path.exists(folder))

    @staticmethod
    def mentioning(text):
        """Returns the processes whose command line contains the text."""
        found = []
        for folder in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                if text.encode() in (folder / "cmdline").read_bytes():
                    found.append(folder.name)
            except OSError:
                pass
        return found


if __name__ == "__main__":
    unittest.main()
