"""A real Prometheus with the configuration in deploy/monitoring scrapes a job. Its alert must name
the worker that is suspended.

Needs prometheus and promtool of Debian's package prometheus. Without them the test prints a note
and passes.
"""

import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import unittest
import urllib.error
import urllib.request

MONITORING = pathlib.Path("deploy/monitoring")
LAUNCH = os.path.abspath("deploy/launch/launch")
DIGITS = os.path.abspath("examples/digits/digits.job")
DATA = os.path.abspath("examples/data/digits")
TOKEN = "0123456789abcdef0123456789abcdef"
PATIENCE_S = 60
TASKS = ["chief", "ps 0", "worker 0", "worker 1"]


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@unittest.skipUnless(shutil.which("prometheus") and shutil.which("promtool"),
                     "prometheus is not installed")
class PrometheusTest(unittest.TestCase):

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        (self.folder / "token").write_text(TOKEN, encoding="ascii")
        os.chmod(self.folder / "token", 0o600)

    def start(self, command, log, environment=None):
        """Starts a process group that is killed at the end of the test. Returns its id."""
        with open(self.folder / log, "w", encoding="utf-8") as file:
            process = subprocess.Popen(command, cwd=self.folder, stdout=file,
                                       stderr=file, start_new_session=True,
                                       env=os.environ | (environment or {}))
        self.addCleanup(process.wait)
        self.addCleanup(os.killpg, process.pid, signal.SIGKILL)
        return process.pid

    def log(self, name):
        return (self.folder / name).read_text(encoding="utf-8", errors="replace")

    def await_true(self, condition, what):
        """Polls until `condition` returns a true value, and returns that value."""
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            found = condition()
            if found:
                return found
            time.sleep(0.1)
        self.fail(f"{what}: not within {PATIENCE_S} s\n{self.log('launch.log')[-3000:]}\n"
                  f"{self.log('prometheus.log')[-3000:]}")

    def start_job(self):
        """Starts a job. Returns the process id of launch, and the host:port of each task's pages.
        """
        (self.folder / "prometheus.log").touch()
        # Set in the environment, so that it applies to all tasks and not only to the leader.
        launched = self.start(
            [LAUNCH, "--workers=2", "--ps=1", f"--job={DIGITS}",
             f"--run_dir={self.folder}/run", "--set", "epochs=1000000", "--set",
             f"data_dir={DATA}"], "launch.log",
            {"MUSTER_STATUS_PORT": "0",
             "MUSTER_STATUS_TOKEN_FILE": f"{self.folder}/token"})

        def pages():
            found = []
            for log in sorted(self.folder.glob("run/logs/*.log")):
                found += re.findall(r"status page: http://(\S+?)/?\s",
                                    self.log(log.relative_to(self.folder)))
            return found if len(set(found)) == len(TASKS) else None
        targets = self.await_true(pages, "all tasks name their pages")
        return launched, targets

    def write_configuration(self, targets):
        """Writes the files of deploy/monitoring for the job's tasks, with shorter intervals."""
        text = (MONITORING / "prometheus.yml").read_text(encoding="utf-8")
        text = text.replace("_interval: 10s", "_interval: 1s")
        head, _, _ = text.partition("      - targets:\n")
        (self.folder / "prometheus.yml").write_text(
            head + f"      - targets: {json.dumps(targets)}\n", encoding="utf-8")
        rules = (MONITORING / "alerts.yml").read_text(encoding="utf-8")
        (self.folder / "alerts.yml").write_text(
            re.sub(r"\bfor: \w+", "for: 1s", rules), encoding="utf-8")

    def ask(self, path):
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}",
                                        timeout=5) as answer:
                return json.load(answer)["data"]
        except (OSError, urllib.error.URLError):
            return None  # Prometheus does not listen yet.

    def test_files_pass_promtool(self):
        for name in "prometheus.yml", "alerts.yml":
            shutil.copy(MONITORING / name, self.folder)
        for command in (["check", "config", "prometheus.yml"],
                        ["check", "rules", "alerts.yml"]):
            result = subprocess.run(["promtool", *command], cwd=self.folder, text=True,
                                    capture_output=True, check=False)
            self.assertEqual(result.returncode, 0, result.stdout + result.stderr)

    def test_an_alert_names_the_stopped_worker(self):
        launched, targets = self.start_job()
        self.write_configuration(targets)
        self.port = free_port()
        self.start(["prometheus", "--config.file=prometheus.yml",
                    f"--web.listen-address=127.0.0.1:{self.port}",
                    "--storage.tsdb.path=data"], "prometheus.log")

        def healthy():
            found = self.ask("/api/v1/targets?state=active") or {}
            return sum(t["health"] == "up" for t in found.get("activeTargets", []))
        self.await_true(lambda: healthy() == len(TASKS), "every task is scraped")

        def steps():
            found = self.ask("/api/v1/query?query=muster_steps_total") or {}
            return [float(s["value"][1]) for s in found.get("result", [])]
        self.await_true(lambda: any(s > 0 for s in steps()), "steps are counted")

        def lost():
            found = self.ask("/api/v1/alerts") or {}
            return [a["labels"]["peer"] for a in found.get("alerts", [])
                    if a["labels"]["alertname"] == "MusterPeerLost"
                    and a["state"] == "firing"]
        self.assertEqual(lost(), [])
        worker = self.worker_of(launched, 1)
        os.kill(worker, signal.SIGSTOP)
        self.addCleanup(os.kill, worker, signal.SIGCONT)
        self.assertEqual(self.await_true(lost, "the alert fires"), ["worker 1"])
        os.kill(worker, signal.SIGCONT)
        self.await_true(lambda: not lost(), "the alert ends")

    @staticmethod
    def worker_of(launched, index):
        children = pathlib.Path(f"/proc/{launched}/task/{launched}/children")
        for child in children.read_text(encoding="ascii").split():
            environment = pathlib.Path(f"/proc/{child}/environ").read_bytes()
            for entry in environment.split(b"\0"):
                if not entry.startswith(b"TF_CONFIG="):
                    continue
                task = json.loads(entry[len("TF_CONFIG="):])["task"]
                if task == {"type": "worker", "index": index}:
                    return int(child)
        raise AssertionError(f"no worker {index} below process {launched}")


if __name__ == "__main__":
    unittest.main()
