"""Runs kubectl, and says what its errors mean."""

import json
import re
import subprocess
import time

_REQUEST_SECONDS_MAX = 30
# What kubectl prints if it has no answer of the API server, or a server is overloaded.
_NO_ANSWER = re.compile(
    r"unable to connect to the server|connection (?:to the server .* was )?refused|i/o timeout"
    r"|TLS handshake timeout|no route to host|network is unreachable|no such host|EOF"
    r"|context deadline exceeded|Client\.Timeout|connection reset|http2: client connection lost"
    r"|ServiceUnavailable|service unavailable|currently unable to handle|TooManyRequests"
    r"|too many requests|etcdserver|error dialing backend|error sending request"
    r"|unexpected error when reading response body|gateway timeout|timed out", re.IGNORECASE)
_ADVICE = (
    (r"exceeded quota", "the quota of the namespace is too small: ask for less with "
     "worker_resources and server_resources, or wait until other jobs have ended"),
    (r"\(Forbidden\)|is forbidden", "ask the administrator of the cluster for this permission, or "
     "use another namespace"),
    (r"\(Unauthorized\)|must be logged in|Unauthorized", "log in to the cluster again"),
    (r'context .* does not exist|context was not found', "kubectl config get-contexts lists the "
     "contexts"),
    (r'namespaces? "[^"]*" not found', "make it with kubectl create namespace, or use another"),
    (r"no configuration has been provided|localhost:8080", "log in to the cluster, or set "
     "KUBECONFIG: kubectl has no configuration"),
    (r"ensure CRDs are installed first|no matches for kind", "the cluster lacks this kind of "
     "object: it is too old, or an operator is not installed"),
)


class KubectlError(Exception):
    """kubectl has failed.

    Attributes:
      has_answer: False if the cluster did not answer, so that the same call may succeed later.
    """

    def __init__(self, text, has_answer):
        super().__init__(text)
        self.has_answer = has_answer


def error_of(stderr):
    """Returns the KubectlError for what kubectl has printed on standard error, in one line."""
    lines = [line.strip() for line in stderr.splitlines()
             if line.strip() and not line.startswith(("Warning:", "I0", "W0"))]
    text = "; ".join(dict.fromkeys(lines)) or "kubectl has failed without a message"
    for pattern, advice in _ADVICE:
        if re.search(pattern, text):
            return KubectlError(f"{text}. {advice[0].upper()}{advice[1:]}", True)
    return KubectlError(text, _NO_ANSWER.search(text) is None)


def parse_objects(text):
    """Returns the objects in what kubectl prints with --output=json: lists, or one by one."""
    decoder = json.JSONDecoder()
    objects = []
    position = 0
    while (start := re.compile(r"\S").search(text, position)) is not None:
        value, position = decoder.raw_decode(text, start.start())
        objects += value["items"] if value["kind"].endswith("List") else [value]
    return objects


class Kubectl:
    """kubectl for one namespace of one cluster.

    Args:
      context, namespace: of kubectl; None: its current ones.
      silence_seconds_max: how long the cluster may give no answer before a call fails.
      is_given_up: a function that returns True if calls are not to be repeated any more.
    """

    def __init__(self, context, namespace, silence_seconds_max, is_given_up=lambda: False):
        self._options = [*([f"--context={context}"] if context else []),
                         *([f"--namespace={namespace}"] if namespace else [])]
        self._silence_seconds_max = silence_seconds_max
        self._is_given_up = is_given_up

    def command(self, *arguments):
        """Returns the command for a call."""
        return ["kubectl", *self._options, *arguments]

    def try_call(self, *arguments, text=None, timeout_seconds=_REQUEST_SECONDS_MAX):
        """Runs kubectl once. Returns what it prints.

        Raises:
          KubectlError: it has failed, or has not ended in time.
        """
        try:
            done = subprocess.run(self.command(*arguments), input=text or "",
                                  capture_output=True, text=True, check=False,
                                  timeout=timeout_seconds, start_new_session=True)
        except subprocess.TimeoutExpired:
            raise KubectlError(f"kubectl {arguments[0]} has not ended within {timeout_seconds} s",
                               False) from None
        except OSError as error:
            raise KubectlError(f"kubectl cannot be run: {error}", True) from None
        if done.returncode != 0:
            raise error_of(done.stderr)
        return done.stdout

    def __call__(self, *arguments, text=None, timeout_seconds=_REQUEST_SECONDS_MAX):
        """As try_call(), and repeats calls that the cluster has not answered."""
        begin = time.monotonic()
        while True:
            try:
                return self.try_call(*arguments, text=text, timeout_seconds=timeout_seconds)
            except KubectlError as error:
                silence_seconds = time.monotonic() - begin
                if error.has_answer:
                    raise
                if silence_seconds >= self._silence_seconds_max or self._is_given_up():
                    raise KubectlError(
                        f"the cluster has not answered for {silence_seconds:.0f} s: {error}",
                        False) from None
            time.sleep(1)

    def objects(self, *arguments):
        """Returns the objects that a call with --output=json prints."""
        return parse_objects(self(*arguments, "--output=json"))
