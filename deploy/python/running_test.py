"""Running launch, which scripts replace here. Needs neither Keras nor NumPy."""

import contextlib
import io
import json
import os
import pty
import signal
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
import unittest

from muster import executables, history, running
from muster.errors import MusterError


class RunningTest(unittest.TestCase):

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.environ = {**os.environ, "PYTHONPATH": os.path.dirname(os.path.dirname(
            os.path.abspath(running.__file__)))}

    def write(self, name, text):
        path = os.path.join(self.folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path

    def run_script(self, script, silent=False):
        output = io.StringIO()
        with contextlib.redirect_stdout(output):
            running.run_launch(["/bin/sh", "-c", script], self.folder, silent)
        return output.getvalue()

    def test_output_is_shown_unless_silent(self):
        self.assertEqual(self.run_script("echo one; echo two >&2"), "one\ntwo\n")
        self.assertEqual(self.run_script("echo one", silent=True), "")

    def test_a_failure_has_the_message_of_the_task(self):
        self.write("logs/worker-1.log",
                   "muster 0.1.0\nworker: an earlier one\nworker: no file x\n  line two\n")
        with self.assertRaises(MusterError) as caught:
            self.run_script("echo 'worker 0 | fine'; "
                            "echo 'launch   | the job has failed: worker 1 exited with status 7';"
                            "echo 'ps 0     | ps: stopped by a signal'; exit 7")
        error = caught.exception
        self.assertEqual(error.exit_code, 7)
        self.assertEqual(error.log_dir, os.path.join(self.folder, "logs"))
        self.assertIn("worker 1: no file x\n  line two (exit status 7; logs in", str(error))

    def test_a_failure_on_another_machine_has_the_message_in_the_output(self):
        with self.assertRaisesRegex(MusterError, "^worker: no file x "):
            self.run_script("echo 'worker: no file x'; echo 'srun: error: node1: task 1'; exit 2")
        with self.assertRaisesRegex(MusterError, "^srun: error: node1"):
            self.run_script("echo 'srun: error: node1: task 1'; echo 'the end'; exit 2")

    def test_without_a_log_the_message_is_that_of_launch(self):
        self.assertEqual(
            running.failure_message("/none", ["launch | the job has failed: ps 0 was killed"]),
            "ps 0 was killed")
        self.assertEqual(running.failure_message("/none", ["launch: --job: cannot read a.job",
                                                           "Try: launch --help"]),
                         "--job: cannot read a.job")
        self.assertEqual(running.failure_message("/none", []), "launch ended with an error")

    def test_the_command_gets_the_terminal(self):
        caller = self.write("caller.py", textwrap.dedent("""\
            import sys
            from muster import errors, running
            try:
                running.run_launch(["/bin/sh", "-c", sys.argv[1]], ".")
            except errors.MusterError as error:
                print(error, error.exit_code)
            """))
        controller, terminal = pty.openpty()
        script = "test -t 1 && echo on a terminal; echo 'launch: no job' >&2; exit 2"
        process = subprocess.Popen([sys.executable, "-B", caller, script], stdout=terminal,
                                   stderr=subprocess.PIPE, env=self.environ, text=True)
        os.close(terminal)
        shown = b""
        with contextlib.suppress(OSError):  # The end of a terminal is an OSError.
            while chunk := os.read(controller, 1024):
                shown += chunk
        os.close(controller)
        self.assertEqual(process.communicate()[1], "launch: no job\n")
        self.assertEqual(shown.decode().splitlines(),
                         ["on a terminal", "no job (exit status 2) 2"])

    def test_an_interrupt_is_passed_on_and_waited_for(self):
        # The script interrupts the caller once it is ready, and ends when it is interrupted
        # itself.
        self.write("caller.py", textwrap.dedent("""\
            import sys
            from muster import running
            try:
                running.run_launch(["/bin/sh", "-c", sys.argv[1]], ".")
            except KeyboardInterrupt:
                print("interrupted")
            """))
        script = ("tail -f /dev/null >/dev/null 2>&1 & child=$!; "
                  "trap 'kill $child; echo ended in order; exit 130' INT; "
                  "kill -INT $PPID; wait $child")
        output = subprocess.run(
            [sys.executable, "-B", os.path.join(self.folder, "caller.py"), script],
            env=self.environ, stdout=subprocess.PIPE, timeout=60, check=True, text=True,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler)).stdout
        self.assertEqual(output, "ended in order\ninterrupted\n")

    def test_the_command_is_fed_in_the_thread_that_calls(self):
        # The script ends when the file exists.
        fed = os.path.join(self.folder, "fed")
        output = io.StringIO()
        threads = []

        def feed(is_needed):
            threads.append((threading.get_ident(), is_needed()))
            self.write("fed", "")
            while is_needed():
                time.sleep(0.001)

        with contextlib.redirect_stdout(output):
            running.run_launch(["/bin/sh", "-c", f"until test -e {fed}; do :; done; echo fed"],
                               self.folder, feed=feed)
        self.assertEqual(threads, [(threading.get_ident(), True)])
        self.assertEqual(output.getvalue(), "fed\n")

    def test_an_error_of_the_feed_ends_the_command(self):
        def feed(_):
            self.await_file(os.path.join(self.folder, "ready"))
            self.await_text(os.path.join(self.folder, "ready"), "ready")
            raise KeyError("lost")

        output = io.StringIO()
        script = ("tail -f /dev/null >/dev/null 2>&1 & child=$!; "
                  "trap 'kill $child; echo ended in order; exit 0' TERM; "
                  f"echo ready > {self.folder}/ready; wait $child")
        with contextlib.redirect_stdout(output), self.assertRaisesRegex(KeyError, "lost"):
            running.run_launch(["/bin/sh", "-c", script], self.folder, feed=feed)
        self.assertEqual(output.getvalue(), "ended in order\n")

    def test_an_interrupt_reaches_the_feed(self):
        self.write("caller.py", textwrap.dedent("""\
            import sys, time
            from muster import running

            def feed(is_needed):
                try:
                    open(sys.argv[2], "w").close()
                    while True:  # Code that knows nothing of the command.
                        time.sleep(60)
                except KeyboardInterrupt:
                    print("the feed is interrupted", flush=True)
                    raise
            try:
                running.run_launch(["/bin/sh", "-c", sys.argv[1]], ".", feed=feed)
            except KeyboardInterrupt:
                print("interrupted")
            """))
        ready = os.path.join(self.folder, "ready")
        script = ("tail -f /dev/null >/dev/null 2>&1 & child=$!; "
                  f"trap 'kill $child; exit 130' INT; until test -e {ready}; do :; done; "
                  "kill -INT $PPID; wait $child")
        output = subprocess.run(
            [sys.executable, "-B", os.path.join(self.folder, "caller.py"), script, ready],
            env=self.environ, stdout=subprocess.PIPE, timeout=60, check=True, text=True,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler)).stdout
        self.assertEqual(output, "the feed is interrupted\ninterrupted\n")

    def test_no_handler_of_forks_runs(self):
        # JAX registers such a handler; Python 3.12 has one for processes with threads.
        script = self.write("caller.py", textwrap.dedent("""\
            import os
            from muster import running
            os.register_at_fork(before=lambda: print("a fork", flush=True))
            running.run_launch(["/bin/echo", "started"], ".")
            """))
        output = subprocess.run([sys.executable, "-B", script], env=self.environ, timeout=60,
                                stdout=subprocess.PIPE, check=True, text=True).stdout
        self.assertEqual(output, "started\n")

    def test_the_command_ends_with_the_process(self):
        # The script keeps the pipe open until SIGTERM ends it.
        script = ("tail -f /dev/null & child=$!; "
                  "trap 'kill $child; echo ended in order; exit 0' TERM; echo ready; wait $child")
        caller = self.write("caller.py", textwrap.dedent("""\
            import sys
            from muster import running
            running.run_launch(["/bin/sh", "-c", sys.argv[1]], ".")
            """))
        log = self.write("log", "")
        process = subprocess.Popen(
            [sys.executable, "-B", caller, f"exec >>{log} 2>&1; {script}; echo never"],
            env=self.environ, stdout=subprocess.DEVNULL)
        self.await_text(log, "ready")
        process.kill()
        process.wait()
        self.await_text(log, "ended in order")

    def await_file(self, path):
        end = time.monotonic() + 60
        while not os.path.exists(path):
            self.assertLess(time.monotonic(), end, f"{path} is not there after 60 s")
            time.sleep(0.01)

    def await_text(self, path, text):
        end = time.monotonic() + 60
        while time.monotonic() < end:
            with open(path, encoding="utf-8") as file:
                if text in file.read():
                    return
            time.sleep(0.01)
        self.fail(f"{path} has no {text!r} after 60 s")

    def test_a_command_that_cannot_run_is_named(self):
        with self.assertRaisesRegex(MusterError, "cannot run /none/launch: .*No such file"):
            running.run_launch(["/none/launch"], self.folder, silent=True)


