"""Samples of CPU, memory, disk and network per task (docs/formats/samples.md)."""
import contextlib
import json
import math
import os
import pathlib
import struct
import subprocess
import time
import unittest

from ssh_test import SshTestBase
from support import MusterTest, wait_until

MIB = 1 << 20
RECORD = struct.Struct("<qqI12fI")
# Uses a core and 64 MiB, and writes how much of the processor it really got.
BURN = """
import json, os, sys, time
memory = bytearray(64 << 20)
began, until = time.monotonic(), 0
while True:
    now = time.monotonic()
    if now >= until:
        until = now + 0.1
        with open("own.new", "w") as file:
            json.dump([now - began, time.process_time()], file)
        os.rename("own.new", "own.json")
"""


def read_samples(home, job, task):
    """Reads a sample file as its documentation describes it: (end, interval, attempt, 12 values) per record."""
    path = pathlib.Path(home) / "jobs" / job / "samples" / f"{task.replace(':', '-')}.bin"
    content = path.read_bytes() if path.exists() else b""
    if not content:
        return []
    assert content[:16] == b"MSTRSMPL" + struct.pack("<II", 1, RECORD.size), content[:16]
    records = []
    for at in range(16, len(content) - RECORD.size + 1, RECORD.size):
        end, interval, attempt, *values, _ = RECORD.unpack_from(content, at)
        records.append((end / 1e6, interval / 1e6, attempt, values))
    return records


class LocalTest(MusterTest):
    def burn(self, more="", policies=""):
        self.write("burn.py", BURN)
        return self.run_detached(f"""
            name: burn
            roles:
              worker: {{command: "exec /usr/bin/python3 burn.py"}}
              {more}
            {policies}
            """)

    def samples(self, job, count, task="worker:0"):
        return wait_until(lambda: (lambda found: found if len(found) >= count else None)(read_samples(self.home, job, task)),
                          f"{task} has {count} samples")

    def test_show_has_what_a_task_uses(self):
        job = self.burn(more="ps: {command: 'exec sleep 1000'}")
        self.samples(job, 4)
        usage = self.task(job, "worker:0")["usage"]
        elapsed, own = json.loads((self.dir / "own.json").read_text())
        # A whole core, unless the machine is busy; what the task itself measured in any case.
        self.assertAlmostEqual(usage["mean"]["cpu_cores"], own / elapsed, delta=0.2)
        self.assertGreater(usage["current"]["cpu_cores"], 0.1)
        self.assertLess(usage["peak"]["cpu_cores"], 1.2)
        for value in ("current", "mean", "peak"):
            self.assertGreater(usage[value]["memory_bytes"], 64 * MIB)
            self.assertLess(usage[value]["memory_bytes"], 128 * MIB)
            # The tasks of this machine share its network, which cannot be told apart.
            self.assertIsNone(usage[value]["receive_bytes_per_second"])
            self.assertIsNone(usage[value]["send_bytes_per_second"])
        idle = self.task(job, "ps:0")["usage"]["peak"]
        self.assertLess(idle["cpu_cores"], 0.1)
        self.assertLess(idle["memory_bytes"], 32 * MIB)
        table = self.muster("show", job).stdout
        self.assertRegex(table, r"RESTARTS +CPU +MEM +NOTE")
        self.assertRegex(table, r"worker:0 .* [01]\.\d\d +\d\dMiB *\n")

        self.muster("stop", "--yes", job)
        usage = self.task(job, "worker:0")["usage"]
        self.assertIsNone(usage["current"])
        self.assertGreater(usage["peak"]["memory_bytes"], 64 * MIB)
        self.assertRegex(self.muster("show", job).stdout, r"worker:0 .* peak [01]\.\d\d +peak \d\dMiB +stopped")

    def test_the_file_is_as_documented(self):
        job = self.burn()
        samples = self.samples(job, 3)
        for (end, interval, attempt, values), (before, *_) in zip(samples[1:], samples):
            self.assertAlmostEqual(end - interval, before, delta=0.001)
            self.assertEqual(attempt, 0)
            self.assertGreater(values[2], 64 * MIB)
            self.assertTrue(math.isnan(values[8]))

    def test_disk_writes_count(self):
        job = self.run_detached("""
            name: writer
            roles: {worker: {command: "while :; do dd if=/dev/zero of=big bs=1M count=4 conv=fsync 2> /dev/null; sleep 0.1; done"}}
            """)
        self.samples(job, 2)
        filesystem = subprocess.run(["stat", "-f", "-c", "%T", self.dir], text=True, capture_output=True, check=True).stdout
        if filesystem.strip() == "tmpfs":
            self.skipTest("a file system in memory has no disk to write to")
        self.assertGreater(self.task(job, "worker:0")["usage"]["peak"]["write_bytes_per_second"], MIB)

    def test_a_restarted_task_keeps_its_peak(self):
        self.write("work.py", """
            import os, time
            if os.environ["MUSTER_ATTEMPT"] == "0":
                memory = bytearray(64 << 20)
                while not os.path.exists("fail"): time.sleep(0.05)
                raise SystemExit(200)
            time.sleep(1000)
            """)
        job = self.run_detached("""
            name: again
            roles: {worker: {command: "exec /usr/bin/python3 work.py"}}
            policies: {max_restarts: 3}
            """)
        self.samples(job, 1)
        self.write("fail", "")
        wait_until(lambda: any(attempt == 1 for _, _, attempt, _ in read_samples(self.home, job, "worker:0")), "the second attempt has a sample")
        usage = self.task(job, "worker:0")["usage"]
        self.assertGreater(usage["peak"]["memory_bytes"], 64 * MIB)
        self.assertLess(usage["current"]["memory_bytes"], 64 * MIB)

    def test_a_killed_supervisor_leaves_readable_samples(self):
        job = self.burn()
        self.samples(job, 2)
        SshTestBase.kill_supervisor(job)
        wait_until(lambda: self.show(job)["state"] not in ("Running", "Starting"), "its death is noticed")
        task = self.task(job, "worker:0")
        self.assertGreater(task["usage"]["peak"]["memory_bytes"], 64 * MIB)

    def test_a_damaged_file_does_no_harm(self):
        job = self.burn()
        path = self.home / "jobs" / job / "samples" / "worker-0.bin"
        self.samples(job, 1)
        path.write_bytes(os.urandom(300))
        self.assertEqual(self.show(job)["state"], "Running")
        path.write_bytes(b"")
        self.muster("show", job)
        path.unlink()
        self.assertIsNone(self.task(job, "worker:0")["usage"])
        self.samples(job, 1)  # the supervisor starts another file
        self.assertEqual(self.show(job)["state"], "Running")

    def test_a_full_disk_costs_samples_but_not_the_job(self):
        self.mount(self.home, "4m")
        self.write("work.py", """
            import os, time
            while not os.path.exists("done"): time.sleep(0.05)
            """)
        job = self.run_detached("{name: full, roles: {worker: {command: 'exec /usr/bin/python3 work.py'}}}")
        self.samples(job, 1)
        pid = self.pids(job)["worker:0"]
        # A file that exists has room for records in its last block, so it starts again on the full disk.
        path = self.home / "jobs" / job / "samples" / "worker-0.bin"
        path.unlink()
        with contextlib.suppress(OSError), open(self.home / "filler", "wb", buffering=0) as filler:
            while True:
                filler.write(b"x" * 4096)
        path.unlink(missing_ok=True)
        wait_until(lambda: path.exists() and path.stat().st_size == 0, "a sample was lost")
        (self.home / "filler").unlink()
        self.samples(job, 1)
        self.assertEqual(self.pids(job)["worker:0"], pid)
        self.write("done", "")
        self.wait_state(job, "Succeeded")


