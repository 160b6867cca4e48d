"""Ports: never shared, and replaced if another process takes one."""
import socket
import unittest

from support import PYTHON, MusterTest, free_ports, wait_until

BINDER = """
    import os, pathlib, socket, sys
    port, attempt = int(sys.argv[1]), sys.argv[2]
    pathlib.Path(f"port.{attempt}").write_text(str(port))
    if attempt == "0":
        import time
        while not os.path.exists("go"):
            time.sleep(0.02)
    server = socket.socket()
    server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    server.bind(("127.0.0.1", port))
    server.listen()
    print("listening", os.environ["TF_CONFIG"])
    """


class PortTest(MusterTest):
    def test_concurrent_jobs_never_share_a_port(self):
        for i in range(10):
            self.write(f"job{i}.yaml", f"name: job{i}\nroles: {{worker: {{replicas: 6, command: 'exec sleep 600'}}}}\n")
        runs = [self.start("run", "-d", f"job{i}.yaml") for i in range(10)]
        for run in runs:
            _, errors = run.communicate(timeout=100)
            self.assertEqual(run.returncode, 0, errors)
        addresses = [task["address"] for job in self.jobs() for task in self.show(job["id"])["tasks"]]
        self.assertEqual(len(addresses), 60)
        self.assertEqual(len(set(addresses)), 60)

    def stolen(self, role):
        self.write("binder.py", BINDER)
        job = self.run_detached(f"""
            name: robbed
            roles:
              worker: {{command: [{PYTHON}, binder.py, "{{port}}", "{{attempt}}"], {role}}}
              helper: {{command: 'exec sleep 600'}}
            policies: {{success: chief, finish_grace: 0s}}
            """)
        stranger = socket.socket()
        self.addCleanup(stranger.close)
        stranger.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        stranger.bind(("127.0.0.1", int(self.wait_file("port.0"))))
        stranger.listen()
        self.write("go", "")
        return job, self.wait_state(job, "Succeeded", "Failed")

    def test_a_picked_port_that_another_process_took_is_replaced(self):
        job, state = self.stolen("ready: started")
        self.assertEqual(state["state"], "Succeeded", state)
        self.assertNotEqual(self.wait_file("port.0"), self.wait_file("port.1"))
        self.assertIn(self.wait_file("port.1"), self.log(job, "worker:0").decode().rsplit("listening", 1)[1])
        self.assertTrue(any("another port" in event for event in self.events(job)), self.events(job))
        self.assertEqual(self.task(job, "worker:0")["address"], f"127.0.0.1:{self.wait_file('port.1')}")

    def test_a_port_of_the_users_choice_is_not_replaced(self):
        port, = free_ports(1)
        _, state = self.stolen(f"port: {port}")
        self.assertEqual(state["state"], "Failed")
        self.assertIn("port in use", state["reason"])
        self.assertIn(str(port), state["failure"]["first"]["advice"])

    def test_a_port_in_use_at_the_start(self):
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            port = taken.getsockname()[1]
            result = self.muster("run", self.write("job.yaml", f"name: j\nroles: {{worker: {{command: 'true', port: {port}}}}}\n"), check=False)
        self.assertEqual(result.returncode, 1)
        self.assertIn(f"port {port} is in use", result.stderr)
        self.assertEqual(self.jobs()[0]["state"], "Failed")

    def test_two_jobs_with_the_same_port(self):
        port, = free_ports(1)
        text = "name: {}\nroles: {{worker: {{command: 'exec sleep 600', port: {}}}}}\n"
        self.run_detached(text.format("one", port))
        result = self.muster("run", "-d", self.write("two.yaml", text.format("two", port)), check=False)
        self.assertEqual(result.returncode, 1)
        self.assertIn(f"port {port} belongs to another job", result.stderr)
        self.muster("stop", "one")
        self.muster("run", "-d", "two.yaml")

    def test_a_task_that_listens_is_ready(self):
        job = self.run_detached(f"""
            name: listens
            roles: {{worker: {{command: [{PYTHON}, -m, http.server, "{{port}}", --bind, 127.0.0.1], ready: listening}}}}
            """)
        self.wait_state(job, "Running")
        host, port = self.task(job, "worker:0")["address"].split(":")
        socket.create_connection((host, int(port)), timeout=10).close()

    def test_the_start_timeout_names_the_missing_tasks(self):
        job = self.run_detached(f"""
            name: late
            roles:
              ps: {{command: [{PYTHON}, -m, http.server, "{{port}}", --bind, 127.0.0.1], ready: listening}}
              worker: {{replicas: 2, command: 'if [ {{index}} = 0 ]; then exec {PYTHON} -m http.server {{port}}; fi; exec sleep 600', ready: listening}}
            policies: {{start_timeout: 3s}}
            """)
        state = self.wait_state(job, "Failed")
        self.assertIn("worker:1 did not start within 3s", state["reason"])
        self.assertNotIn("worker:0", state["reason"])
        wait_until(lambda: all(task["state"] in ("Failed", "Stopped") for task in self.show(job)["tasks"]), "all ended")


if __name__ == "__main__":
    unittest.main()
