"""Shows the log of a job of Slurm until the job ends.

    python3 -I -S follow_slurm.py JOB_ID LOG

Ends with the exit status of the job's script. SIGINT and SIGTERM have the tasks of the job save
and end, and a second one cancels the job. Ends without touching the job when the process that
started this one has ended.
"""

import os
import re
import signal
import subprocess
import sys
import time

_POLL_SECONDS = 0.2  # Of the log.
_STATE_SECONDS = 1.0  # Between two questions to Slurm, which serves many users.
# How long Slurm may fail to answer, as while its controller is restarted.
_SILENCE_SECONDS_MAX = 300
_ENDED = ("COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL", "OUT_OF_MEMORY", "DEADLINE",
          "BOOT_FAIL")


def _run(command):
    try:
        return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              check=False, timeout=60)
    except (OSError, subprocess.TimeoutExpired) as error:
        return subprocess.CompletedProcess(command, 1, "", str(error))


class _Job:
    """A job of Slurm.

    Attributes:
      state: such as "PENDING (Resources)"; empty before the first answer.
      exit_code: None until the job has ended.
    """

    def __init__(self, job_id):
        self.job_id = job_id
        self.state = ""
        self.exit_code = None
        self._cancel_count = 0
        self._answered = time.monotonic()

    def update(self):
        """Asks Slurm for the state of the job.

        Raises:
          SystemExit: Slurm has not answered for a long time, or does not know the job.
        """
        shown = _run(["scontrol", "show", "job", "--oneliner", self.job_id])
        if shown.returncode != 0:
            if "Invalid job id" in shown.stderr:
                sys.exit(f"Slurm does not know job {self.job_id} any more; its log has how it "
                         "ended")
            if time.monotonic() - self._answered > _SILENCE_SECONDS_MAX:
                sys.exit(f"Slurm has not answered for {_SILENCE_SECONDS_MAX} s: "
                         f"{shown.stderr.strip()}. The job may go on")
            return
        self._answered = time.monotonic()
        fields = dict(re.findall(r"(\w+)=(\S*)", shown.stdout))
        state, reason = fields["JobState"], fields.get("Reason", "None")
        self.state = state if reason == "None" else f"{state} ({reason})"
        if state in _ENDED:
            status, by_signal = map(int, fields.get("ExitCode", "1:0").split(":"))
            self.exit_code = status or (128 + by_signal if by_signal else
                                        int(state != "COMPLETED"))

    def cancel(self):
        """Has the tasks save and end. A second call, or one before they run, cancels the job."""
        self._cancel_count += 1
        is_running = self.state.startswith("RUNNING")
        gently = ["--signal=TERM"] if is_running and self._cancel_count == 1 else []
        _run(["scancel", *gently, self.job_id])


class _Log:
    def __init__(self, path):
        self._path = path
        self._position = 0

    def show(self):
        """Prints what was added to the log."""
        try:
            with open(self._path, "rb") as file:
                file.seek(self._position)
                text = file.read()
        except FileNotFoundError:
            return
        self._position += len(text)
        # The label of srun, the rank of a task, says nothing to a reader of the chief's lines.
        sys.stdout.buffer.write(re.sub(rb"(?m)^ *\d+: ", b"", text))
        sys.stdout.buffer.flush()


def main(job_id, log_path):
    job, log = _Job(job_id), _Log(log_path)
    parent = os.getppid()
    requests = []
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: requests.append(1))
    shown_state, asked = "", -_STATE_SECONDS
    while job.exit_code is None:
        if os.getppid() != parent:
            return 0
        if time.monotonic() - asked >= _STATE_SECONDS:
            asked = time.monotonic()
            job.update()
        if job.state != shown_state:
            shown_state = job.state
            print(f"Slurm job {job_id}: {shown_state}", flush=True)
        while requests:
            requests.pop()
            job.cancel()
        log.show()
        if job.exit_code is None:
            time.sleep(_POLL_SECONDS)
    log.show()
    return job.exit_code


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
