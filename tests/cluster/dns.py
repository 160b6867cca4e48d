#!/usr/bin/python3
"""The cluster's DNS: answers every query from the API server, so that it is never stale.

usage: dns.py SERVER CERTIFICATES ADDRESS

Resolves SERVICE.NAMESPACE.svc.cluster.local and, of headless services, HOSTNAME.SERVICE.NAMESPACE.svc.cluster.local; addresses of IPv4
only."""
import json
import pathlib
import random
import socket
import socketserver
import ssl
import struct
import sys
import urllib.error
import urllib.request

_SUFFIX = ["svc", "cluster", "local"]
_A, _ANY, _IN = 1, 255, 1
_NO_ERROR, _SERVER_FAILURE, _NO_SUCH_NAME = 0, 2, 3


class Names:
    """The names in the API server."""

    def __init__(self, server, certificates):
        tls = ssl.create_default_context(cafile=certificates / "ca.crt")
        tls.load_cert_chain(certificates / "admin.crt", certificates / "admin.key")
        self._opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=tls))
        self._server = server

    def _get(self, namespace, kind, name):
        try:
            with self._opener.open(f"{self._server}/api/v1/namespaces/{namespace}/{kind}/{name}", timeout=5) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            if error.code == 404:
                return None
            raise

    def addresses(self, name):
        """Returns None if there is no such name."""
        labels = name.lower().rstrip(".").split(".")
        if labels[-3:] != _SUFFIX or len(labels) not in (5, 6):
            return None
        *host, service, namespace = labels[:-3]
        found = self._get(namespace, "services", service)
        if found is None:
            return None
        cluster_ip = found["spec"].get("clusterIP", "None")
        if cluster_ip != "None":
            return None if host else [cluster_ip]
        endpoints = self._get(namespace, "endpoints", service) or {}
        ready = [address for subset in endpoints.get("subsets") or [] for address in subset.get("addresses") or []]
        found = [address["ip"] for address in ready if not host or address.get("hostname") == host[0]]
        random.shuffle(found)
        return found or None


def read_question(query):
    """Returns the name and type of the query, and the offset of its end."""
    labels, at = [], 12
    while query[at]:
        labels.append(query[at + 1:at + 1 + query[at]].decode("ascii"))
        at += 1 + query[at]
    kind, _ = struct.unpack_from("!HH", query, at + 1)
    return ".".join(labels), kind, at + 5


def answer(names, query):
    name, kind, end = read_question(query)
    code, found = _NO_ERROR, []
    try:
        found = names.addresses(name)
        if found is None:
            code, found = _NO_SUCH_NAME, []
    except (OSError, ValueError):
        code = _SERVER_FAILURE
    if kind not in (_A, _ANY):
        found = []
    number, flags = struct.unpack_from("!HH", query)
    head = struct.pack("!HHHHHH", number, 0x8480 | flags & 0x0100 | code, 1, len(found), 0, 0)
    # 0xC00C: a pointer to the name in the query.
    records = (struct.pack("!HHHIH", 0xC00C, _A, _IN, 1, 4) + socket.inet_aton(address) for address in found)
    return head + query[12:end] + b"".join(records)


class Handler(socketserver.BaseRequestHandler):
    def handle(self):
        query, connection = self.request
        try:
            connection.sendto(answer(self.server.names, query), self.client_address)
        except (IndexError, UnicodeDecodeError, struct.error):
            pass  # not a query


class Server(socketserver.ThreadingUDPServer):
    daemon_threads = True


def main():
    url, certificates, address = sys.argv[1:]
    with Server((address, 53), Handler) as server:
        server.names = Names(url, pathlib.Path(certificates))
        server.serve_forever()


if __name__ == "__main__":
    main()
