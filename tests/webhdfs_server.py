#!/usr/bin/env python3
"""A WebHDFS cluster for tests, in memory: a namenode and a datanode on two ports, with fault injection.

usage: tests/webhdfs_server.py [--token T]

Prints the two ports and serves until it is killed. With a token, requests must carry it (delegation=). It follows
Hadoop where a client could notice: redirections, exceptions and their HTTP statuses, two kinds of RENAME, leases of
files whose writer was lost, listings in pages, permissions, names that HDFS does not have. e2e/webhdfs_test.py has
clients of others judge it.

On the namenode's port, for tests:
  POST /control/faults  a JSON list of what is to go wrong, each {"where": "namenode" or "datanode", "op": …, "kind": …}
                        and perhaps "times" (1) and "skip" (0: how many such requests go well before). Kinds:
                        "status" (with "status": 503), "exception" (with "exception"), "cut" (no answer, nothing done),
                        "cut-answer" (done, but no answer, or half of its body), "cut-body" (after "bytes" of the
                        request's body, which are kept), "stall" (silence)
  GET /control/log      what was asked: a JSON list of {"where", "op", "path", "user", "bytes" of the body}
"""
import argparse
import contextlib
import http.server
import itertools
import json
import posixpath
import threading
import time
import urllib.parse

PREFIX = "/webhdfs/v1"
SUPERUSER = "hdfs"
PAGE = 1000
EXCEPTIONS = {  # HTTP status and package
    "FileNotFoundException": (404, "java.io"),
    "IOException": (403, "java.io"),
    "IllegalArgumentException": (400, "java.lang"),
    "UnsupportedOperationException": (400, "java.lang"),
    "InvalidPathException": (400, "org.apache.hadoop.fs"),
    "FileAlreadyExistsException": (403, "org.apache.hadoop.fs"),
    "ParentNotDirectoryException": (403, "org.apache.hadoop.fs"),
    "PathIsNotEmptyDirectoryException": (403, "org.apache.hadoop.fs"),
    "AccessControlException": (403, "org.apache.hadoop.security"),
    "InvalidToken": (403, "org.apache.hadoop.security.token.SecretManager$"),
    "StandbyException": (403, "org.apache.hadoop.ipc"),
    "RetriableException": (403, "org.apache.hadoop.ipc"),
    "SafeModeException": (403, "org.apache.hadoop.hdfs.server.namenode"),
    "AlreadyBeingCreatedException": (403, "org.apache.hadoop.hdfs.protocol"),
    "PathComponentTooLongException": (403, "org.apache.hadoop.hdfs.protocol.FSLimitException$"),
    "DSQuotaExceededException": (403, "org.apache.hadoop.hdfs.protocol"),
}


class Remote(Exception):
    """A Java exception."""

    def __init__(self, name, message):
        super().__init__(message)
        self.name = name
        self.status, self.package = EXCEPTIONS[name]

    def body(self):
        dot = "" if self.package.endswith("$") else "."
        return {"RemoteException": {"exception": self.name, "javaClassName": f"{self.package}{dot}{self.name}",
                                    "message": str(self)}}


class Cut(Exception):
    """Closes the connection."""


class Node:
    numbers = itertools.count(16386)

    def __init__(self, kind, owner, permission):
        self.kind = kind
        self.owner = owner
        self.group = "supergroup"
        self.permission = permission
        self.id = next(Node.numbers)
        self.data = bytearray()
        self.writers = 0
        self.touch()

    def touch(self):
        self.modified = int(time.time() * 1000)

    def status(self, suffix, children):
        return {"accessTime": 0, "blockSize": 134217728 if self.kind == "FILE" else 0, "childrenNum": children,
                "fileId": self.id, "group": self.group, "length": len(self.data), "modificationTime": self.modified,
                "owner": self.owner, "pathSuffix": suffix, "permission": self.permission,
                "replication": 1 if self.kind == "FILE" else 0, "storagePolicy": 0, "type": self.kind}


