"""A client of muster dashboard: requests with a session, and its stream of events."""
import contextlib
import http.client
import json
import socket
import threading
import urllib.parse


class Answer:
    def __init__(self, response):
        self.status = response.status
        self.headers = response.headers
        self.body = response.read()

    def json(self):
        return json.loads(self.body)


class Client:
    """A browser without a page: keeps the cookie and the CSRF token."""

    def __init__(self, port, cookie="", context=None):
        self.port, self.cookie, self.context, self.csrf = port, cookie, context, ""

    def connect(self):
        if self.context:
            return http.client.HTTPSConnection("127.0.0.1", self.port, timeout=60, context=self.context)
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)

    def request(self, method, path, body=None, headers=None):
        with contextlib.closing(self.connect()) as connection:
            sent = {"Cookie": self.cookie} if self.cookie else {}
            if body is not None and not isinstance(body, str):
                body = json.dumps(body)
                sent.update({"Content-Type": "application/json", "X-Muster-CSRF": self.csrf})
            if method == "DELETE":
                sent["X-Muster-CSRF"] = self.csrf
            connection.request(method, path, body, {**sent, **(headers or {})})
            return Answer(connection.getresponse())

    def log_in(self, path):
        answer = self.request("GET", path)
        if answer.status == 200:
            self.cookie = answer.headers["Set-Cookie"].split(";")[0]
            self.csrf = self.get("/api/session")["csrf"]
        return answer

    def get(self, path, **query):
        answer = self.request("GET", path + ("?" + urllib.parse.urlencode(query, doseq=True) if query else ""))
        if answer.status != 200:
            raise AssertionError(f"GET {path}: {answer.status} {answer.body[:500]}")
        return answer.json()


class Stream:
    """A stream of server-sent events, collected by a thread."""

    def __init__(self, client, path="/api/stream"):
        self.connection = client.connect()
        self.connection.request("GET", path, headers={"Cookie": client.cookie})
        self.response = self.connection.getresponse()
        self.messages = []
        self.thread = threading.Thread(target=self._read)
        self.thread.start()

    def _read(self):
        event = ""
        with contextlib.suppress(OSError, http.client.HTTPException, ValueError, AttributeError):
            while line := self.response.readline().decode().rstrip("\n"):
                while line:
                    name, _, value = line.partition(": ")
                    if name == "event":
                        event = value
                    elif name == "data":
                        self.messages.append((event, json.loads(value)))
                    line = self.response.readline().decode().rstrip("\n")

    def of(self, kind):
        return [data for event, data in list(self.messages) if event == kind]

    def close(self):
        with contextlib.suppress(OSError):
            self.connection.sock.shutdown(socket.SHUT_RDWR)
        self.thread.join(timeout=30)
        self.connection.close()


class DashboardMixin:
    """For a MusterTest: starts dashboards and logs in."""

    def serve(self, *options):
        """Starts the dashboard; returns the process, its port and the path of its link."""
        process = self.start("dashboard", *options)
        link = urllib.parse.urlsplit(process.stdout.readline().strip())
        self.assertTrue(link.port, process.poll() is not None and process.stderr.read())
        return process, link.port, f"{link.path}?{link.query}"

    def client(self, *options):
        _, port, path = self.serve(*options)
        client = Client(port)
        self.assertEqual(client.log_in(path).status, 200)
        return client

    def stream(self, client, path="/api/stream"):
        stream = Stream(client, path)
        self.addCleanup(stream.close)
        return stream
