"""muster dashboard over HTTP: its API, its stream, and who may use them. dashboard_browser_test.py uses the page itself."""
import http.client
import json
import re
import signal
import ssl
import subprocess
import unittest
import urllib.parse

from dashboards import Client, DashboardMixin
from support import SOURCE, MusterTest, wait_until
from training import TrainTest
from venvs import venv

STEPS = """
    name: steps
    env: {RATE: "0.5"}
    roles:
      worker:
        replicas: 2
        command: |
          for step in $(seq 1 ${STEPS:-10000}); do
            echo "{\\"step\\": $step, \\"loss\\": $RATE}" >> "$MUSTER_METRICS_FILE"
            echo "step=$step"
            sleep 0.1
          done
"""


class DashboardTest(DashboardMixin, MusterTest):
    def finished(self, text=STEPS, *options):
        """Runs a short job to its end; returns its id."""
        self.muster("run", self.write("job.yaml", text), "--env", "STEPS=3", *options)
        return self.jobs()[0]["id"]


class AccessTest(DashboardTest):
    def test_a_link_works_once_and_a_new_one_is_printed(self):
        process, port, path = self.serve()
        first, second = Client(port), Client(port)
        self.assertEqual(second.request("GET", "/").status, 401)
        self.assertEqual(second.request("GET", "/api/jobs").status, 401)
        self.assertEqual(second.log_in("/login?token=wrong").status, 401)
        answer = first.log_in(path)
        self.assertEqual(answer.status, 200)
        self.assertRegex(answer.headers["Set-Cookie"], r"; HttpOnly; SameSite=Strict")
        self.assertIn(b"<title>Muster", first.request("GET", "/").body)
        self.assertEqual(second.log_in(path).status, 401)
        said = ""
        while "for another browser" not in said:
            said = process.stderr.readline()
            self.assertTrue(said, "the dashboard ended")
        new = urllib.parse.urlsplit(said.split()[-1])
        self.assertEqual(second.log_in(f"{new.path}?{new.query}").status, 200)
        self.assertEqual(first.get("/api/jobs")["total"], 0)

    def test_other_hosts_and_other_sites_are_refused(self):
        client = self.client()
        job = self.finished()
        for host in ("evil.example", f"evil.example:{client.port}", "127.0.0.1.nip.io", "0.0.0.0"):
            self.assertEqual(client.request("GET", "/api/jobs", headers={"Host": host}).status, 403, host)
        self.assertEqual(client.request("GET", "/api/jobs", headers={"Host": f"localhost:{client.port}"}).status, 200)
        notes = {"note": "n", "tags": [], "hidden": False}
        path = f"/api/jobs/{job}/notes"
        for headers in ({"Origin": "http://evil.example"}, {"Origin": "null"}, {"Sec-Fetch-Site": "cross-site"},
                        {"Sec-Fetch-Site": "same-site"}, {"X-Muster-CSRF": "guess"}, {"X-Muster-CSRF": ""}):
            self.assertEqual(client.request("PUT", path, notes, headers).status, 403, headers)
        # A form of another site can send neither this type nor the header.
        self.assertEqual(client.request("PUT", path, json.dumps(notes), {"Content-Type": "text/plain"}).status, 403)
        self.assertEqual(client.request("PUT", path, json.dumps(notes),
                                        {"Content-Type": "text/plain", "X-Muster-CSRF": client.csrf}).status, 400)
        self.assertEqual(client.get("/api/jobs")["jobs"][0]["notes"]["note"], "")
        self.assertEqual(client.request("PUT", path, notes, {"Origin": f"http://127.0.0.1:{client.port}"}).status, 200)

    def test_every_answer_has_a_strict_policy_and_no_address_of_others(self):
        client = self.client()
        page = client.request("GET", "/")
        assets = re.findall(rb'"(/assets/[^"]+)"', page.body)
        self.assertTrue(assets)
        for path in ["/", "/jobs/some-job", "/login", "/api/jobs", "/api/nothing", *(asset.decode() for asset in assets)]:
            answer = client.request("GET", path)
            policy = answer.headers["Content-Security-Policy"]
            self.assertIn("default-src 'none'; script-src 'self'; style-src 'self';", policy, path)
            self.assertIn("frame-ancestors 'none'", policy)
            self.assertEqual(answer.headers["X-Content-Type-Options"], "nosniff")
            self.assertNotIn(b"https://fonts.", answer.body)

    def test_paths_cannot_leave_the_folders(self):
        client = self.client()
        job = self.finished()
        secret = self.dir / "home" / "secret.log"
        secret.write_text("secret\n")
        for path in ("/assets/../../../../etc/passwd", "/assets/%2e%2e/%2e%2e/etc/passwd", "/api/jobs/..", "/api/jobs/%2e%2e%2f",
                     "/api/jobs/../../secret", f"/api/jobs/{job}%2f..%2f..", f"/api/jobs/{job}/../{job}/file/x",
                     "/api/jobs/%00", f"/api/jobs/{job}%00"):
            answer = client.request("GET", path)
            self.assertEqual(answer.status, 404, (path, answer.body[:200]))
        for query in ({"task": "../../../secret"}, {"task": "../../../secret:0"}, {"cursor": "../../../secret:0@1.0"},
                      {"grep": "["}, {"limit": "0"}, {"limit": "9999999999999999999999"}, {"direction": "up"}, {"attempt": "x"}):
            answer = client.request("GET", f"/api/jobs/{job}/logs?{urllib.parse.urlencode(query)}")
            self.assertNotIn(b"secret\\n", answer.body)
            self.assertEqual(answer.status, 200 if "cursor" in query else 400, (query, answer.body[:200]))

    def test_other_machines_need_tls_and_the_password(self):
        refused = self.muster("dashboard", "--listen", "0.0.0.0", check=False)
        self.assertEqual(refused.returncode, 2)
        self.assertIn("--listen requires --tls-cert, --tls-key and --password-file", refused.stderr)
        cert, key = self.dir / "cert.pem", self.dir / "key.pem"
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
                        "-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", cert],
                       check=True, capture_output=True)
        password = self.write("password", "short\n")
        options = ["--listen", "0.0.0.0", "--name", "127.0.0.1", "--tls-cert", cert, "--tls-key", key, "--password-file", password]
        self.assertIn("fewer than 8 characters", self.muster("dashboard", *options, check=False).stderr)
        password.write_text("a long secret\n")
        _, port, _ = self.serve(*options, "--metrics")
        client = Client(port, context=ssl.create_default_context(cafile=cert))
        form = {"Content-Type": "application/x-www-form-urlencoded"}
        self.assertEqual(client.request("POST", "/login", "password=wrong", form).status, 401)
        self.assertEqual(client.request("GET", "/metrics").status, 401)
        self.assertIn(b'<input type="password"', client.request("GET", "/").body)
        answer = client.request("POST", "/login", "password=a+long+secret", form)
        self.assertEqual(answer.status, 200)
        self.assertIn("; Secure", answer.headers["Set-Cookie"])
        client.cookie = answer.headers["Set-Cookie"].split(";")[0]
        self.assertEqual(client.get("/api/jobs")["total"], 0)
        with self.assertRaises((http.client.HTTPException, OSError)):
            Client(port).request("GET", "/")
        key.write_text("no key")
        broken = self.muster("dashboard", *options, check=False)
        self.assertIn("both must be PEM files that belong together", broken.stderr)

    def test_a_port_in_use(self):
        _, port, _ = self.serve()
        second = self.muster("dashboard", "--port", port, check=False)
        self.assertEqual(second.returncode, 1)
        self.assertIn(f"cannot listen on 127.0.0.1 port {port}", second.stderr)

    def test_a_signal_ends_it_with_pages_open(self):
        process, port, path = self.serve()
        client = Client(port)
        client.log_in(path)
        for _ in range(5):
            self.stream(client)
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(timeout=20), 0)


