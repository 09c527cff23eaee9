"""Counts the tests of one `bazel test`.

  count_tests.py EVENTS STATUS

EVENTS is what --build_event_json_file wrote, STATUS what bazel ended with.
Prints "N passed, N failed" and ends with a status that is 0 only if every test
was built, ran and passed.
"""

import json
import sys

# Bazel's own, when no target on the command line is a test.
NO_TESTS_STATUS = 4


def count(lines):
    """(passed, failed) over the test targets named in build events."""
    verdicts = {}
    for line in lines:
        event = json.loads(line)
        label = event.get("id", {}).get("testSummary", {}).get("label")
        if label and "testSummary" in event:
            verdicts[label] = event["testSummary"]["overallStatus"] == "PASSED"
        label = event.get("id", {}).get("targetCompleted", {}).get("label")
        if label and not event.get("completed", {}).get("success"):
            # What cannot be built counts whether or not it is a test.
            verdicts.setdefault(label, False)
    passed = sum(verdicts.values())
    return passed, len(verdicts) - passed


def main():
    with open(sys.argv[1], encoding="utf-8") as events:
        passed, failed = count(events)
    status = int(sys.argv[2])
    if status not in (0, NO_TESTS_STATUS) and failed == 0:
        failed = 1  # The build itself.
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or passed == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
