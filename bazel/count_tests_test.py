"""Tests what count_tests.py reads from build events, reports and logs."""

import os
import subprocess
import sys
import tempfile
import unittest
import json

SCRIPT = os.path.join(os.path.dirname(os.path.realpath(__file__)), "count_tests.py")

XML = """<?xml version="1.0" encoding="UTF-8"?>
<testsuites tests="3"><testsuite name="A" tests="3">
  <testcase name="Runs" status="run" result="completed" />
  <testcase name="One" status="run" result="skipped">
    <skipped message="a_test.cc:3&#x0A;no Keras"><![CDATA[a_test.cc:3
no Keras]]></skipped>
  </testcase>
  <testcase name="Two" status="run" result="skipped">
    <skipped message="a_test.cc:9&#x0A;no Keras"><![CDATA[a_test.cc:9
no Keras]]></skipped>
  </testcase>
</testsuite></testsuites>
"""


class CountTestsTest(unittest.TestCase):

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.events = []

    def add(self, label, status, xml="", log=""):
        files = []
        for name, text in (("test.xml", xml), ("test.log", log)):
            path = os.path.join(self.folder, f"{len(self.events)} {name}")
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
            files.append({"name": name, "uri": "file://" + path.replace(" ", "%20")})
        self.events.append({"id": {"testResult": {"label": label}},
                            "testResult": {"status": status, "testActionOutput": files}})
        self.events.append({"id": {"testSummary": {"label": label}},
                            "testSummary": {"overallStatus": status}})

    def run_script(self, status):
        path = os.path.join(self.folder, "events")
        with open(path, "w", encoding="utf-8") as file:
            file.writelines(json.dumps(event) + "\n" for event in self.events)
        done = subprocess.run([sys.executable, "-B", SCRIPT, path, str(status)],
                              capture_output=True, text=True)
        return done.returncode, done.stdout.splitlines()

    def test_counts_targets_and_skipped_cases(self):
        self.add("//a:a_test", "PASSED", xml=XML)
        self.add("//b:b_test", "PASSED", log="MUSTER_B is not set: the test is skipped.\n")
        self.add("//c:c_test", "PASSED", log="skipped: no user namespace\n")
        self.add("//d:d_test", "PASSED", log="test_d (T.test_d) ... skipped 'no d'\nOK\n")
        self.add("//e:e_test", "PASSED", log="2 messages were skipped: all is well\n")
        code, lines = self.run_script(0)
        self.assertEqual(code, 0)
        self.assertEqual(lines[0], "skipped 2: no Keras (//a:a_test)")
        self.assertCountEqual(lines[1:4], ["skipped 1: MUSTER_B is not set (//b:b_test)",
                                           "skipped 1: no user namespace (//c:c_test)",
                                           "skipped 1: no d (//d:d_test)"])
        self.assertEqual(lines[4:], ["5 passed, 0 failed, 5 skipped"])

    def test_a_failure_and_a_broken_build_fail(self):
        self.add("//a:a_test", "FAILED")
        self.events.append({"id": {"targetCompleted": {"label": "//b"}}, "completed": {}})
        code, lines = self.run_script(3)
        self.assertEqual((code, lines), (1, ["0 passed, 2 failed, 0 skipped"]))

    def test_a_build_that_came_to_no_test_fails(self):
        self.assertEqual(self.run_script(1), (1, ["0 passed, 1 failed, 0 skipped"]))

    def test_a_missing_report_skips_nothing(self):
        self.add("//a:a_test", "PASSED")
        for file in self.events[0]["testResult"]["testActionOutput"]:
            file["uri"] = "file:///no/such/file"
        self.assertEqual(self.run_script(0), (0, ["1 passed, 0 failed, 0 skipped"]))


if __name__ == "__main__":
    unittest.main()
