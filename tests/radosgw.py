#!/usr/bin/env python3
"""Ceph's S3 gateway with a cluster of one monitor and one store in memory, on loopback: prints its port, and ends with the process that
started it.

usage: tests/radosgw.py FOLDER

One user, whose access key is MUSTER and whose secret key is hunter2, and a bucket `bucket`.
"""
import ctypes
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
import uuid

PROGRAMS = ("ceph", "ceph-authtool", "ceph-mon", "ceph-osd", "monmaptool", "radosgw", "radosgw-admin", "curl")
ACCESS_KEY, SECRET_KEY = "MUSTER", "hunter2"
PATIENCE = 120
PR_SET_PDEATHSIG = 1


def missing():
    """Returns the programs that are missing; they are in Debian's radosgw, ceph-mon and ceph-osd."""
    return [program for program in PROGRAMS if shutil.which(program) is None]


def die_with_parent():
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


class Gateway:
    def __init__(self, folder):
        self.folder = folder.absolute()
        self.folder.mkdir(parents=True, exist_ok=True)
        self.conf = self.folder / "ceph.conf"
        self.monitor, self.port = free_port(), free_port()
        self.deadline = time.monotonic() + PATIENCE

    def configure(self, fsid):
        self.conf.write_text(f"""
[global]
fsid = {fsid}
mon host = [v2:127.0.0.1:{self.monitor}/0]
ms bind msgr1 = false
public addr = 127.0.0.1
keyring = {self.folder}/keyring
osd objectstore = memstore
memstore device bytes = 4294967296
osd pool default size = 1
osd pool default min size = 1
osd pool default pg num = 4
osd crush chooseleaf type = 0
mon allow pool size one = true
mon data avail crit = 0
mon data avail warn = 0
run dir = {self.folder}
admin socket =
pid file =
log file = {self.folder}/$name.log
mon data = {self.folder}/mon
osd data = {self.folder}/osd
rgw data = {self.folder}/rgw
rgw frontends = beast endpoint=127.0.0.1:{self.port}
rgw enable usage log = false
rgw enable gc threads = false
rgw enable lc threads = false
""")
        for name in ("mon", "osd", "rgw"):
            (self.folder / name).mkdir()

    def run(self, *command):
        """Runs a program to its end and returns its output."""
        command = [command[0], "-c", str(self.conf), *map(str, command[1:])]
        return subprocess.run(command, check=True, capture_output=True, text=True, timeout=PATIENCE, cwd=self.folder).stdout

    def start(self, *command):
        with open(self.folder / f"{command[0]}.out", "a") as output:
            return subprocess.Popen([command[0], "-c", str(self.conf), "-f", *command[1:]], stdout=output, stderr=output,
                                    cwd=self.folder, preexec_fn=die_with_parent)

    def wait(self, condition, what):
        while not condition():
            if time.monotonic() > self.deadline:
                raise TimeoutError(f"{what}: not within {PATIENCE} s")
            time.sleep(0.1)

    def answers(self):
        try:
            with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(f"http://127.0.0.1:{self.port}", timeout=5):
                return True
        except urllib.error.HTTPError:
            return True
        except OSError:
            return False

    def store_is_up(self):
        if self.osd.poll() is not None:  # sometimes it rejects the cluster's id at first
            self.osd = self.start("ceph-osd", "-i", "0")
        return "1 up" in self.run("ceph", "osd", "stat")

    def bring_up(self):
        fsid, store = uuid.uuid4(), uuid.uuid4()
        self.configure(fsid)
        self.run("monmaptool", "--create", "--fsid", fsid, "--addv", "a", f"[v2:127.0.0.1:{self.monitor}]", "monmap")
        self.run("ceph-authtool", "--create-keyring", "keyring")
        for name in ("mon.", "client.admin", "osd.0"):
            self.run("ceph-authtool", "keyring", "-n", name, "--gen-key", "--cap", "mon", "allow *", "--cap", "osd", "allow *")
        self.run("ceph-mon", "--mkfs", "-i", "a", "--monmap", "monmap", "--keyring", "keyring")
        self.start("ceph-mon", "-i", "a")
        self.run("ceph", "osd", "new", store)
        self.run("ceph-osd", "-i", "0", "--mkfs", "--osd-uuid", store, "--keyring", "keyring")
        self.osd = self.start("ceph-osd", "-i", "0")
        self.wait(self.store_is_up, "the store")
        self.start("radosgw", "-n", "client.admin")
        self.run("radosgw-admin", "user", "create", "--uid", "muster", "--display-name", "Muster", "--access-key", ACCESS_KEY,
                 "--secret-key", SECRET_KEY)
        self.wait(self.answers, "the gateway")
        subprocess.run(["curl", "-sS", "--fail", "--noproxy", "*", "-X", "PUT", "-H", "x-amz-content-sha256: UNSIGNED-PAYLOAD",
                        "--aws-sigv4", "aws:amz:us-east-1:s3", "--user",
                        f"{ACCESS_KEY}:{SECRET_KEY}", f"http://127.0.0.1:{self.port}/bucket"], check=True, timeout=PATIENCE)


def main():
    die_with_parent()
    gateway = Gateway(pathlib.Path(sys.argv[1]))
    gateway.bring_up()
    print(gateway.port, flush=True)
    signal.pause()


if __name__ == "__main__":
    main()
