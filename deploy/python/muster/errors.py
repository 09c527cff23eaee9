"""The errors of a run."""


class MusterError(RuntimeError):
    """A run that ended with an error.

    Attributes:
      exit_code: exit status of `launch`; docs/clusters.md lists them.
      log_dir: folder with one log per task, or None if the run did not start.
    """

    def __init__(self, message, exit_code=None, log_dir=None):
        details = []
        if exit_code is not None:
            details.append(f"exit status {exit_code}")
        if log_dir is not None:
            details.append(f"logs in {log_dir}")
        super().__init__(f"{message} ({'; '.join(details)})" if details else message)
        self.exit_code = exit_code
        self.log_dir = log_dir
