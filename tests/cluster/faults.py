"""Faults to inject between a client and an API server."""
import http
import json
import re
import urllib.parse

_VERBS = {"GET": "get", "POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
_WRITES = {"create", "update", "patch", "delete"}
_FIELDS = {"kind", "verb", "path", "skip", "times", "status", "reason", "headers", "seconds", "events", "pid", "signal"}
# Kinds that respond themselves, and kinds that forward the request first.
BEFORE = {"status", "cut", "stall", "delay", "kill"}
AFTER = {"cut-answer", "stall-answer", "kill-answer", "end", "gone"}


def verb_of(method, path):
    """Returns the RBAC verb of the request: get (or list), watch, create, update, patch, delete."""
    query = urllib.parse.parse_qs(urllib.parse.urlsplit(path).query)
    if method == "GET" and query.get("watch", ["false"])[-1].lower() in ("true", "1"):
        return "watch"
    return _VERBS.get(method, method.lower())


def status_object(code, reason="", message="injected by the test"):
    return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": message,
            "reason": reason or http.HTTPStatus(code).phrase.replace(" ", ""), "code": code}


class Fault:
    """One entry of the list; see `proxy` for its fields."""

    def __init__(self, entry):
        unknown = set(entry) - _FIELDS
        if unknown or entry.get("kind") not in BEFORE | AFTER:
            raise ValueError(f"not a fault: {json.dumps(entry)}")
        self.kind = entry["kind"]
        self.entry = entry
        self._verb = entry.get("verb", "")
        self._path = re.compile(entry.get("path", ""))
        self._skip = entry.get("skip", 0)
        self._times = entry.get("times", 1)

    def strikes(self, verb, path):
        """Returns whether the fault applies to this request, and counts it."""
        if self._verb not in ("", verb) and not (self._verb == "write" and verb in _WRITES):
            return False
        if self._times == 0 or not self._path.search(path):
            return False
        if self._skip > 0:
            self._skip -= 1
            return False
        self._times -= 1
        return True