class Names:
    """The namenode's tree. Every call holds `lock`."""

    def __init__(self):
        self.lock = threading.RLock()
        self.nodes = {"/": Node("DIRECTORY", SUPERUSER, "777")}

    def check(self, path):
        parts = path.split("/")[1:]
        if path != "/" and (not path.startswith("/") or any(part in ("", ".", "..") or ":" in part for part in parts)):
            raise Remote("InvalidPathException", f"Invalid path name Invalid file name: {path}")
        if any(len(part.encode()) > 255 for part in parts):
            raise Remote("PathComponentTooLongException", "The maximum path component name limit is exceeded")

    def may(self, user, path, what):
        """Checks access to the node itself; `what` is WRITE or READ."""
        node = self.nodes[path]
        digit = int(node.permission[0 if user == node.owner else -1])
        if user != SUPERUSER and not digit & {"WRITE": 2, "READ": 4}[what]:
            kind = "d" if node.kind == "DIRECTORY" else "-"
            raise Remote("AccessControlException", f'Permission denied: user={user}, access={what}, inode="{path}":'
                                                   f"{node.owner}:{node.group}:{kind}{node.permission}")

    def find(self, path):
        self.check(path)
        above = path
        while above != "/":
            above = posixpath.dirname(above)
            if above in self.nodes and self.nodes[above].kind == "FILE":
                raise Remote("ParentNotDirectoryException", f"{above} (is not a directory)")
        return self.nodes.get(path)

    def need(self, path):
        node = self.find(path)
        if node is None:
            raise Remote("FileNotFoundException", f"File does not exist: {path}")
        return node

    def children(self, path):
        below = path.rstrip("/") + "/"
        return sorted((name[len(below):] for name in self.nodes if name.startswith(below) and name != "/"
                       and "/" not in name[len(below):]), key=str.encode)

    def status(self, path, suffix=""):
        return self.need(path).status(suffix, len(self.children(path)))

    def listing(self, path, user, after=""):
        """Returns the statuses of a page, and the number of remaining ones."""
        node = self.need(path)
        if node.kind == "FILE":
            return [self.status(path)], 0
        self.may(user, path, "READ")
        names = [name for name in self.children(path) if name.encode() > after.encode()]
        page = [self.status(posixpath.join(path, name), name) for name in names[:PAGE]]
        return page, len(names) - len(page)

    def make_folders(self, path, user):
        if self.find(path) is not None:
            if self.nodes[path].kind == "FILE":
                raise Remote("FileAlreadyExistsException", f"Path is not a directory: {path}")
            return
        parent = posixpath.dirname(path)
        self.make_folders(parent, user)
        self.may(user, parent, "WRITE")
        self.nodes[path] = Node("DIRECTORY", user, "755")

    def create(self, path, user, overwrite):
        node = self.find(path)
        if node is not None and (node.kind == "DIRECTORY" or not overwrite):
            raise Remote("FileAlreadyExistsException", f"{path} for client 127.0.0.1 already exists")
        self.make_folders(posixpath.dirname(path), user)
        self.may(user, posixpath.dirname(path), "WRITE")
        self.nodes[path] = Node("FILE", user, "644")
        return self.nodes[path]

    def delete(self, path, user, recursive):
        if self.find(path) is None:
            return False
        self.may(user, posixpath.dirname(path), "WRITE")
        if self.children(path) and not recursive:
            raise Remote("PathIsNotEmptyDirectoryException", f"`{path} is non empty': Directory is not empty")
        for name in [name for name in self.nodes if (name + "/").startswith(path.rstrip("/") + "/") and name != "/"]:
            del self.nodes[name]
        return True

    def move(self, source, target):
        for name in [name for name in self.nodes if (name + "/").startswith(source + "/")]:
            self.nodes[target + name[len(source):]] = self.nodes.pop(name)

    def rename(self, source, target, user, options):
        """As FileSystem.rename: returns false if it is not possible; moves into an existing folder."""
        if self.find(source) is None or source == "/":
            return False
        if self.find(target) is not None and self.nodes[target].kind == "DIRECTORY":
            target = posixpath.join(target, posixpath.basename(source))
        parent = posixpath.dirname(target)
        if self.find(target) is not None or self.find(parent) is None or (target + "/").startswith(source + "/"):
            return False
        self.may(user, posixpath.dirname(source), "WRITE")
        self.may(user, parent, "WRITE")
        self.move(source, target)
        return True

    def rename2(self, source, target, user, options):
        """As FileContext.rename: raises the reason of a failure; replaces the target on request."""
        self.need(source)
        there = self.find(target)
        if source == target:
            raise Remote("FileAlreadyExistsException", f"The source {source} and destination {target} are the same")
        if there is not None and "OVERWRITE" not in options:
            raise Remote("FileAlreadyExistsException", f"rename destination {target} already exists")
        if there is not None and there.kind != self.nodes[source].kind:
            raise Remote("IOException", f"Source {source} and destination {target} must both be directories or files")
        if there is not None and self.children(target):
            raise Remote("IOException", f"rename destination directory is not empty: {target}")
        self.need(posixpath.dirname(target))
        self.may(user, posixpath.dirname(source), "WRITE")
        self.may(user, posixpath.dirname(target), "WRITE")
        self.nodes.pop(target, None)
        self.move(source, target)

    def take_lease(self, path):
        """Returns a file that is about to be changed."""
        node = self.need(path)
        if node.kind != "FILE":
            raise Remote("FileNotFoundException", f"Path is not a file: {path}")
        if node.writers:
            raise Remote("AlreadyBeingCreatedException", f"Failed to APPEND_FILE {path}: it is being written")
        return node


