"""The DNS server of a cluster. Resolves HOSTNAME.SERVICE.NAMESPACE.svc.DOMAIN to the address of a
pod, from the Endpoints of Services. Answers over UDP, with IPv4 addresses only.
"""

import json
import socket
import struct
import threading
import time

TYPE_A = 1
CLASS_IN = 1
NO_ERROR, FORMAT_ERROR, NAME_ERROR = 0, 1, 3
TTL_SECONDS = 5  # As in CoreDNS.
RETRY_SECONDS = 0.5


def names_of(endpoints, domain):
    """Returns the addresses of each name in these Endpoints."""
    names = {}
    service = f"{endpoints['metadata']['name']}.{endpoints['metadata']['namespace']}"
    for subset in endpoints.get("subsets") or []:
        for address in ((subset.get("addresses") or []) +
                        (subset.get("notReadyAddresses") or [])):
            if "hostname" in address:
                name = f"{address['hostname']}.{service}.svc.{domain}".lower()
                names.setdefault(name, []).append(address["ip"])
    return names


def question_of(query):
    """Returns the name and the type of the first question, and the offset of its end."""
    labels = []
    at = 12
    while query[at]:
        labels.append(query[at + 1:at + 1 + query[at]].decode("ascii").lower())
        at += 1 + query[at]
    return ".".join(labels), struct.unpack_from("!H", query, at + 1)[0], at + 5


def answer(query, names):
    """Returns the response to a query of DNS (RFC 1035)."""
    number, flags = struct.unpack_from("!HH", query)
    is_recursion_desired = flags & 0x0100

    def head(code, answer_count, question_count=1):
        return struct.pack("!HHHHHH", number, 0x8400 | is_recursion_desired | code,
                           question_count, answer_count, 0, 0)

    try:
        name, question_type, end = question_of(query)
    except (IndexError, UnicodeDecodeError, struct.error):
        return head(FORMAT_ERROR, 0, 0)
    if name not in names:
        return head(NAME_ERROR, 0) + query[12:end]
    addresses = names[name] if question_type == TYPE_A else []
    records = b"".join(  # 0xc00c points to the name in the question.
        struct.pack("!HHHIH4s", 0xc00c, TYPE_A, CLASS_IN, TTL_SECONDS, 4,
                    socket.inet_aton(address)) for address in addresses)
    return head(NO_ERROR, len(addresses)) + query[12:end] + records


class ClusterDns:
    """Serves on `address` until the process ends, on separate threads."""

    def __init__(self, address, domain):
        self._domain = domain
        self._names = {}  # By (namespace, name) of the Endpoints.
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind((address, 53))
        threading.Thread(target=self._serve, daemon=True).start()

    def follow(self, watch):
        """Reads the events of `kubectl get endpoints --watch`.

        Args:
          watch: a function that begins to watch and yields an event in JSON for each line. Called
            again when the events end.
        """
        def run():
            while True:
                self._follow(watch())
                time.sleep(RETRY_SECONDS)

        threading.Thread(target=run, daemon=True).start()

    def _follow(self, events):
        for line in events:
            event = json.loads(line)
            endpoints = event["object"]
            key = (endpoints["metadata"]["namespace"], endpoints["metadata"]["name"])
            # Replaces the whole dictionary, because the other thread reads it meanwhile.
            others = {k: v for k, v in self._names.items() if k != key}
            if event["type"] != "DELETED":
                others[key] = names_of(endpoints, self._domain)
            self._names = others

    def _serve(self):
        while True:
            query, client = self._socket.recvfrom(4096)
            names = {}
            for entry in self._names.values():
                names.update(entry)
            if len(query) >= 12:
                self._socket.sendto(answer(query, names), client)