class SshSamplesTest(SshTestBase):
    JOB = """
        name: burn
        roles: {worker: {command: "exec /usr/bin/python3 burn.py"}}
        policies: {host_timeout: 40s}
        """

    def submit_burn(self):
        hosts = self.use(1)
        self.write("work/burn.py", BURN)
        return self.submit(self.JOB, hosts)

    def test_the_agent_reports_what_its_tasks_use(self):
        job = self.submit_burn()
        wait_until(lambda: len(read_samples(self.home, job, "worker:0")) >= 4, "samples arrive")
        usage = self.task(job, "worker:0")["usage"]
        own = self.bed.run("host1", ["sh", "-c", "cat ~/.cache/muster/jobs/*/work/own.json"], check=False).stdout
        elapsed, used = json.loads(own)
        self.assertAlmostEqual(usage["mean"]["cpu_cores"], used / elapsed, delta=0.2)
        self.assertGreater(usage["current"]["cpu_cores"], 0.1)
        self.assertGreater(usage["current"]["memory_bytes"], 64 * MIB)
        self.muster("stop", "--yes", job)
        self.assertRegex(self.muster("show", job).stdout, r"peak [01]\.\d\d +peak \d\dMiB")

    def test_samples_of_a_cut_connection_arrive_later(self):
        job = self.submit_burn()
        wait_until(lambda: read_samples(self.home, job, "worker:0"), "a sample arrives")
        self.bed.cut("host1")
        self.wait_state(job, "Unreachable", timeout=40)
        self.bed.mend("host1")
        self.wait_state(job, "Running", timeout=40)
        mended = time.time()
        samples = wait_until(lambda: (lambda found: found if found[-1][0] > mended else None)(read_samples(self.home, job, "worker:0")),
                             "samples arrive again")
        for (end, interval, *_), (before, *_) in zip(samples[1:], samples):
            self.assertAlmostEqual(end - interval, before, delta=0.5)  # no gap; the clocks are compared again


if __name__ == "__main__":
    unittest.main()