class ExecutablesTest(unittest.TestCase):

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def make(self, path):
        path = os.path.join(self.folder, path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8"):
            pass
        os.chmod(path, 0o755)
        return path

    def find(self, **environ):
        return executables.find_launch(environ, os.path.join(self.folder, "package"))

    def test_order_of_places(self):
        with self.assertRaisesRegex(FileNotFoundError, "set MUSTER_BIN"):
            self.find()
        on_path = self.make("path/launch")
        path = os.path.dirname(on_path)
        self.assertEqual(self.find(PATH=path), on_path)
        beside = self.make("package/bin/launch")
        self.assertEqual(self.find(PATH=path), beside)
        built = self.make("build/deploy/launch/launch")
        build = os.path.join(self.folder, "build")
        self.assertEqual(self.find(PATH=path, MUSTER_BIN=build), built)
        installed = self.make("build/launch")
        self.assertEqual(self.find(MUSTER_BIN=build), installed)
        # If MUSTER_BIN names a folder without launch, other places are not searched.
        with self.assertRaisesRegex(FileNotFoundError, "/none/launch"):
            self.find(PATH=path, MUSTER_BIN="/none")


class HistoryTest(unittest.TestCase):

    def test_values_that_json_cannot_write_are_nan(self):
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, "summary.json"), "w", encoding="utf-8") as file:
                json.dump({"history": {"epoch": [2, 3], "loss": [0.5, None], "acc": [1, 1]}}, file)
            epochs, logs = history.read_history(folder)
        self.assertEqual(epochs, [2, 3])
        self.assertEqual(sorted(logs), ["acc", "loss"])
        self.assertEqual(logs["loss"][0], 0.5)
        self.assertNotEqual(logs["loss"][1], logs["loss"][1])


if __name__ == "__main__":
    unittest.main()