class JobsTest(DashboardTest):
    def test_pages_filters_and_tags(self):
        for name in ("alpha", "beta", "gamma"):
            self.finished(STEPS, "--name", name)
        client = self.client()
        page = client.get("/api/jobs", limit=2)
        self.assertEqual((page["total"], page["states"], len(page["jobs"])), (3, {"Succeeded": 3}, 2))
        self.assertEqual([job["name"] for job in page["jobs"]], ["gamma", "beta"])
        self.assertEqual([job["name"] for job in client.get("/api/jobs", offset=2)["jobs"]], ["alpha"])
        self.assertEqual(client.get("/api/jobs", search="ALPH")["jobs"][0]["name"], "alpha")
        self.assertEqual(client.get("/api/jobs", state="failed")["total"], 0)
        self.assertEqual(client.get("/api/jobs", state=["failed", "succeeded"])["total"], 3)
        self.assertEqual(client.get("/api/jobs", platform="ssh")["total"], 0)
        beta = page["jobs"][1]["id"]
        notes = {"note": "good <b>one</b>", "tags": ["baseline"], "hidden": False}
        self.assertEqual(client.request("PUT", f"/api/jobs/{beta}/notes", notes).json(), notes)
        self.assertEqual([job["id"] for job in client.get("/api/jobs", search="BASE")["jobs"]], [beta])
        detailed = client.get("/api/jobs", details="true", search="beta")["jobs"][0]
        self.assertEqual(detailed["parameters"]["env.RATE"], "0.5")
        self.assertEqual(detailed["metrics"], {"loss": 0.5})
        self.assertEqual(detailed["notes"], notes)
        for query in ({"state": "odd"}, {"limit": 0}, {"limit": "x"}, {"offset": -1}, {"details": "maybe"}):
            self.assertEqual(client.request("GET", f"/api/jobs?{urllib.parse.urlencode(query)}").status, 400, query)

    def test_a_running_job_is_followed_stopped_and_run_again(self):
        job = self.run_detached(STEPS)
        client = self.client()
        stream = self.stream(client, f"/api/stream?job={job}")
        wait_until(lambda: len(stream.of("log")) >= 3 and len(stream.of("metrics")) >= 3, "output and metrics grow")
        details = client.get(f"/api/jobs/{job}")
        self.assertEqual([task["state"] for task in details["tasks"]], ["Running", "Running"])
        self.assertEqual(details["actions"], ["stop", "run"])
        self.assertEqual([attempt["outcome"] for attempt in details["attempts"]], ["running", "running"])
        first = client.get("/api/series", job=job, name="loss")["series"][0]
        wait_until(lambda: client.get("/api/series", job=job)["series"][0]["count"] > first["count"], "the curve grows")

        stopped = client.request("POST", f"/api/jobs/{job}/stop", {"immediately": True})
        self.assertEqual((stopped.status, stopped.json()["state"]), (200, "Stopped"), stopped.body)
        wait_until(lambda: stream.of("job") and stream.of("job")[-1]["job"]["state"] == "Stopped", "the stream reports it")
        self.assertEqual(client.request("POST", f"/api/jobs/{job}/stop", {}).status, 409)

        again = client.request("POST", f"/api/jobs/{job}/run", {"set": ["env.RATE='0.7'", "env.STEPS='2'"], "name": "again"})
        self.assertEqual(again.status, 200, again.body)
        second = again.json()["id"]
        self.wait_state(second, "Succeeded")
        diff = client.get(f"/api/jobs/{second}/file", **{"with": job})["diff"]
        self.assertIn({"change": "added", "text": "  RATE: '0.7'"}, [{**line, "text": line["text"].replace('"', "'")} for line in diff])
        compared = client.get("/api/compare", job=[job, second])
        rate = next(row for row in compared["parameters"] if row["name"] == "env.RATE")
        self.assertEqual((rate["differs"], rate["values"]), (True, ["0.5", "0.7"]))
        loss = next(row for row in compared["metrics"] if row["name"] == "loss")
        self.assertEqual([value["last"] for value in loss["values"]], [0.5, 0.7])
        wait_until(lambda: any(one["id"] == second and one["state"] == "Succeeded"
                               for data in stream.of("jobs") for one in data["changed"]), "the stream has the new job")

        invalid = client.request("POST", f"/api/jobs/{job}/run", {"set": ["roles.worker.replicas=many"]})
        self.assertEqual(invalid.status, 400)
        self.assertIn("--set roles.worker.replicas", invalid.json()["error"]["message"])

        self.assertEqual(client.request("DELETE", f"/api/jobs/{job}").status, 204)
        wait_until(lambda: any(job in data["removed"] for data in stream.of("jobs")), "the stream reports the removal")
        self.assertEqual(client.request("GET", f"/api/jobs/{job}").status, 404)
        self.assertNotIn(job, [one["id"] for one in self.jobs()])

    def test_logs_are_paged_in_both_directions_without_gaps(self):
        text = STEPS.replace("sleep 0.1", "")
        self.muster("run", self.write("job.yaml", text), "--env", "STEPS=2500")
        job = self.jobs()[0]["id"]
        client = self.client()
        pages, cursor = [], {}
        while True:
            page = client.get(f"/api/jobs/{job}/logs", limit=700, **cursor)
            pages.insert(0, page)
            if page["older"] is None:
                break
            cursor = {"cursor": page["older"]}
        lines = [line for page in pages for line in page["lines"]]
        for task in ("worker:0", "worker:1"):
            self.assertEqual([line["text"] for line in lines if line["task"] == task], [f"step={i}" for i in range(1, 2501)])
        self.assertEqual(client.get(f"/api/jobs/{job}/logs", cursor=pages[-1]["newer"], direction="newer")["lines"], [])
        forward = client.get(f"/api/jobs/{job}/logs", cursor=pages[0]["newer"], direction="newer", limit=5000)["lines"]
        self.assertEqual(forward, lines[len(pages[0]["lines"]):][:5000])
        found = client.get(f"/api/jobs/{job}/logs", task="worker:1", grep="^step=12$")["lines"]
        self.assertEqual([(line["task"], line["text"]) for line in found], [("worker:1", "step=12")])

    def test_a_log_with_html_and_escapes_is_shown_inert(self):
        self.muster("run", self.write("job.yaml", r"""
            name: hostile
            roles: {worker: {command: "printf '<script>alert(1)</script>\\033[2J\\033]0;title\\007\\377\\n'"}}
            """))
        client = self.client()
        text = client.get(f"/api/jobs/{self.jobs()[0]['id']}/logs")["lines"][0]["text"]
        self.assertIn("<script>alert(1)</script>", text)
        self.assertFalse(any(ord(character) < 32 or character == "\x7f" for character in text), repr(text))

    def test_a_failure_has_its_report(self):
        job = self.run_detached("""
            name: fails
            roles: {worker: {command: "echo cannot find the data; exit 3", restart: never}}
            """)
        self.wait_state(job, "Failed")
        shown = self.client().get(f"/api/jobs/{job}")
        self.assertEqual(shown["job"]["failure"]["first"]["exit_code"], 3)
        self.assertIn("cannot find the data", json.dumps(shown["job"]["failure"]))
        self.assertEqual(shown["attempts"][0]["outcome"], "failed: exit code 3")

    def test_jobs_are_listed_while_others_write_the_history(self):
        client = self.client()
        runs = [self.start("run", self.write(f"{i}.yaml", STEPS), "--name", f"job-{i}", "--env", "STEPS=2") for i in range(4)]
        while any(run.poll() is None for run in runs):
            client.get("/api/jobs", details="true")
        self.assertEqual(client.get("/api/jobs")["states"], {"Succeeded": 4})

    def test_prometheus(self):
        job = self.run_detached(STEPS)
        client = self.client("--metrics")
        anyone = Client(client.port)
        text = anyone.request("GET", "/metrics").body.decode()
        self.assertIn('muster_jobs{state="Running"} 1\n', text)
        self.assertRegex(text, rf'(?m)^muster_task_up\{{job="{job}",name="steps",platform="local",task="worker:1"\}} 1$')
        self.assertEqual(Client(self.client().port).request("GET", "/metrics").status, 401)

    def test_run_with_a_dashboard(self):
        process = self.start("run", "--dashboard", self.write("job.yaml", STEPS))
        link = urllib.parse.urlsplit(process.stdout.readline().strip())
        client = Client(link.port)
        answer = client.log_in(f"{link.path}?{link.query}")
        job = client.get("/api/jobs")["jobs"][0]["id"]
        self.assertIn(f"url=/jobs/{job}".encode(), answer.body)
        self.assertEqual(client.request("POST", f"/api/jobs/{job}/stop", {"immediately": True}).status, 200)
        self.assertEqual(process.wait(timeout=60), 1)

    def test_bad_bodies(self):
        client = self.client()
        job = self.finished()
        for path, body in (("stop", "[]"), ("stop", "{"), ("stop", '{"now": true}'), ("stop", '{"immediately": 1}'),
                           ("resume", '{"step": -1}'), ("resume", '{"step": "x"}'), ("run", '{"set": "a"}'), ("run", '{"set": [1]}'),
                           ("run", '{"file": "roles: ["}'), ("run", '{"name": 7}')):
            answer = client.request("POST", f"/api/jobs/{job}/{path}", body,
                                    {"Content-Type": "application/json", "X-Muster-CSRF": client.csrf})
            self.assertEqual(answer.status, 400, (path, body, answer.body[:200]))
        huge = client.request("POST", f"/api/jobs/{job}/run", "x" * (5 << 20),
                              {"Content-Type": "application/json", "X-Muster-CSRF": client.csrf})
        self.assertEqual(huge.status, 413)
        long = client.request("GET", "/api/jobs?search=" + "x" * 10000)
        self.assertEqual((long.status, long.json()["error"]["code"]), (414, "REFUSED"))
        odd = client.request("PATCH", f"/api/jobs/{job}/notes", {})
        self.assertEqual((odd.status, odd.headers["Allow"]), (405, "PUT"))