class Cluster:
    def __init__(self, token):
        self.token = token
        self.names = Names()
        self.lock = threading.Lock()
        self.faults = []
        self.log = []
        self.namenode = Server(self, Namenode)
        self.datanode = Server(self, Datanode)

    def fault(self, where, op):
        """Returns the fault to inject into this request, or {}."""
        with self.lock:
            for fault in self.faults:
                if fault["where"] == where and fault.get("op", op) == op and fault.get("times", 1) > 0:
                    if fault.get("skip", 0) > 0:
                        fault["skip"] -= 1
                        continue
                    fault["times"] = fault.get("times", 1) - 1
                    return fault
        return {}


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def __init__(self, cluster, handler):
        self.cluster = cluster
        super().__init__(("127.0.0.1", 0), handler)

    def handle_error(self, request, client_address):
        pass  # the client disconnected


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    where = ""

    def log_message(self, *args):
        pass

    def do_GET(self):
        self.serve()

    do_PUT = do_POST = do_DELETE = do_GET

    def serve(self):
        self.pieces = self.body()
        try:
            self.route()
        except Remote as error:
            self.reply(error.status, error.body())
        except Cut:
            self.close_connection = True

    def route(self):
        path, _, query = self.path.partition("?")
        self.query = dict(urllib.parse.parse_qsl(query, keep_blank_values=True))
        self.op = self.query.get("op", "").upper()
        self.target = urllib.parse.unquote(path[len(PREFIX):])
        self.target = self.target.rstrip("/") or "/"
        self.user = self.query.get("user.name", "dr.who")
        if not path.startswith(PREFIX):
            self.reply(404, "<h2>HTTP ERROR 404 Not Found</h2>", {"Content-Type": "text/html"})
            return
        self.fault = self.server.cluster.fault(self.where, self.op)
        kind = self.fault.get("kind")
        if kind == "stall":
            threading.Event().wait()
        if kind == "cut":
            raise Cut
        self.record(int(self.headers.get("Content-Length") or 0))
        if kind == "status":
            self.reply(self.fault["status"], "<h2>HTTP ERROR</h2>", {"Content-Type": "text/html"})
            return
        if kind == "exception":
            raise Remote(self.fault["exception"], "told to")
        self.authenticate()
        with self.server.cluster.names.lock if self.where == "namenode" else contextlib.nullcontext():
            answer = self.answer()
        if kind == "cut-answer" and not isinstance(answer[1], bytearray):
            raise Cut
        self.reply(*answer)

    def authenticate(self):
        token = self.server.cluster.token
        if not token:
            return
        if "delegation" not in self.query:
            self.reply(401, "<h2>Authentication required</h2>", {"WWW-Authenticate": "Negotiate"})
            raise Cut
        if self.query["delegation"] != token:
            raise Remote("InvalidToken", f"token ({self.query['delegation']}) can't be found in cache")

    def record(self, size):
        with self.server.cluster.lock:
            self.server.cluster.log.append({"where": self.where, "op": self.op, "path": self.target, "user": self.user,
                                            "bytes": size})

    def answer(self):
        method = getattr(self, f"{self.command}_{self.op}".lower(), None)
        if method is None:
            raise Remote("IllegalArgumentException",
                         f'Invalid value for webhdfs parameter "op": No enum constant {self.op}')
        return method()

    def body(self):
        """Yields the request's body in pieces, as it arrives."""
        if self.headers.get("Transfer-Encoding", "").lower() == "chunked":
            while size := int(self.rfile.readline().split(b";")[0], 16):
                yield self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
            return
        left = int(self.headers.get("Content-Length") or 0)
        while left > 0:
            piece = self.rfile.read1(min(left, 65536))
            if not piece:
                raise Cut
            left -= len(piece)
            yield piece

    def reply(self, status, body=b"", headers=None):
        for _ in self.pieces:  # discard the rest
            pass
        kind = "application/octet-stream" if isinstance(body, (bytes, bytearray)) else "application/json"
        if isinstance(body, dict):
            body = json.dumps(body)
        if isinstance(body, str):
            body = body.encode()
        self.send_response(status)
        for name, value in {"Content-Type": kind, **(headers or {}), "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        if getattr(self, "fault", {}).get("kind") == "cut-answer" and isinstance(body, bytearray):
            self.wfile.write(body[:len(body) // 2])
            raise Cut
        self.wfile.write(body)


class Namenode(Handler):
    where = "namenode"

    def route(self):
        cluster = self.server.cluster
        if self.path == "/control/faults":
            faults = json.loads(b"".join(self.pieces))
            with cluster.lock:
                cluster.faults[:] = faults
            self.reply(200, {})
        elif self.path == "/control/log":
            with cluster.lock:
                self.reply(200, json.dumps(cluster.log))
        else:
            super().route()

    def redirect(self, extra=()):
        """Redirects to the datanode: the namenode takes no data."""
        if any(len(piece) for piece in self.pieces):
            raise Remote("IllegalArgumentException", "a body for the namenode")
        port = self.server.cluster.datanode.server_port
        keep = {name: value for name, value in self.query.items() if name != "noredirect"}
        query = urllib.parse.urlencode({**keep, "namenoderpcaddress": "127.0.0.1:8020", **dict(extra)})
        location = f"http://127.0.0.1:{port}{PREFIX}{urllib.parse.quote(self.target)}?{query}"
        if self.query.get("noredirect") == "true":
            return 200, {"Location": location}
        return 307, b"", {"Location": location}

    def names(self):
        return self.server.cluster.names

    def flag(self, name, default="false"):
        return self.query.get(name, default).lower() == "true"

    def get_getfilestatus(self):
        return 200, {"FileStatus": self.names().status(self.target)}

    def get_liststatus(self):
        everything, after = [], ""
        while True:
            page, left = self.names().listing(self.target, self.user, after)
            everything += page
            if not left:
                return 200, {"FileStatuses": {"FileStatus": everything}}
            after = page[-1]["pathSuffix"]

    def get_liststatus_batch(self):
        page, left = self.names().listing(self.target, self.user, self.query.get("startAfter", ""))
        return 200, {"DirectoryListing": {"partialListing": {"FileStatuses": {"FileStatus": page}},
                                          "remainingEntries": left}}

    def get_open(self):
        node = self.names().need(self.target)
        offset = int(self.query.get("offset", 0))
        if node.kind != "FILE":
            raise Remote("FileNotFoundException", f"Path is not a file: {self.target}")
        if offset < 0 or (offset >= len(node.data) and node.data):
            raise Remote("IOException", f"Offset={offset} out of the range [0, {len(node.data)}); OPEN, path={self.target}")
        return self.redirect()

    def get_getcontentsummary(self):
        node = self.names().need(self.target)
        below = [n for path, n in self.names().nodes.items() if (path + "/").startswith(self.target.rstrip("/") + "/")]
        size = sum(len(n.data) for n in below)
        return 200, {"ContentSummary": {"directoryCount": sum(n.kind == "DIRECTORY" for n in below), "quota": -1,
                                        "fileCount": sum(n.kind == "FILE" for n in below), "length": size,
                                        "spaceConsumed": size, "spaceQuota": -1, "owner": node.owner}}

    def get_gethomedirectory(self):
        return 200, {"Path": f"/user/{self.user}"}

    def put_create(self):
        return self.redirect()

    def put_mkdirs(self):
        self.names().make_folders(self.target, self.user)
        return 200, {"boolean": True}

    def put_rename(self):
        target = self.query.get("destination", "")
        if not target.startswith("/"):
            raise Remote("IllegalArgumentException", "Invalid value for webhdfs parameter \"destination\"")
        options = [option for option in self.query.get("renameoptions", "").upper().split(",") if option]
        if not options:
            return 200, {"boolean": self.names().rename(self.target, target, self.user, options)}
        self.names().rename2(self.target, target, self.user, options)
        return 200, b""

    def put_setpermission(self):
        self.names().need(self.target).permission = self.query.get("permission", "755").lstrip("0") or "0"
        return 200, b""

    def put_setowner(self):
        node = self.names().need(self.target)
        node.owner = self.query.get("owner", node.owner)
        node.group = self.query.get("group", node.group)
        return 200, b""

    def post_append(self):
        self.names().need(self.target)
        return self.redirect()

    def post_truncate(self):
        node = self.names().take_lease(self.target)
        length = int(self.query["newlength"])
        if length > len(node.data):
            raise Remote("IllegalArgumentException", f"Cannot truncate to a larger file size. Current size: {len(node.data)}")
        del node.data[length:]
        node.touch()
        return 200, {"boolean": True}

    def delete_delete(self):
        return 200, {"boolean": self.names().delete(self.target, self.user, self.flag("recursive"))}


class Datanode(Handler):
    where = "datanode"

    def receive(self, node):
        """Stores the body as it arrives, including the part before a cut."""
        names = self.server.cluster.names
        left = self.fault.get("bytes", 0) if self.fault.get("kind") == "cut-body" else None
        try:
            for piece in self.pieces:
                with names.lock:
                    node.data += piece if left is None else piece[:left]
                if left is not None:
                    left -= len(piece)
                    if left <= 0:
                        raise Cut
        finally:
            with names.lock:
                node.writers -= 1
                node.touch()

    def begin(self, node):
        node.writers += 1
        return node

    def put_create(self):
        names = self.server.cluster.names
        with names.lock:
            overwrite = self.query.get("overwrite", "false").lower() == "true"
            node = self.begin(names.create(self.target, self.user, overwrite))
        self.receive(node)
        return 201, b"", {"Location": f"hdfs://127.0.0.1:8020{urllib.parse.quote(self.target)}", "Connection": "close"}

    def post_append(self):
        names = self.server.cluster.names
        with names.lock:
            node = self.begin(names.take_lease(self.target))
        self.receive(node)
        return 200, b"", {"Connection": "close"}

    def get_open(self):
        names = self.server.cluster.names
        with names.lock:
            node = names.need(self.target)
            names.may(self.user, self.target, "READ")
            offset = int(self.query.get("offset", 0))
            end = offset + int(self.query["length"]) if "length" in self.query else len(node.data)
            return 200, bytearray(node.data[offset:end]), {"Connection": "close"}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--token", default="")
    cluster = Cluster(parser.parse_args().token)
    threading.Thread(target=cluster.datanode.serve_forever, daemon=True).start()
    print(cluster.namenode.server_port, cluster.datanode.server_port, flush=True)
    cluster.namenode.serve_forever()


if __name__ == "__main__":
    main()
