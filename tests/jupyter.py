"""A client of Jupyter: logs in with a password and runs code in a kernel."""
import asyncio
import json
import urllib.parse
import uuid

import requests


class JupyterClient:
    """The session of a browser. Not logged in at first."""

    def __init__(self, url):
        self.base = "{0.scheme}://{0.netloc}".format(urllib.parse.urlsplit(url))
        self.session = requests.Session()
        self.session.trust_env = False  # no proxy

    def close(self):
        self.session.close()

    def log_in(self, password):
        """Returns the status of the response: 302 if the password is right, 401 if it is wrong."""
        self.session.get(f"{self.base}/login", timeout=30)
        return self.session.post(f"{self.base}/login", data={"password": password, "_xsrf": self.session.cookies["_xsrf"]},
                                 allow_redirects=False, timeout=30).status_code

    def get(self, path):
        return self.session.get(f"{self.base}/{path}", timeout=30)

    def start_kernel(self):
        """Returns the id of a new kernel."""
        answer = self.session.post(f"{self.base}/api/kernels", json={"name": "python3"}, timeout=60,
                                   headers={"X-XSRFToken": self.session.cookies["_xsrf"]})
        answer.raise_for_status()
        return answer.json()["id"]

    def cells(self, name):
        """Returns the code cells of a notebook file."""
        cells = self.get(f"api/contents/{name}").json()["content"]["cells"]
        return ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]

    def run(self, kernel, *cells):
        """Runs code in a kernel. Returns its text output and the content types of what it displays."""
        return asyncio.run(self._run(kernel, cells))

    async def _run(self, kernel, cells):
        from tornado.httpclient import HTTPRequest
        from tornado.websocket import websocket_connect
        # The server answers once the kernel does, which takes a while on a busy machine.
        request = HTTPRequest(f"{self.base.replace('http', 'ws', 1)}/api/kernels/{kernel}/channels", connect_timeout=120, request_timeout=120,
                              headers={"Cookie": "; ".join(f"{cookie.name}={cookie.value}" for cookie in self.session.cookies)})
        socket = await asyncio.wait_for(websocket_connect(request), 120)
        try:
            text, shown = "", set()
            for code in cells:
                more, types = await asyncio.wait_for(self._execute(socket, code), 120)
                text, shown = text + more, shown | types
            return text, shown
        finally:
            socket.close()
            while await asyncio.wait_for(socket.read_message(), 60) is not None:
                pass

    @staticmethod
    async def _execute(socket, code):
        identity = uuid.uuid4().hex
        await socket.write_message(json.dumps({
            "channel": "shell", "parent_header": {}, "metadata": {}, "buffers": [],
            "header": {"msg_id": identity, "msg_type": "execute_request", "session": identity, "username": "", "version": "5.3"},
            "content": {"code": code, "silent": False, "store_history": True, "user_expressions": {}, "allow_stdin": False}}))
        text, types = "", set()
        while True:
            message = await socket.read_message()
            if message is None:
                raise AssertionError("the kernel's connection was closed")
            message = json.loads(message)
            if message["parent_header"].get("msg_id") != identity:
                continue
            content, kind = message["content"], message["msg_type"]
            if kind == "stream":
                text += content["text"]
            elif kind == "error":
                raise AssertionError("\n".join(content["traceback"]))
            elif kind in ("display_data", "execute_result"):
                types |= set(content["data"])
            elif kind == "status" and content["execution_state"] == "idle":
                return text, types