class TrainedTest(DashboardTest, TrainTest):
    def test_a_trained_model_has_curves_checkpoints_and_a_graph(self):
        job = self.launch("trained", model_dir=str(self.dir / "model"), train={"steps": 40, "evaluate": {"every_steps": 20}, "summary": {"every_steps": 10}})
        self.succeed(job)
        client = self.client()
        names = {metric["name"] for metric in client.get("/api/metrics", job=job)["metrics"]}
        self.assertIn("loss", names)
        checkpoints = client.get(f"/api/jobs/{job}/checkpoints")["checkpoints"]
        self.assertTrue(checkpoints[0]["final"])
        self.assertGreater(checkpoints[0]["bytes"], 1000)
        self.assertEqual(checkpoints[0]["made_by"], job)
        graph = client.get(f"/api/jobs/{job}/graph")
        self.assertGreater(len(graph["nodes"]), 3)
        self.assertTrue(any(device["bytes"] > 0 for device in graph["devices"]), graph["devices"])
        evaluated = client.request("POST", f"/api/jobs/{job}/evaluate", {})
        self.assertEqual(evaluated.status, 200, evaluated.body)
        self.assertIn("metrics", evaluated.json())
        for event_file in (self.dir / "model").glob("*tfevents*"):
            event_file.write_bytes(event_file.read_bytes()[:-7] + b"\xff" * 30)
        fresh = self.client()
        damaged = fresh.get("/api/metrics", job=job)
        self.assertTrue(damaged["problems"])
        self.assertIn("loss", {metric["name"] for metric in damaged["metrics"]})


class OpenApiTest(DashboardTest):
    def test_the_server_answers_as_its_openapi_file_says(self):
        """Schemathesis sends valid and invalid requests of every operation but those that start or remove jobs, or stream."""
        tool = venv(self, "schemathesis") / "bin" / "schemathesis"
        self.finished()
        client = self.client()
        excluded = [word for name in ("stream", "runAgain", "resumeJob", "removeJob") for word in ("--exclude-operation-id", name)]
        result = subprocess.run(
            [tool, "run", SOURCE / "docs" / "dashboard.openapi.yaml", "--url", f"http://127.0.0.1:{client.port}",
             "--header", f"Cookie: {client.cookie}", "--header", f"X-Muster-CSRF: {client.csrf}", *excluded,
             "--phases", "coverage,fuzzing", "--max-examples", "10", "--seed", "1", "--no-color",
             "--checks", "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance"],
            cwd=self.dir, capture_output=True, text=True, timeout=300)
        self.assertEqual(result.returncode, 0, f"{result.stdout}\n{result.stderr}")
        self.assertRegex(result.stdout, r"[1-9]\d* generated")


if __name__ == "__main__":
    unittest.main()
