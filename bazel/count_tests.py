"""Counts the tests of one `bazel test`.

  count_tests.py EVENTS STATUS

EVENTS is the file that --build_event_json_file wrote, STATUS the exit status of
bazel. Prints which cases were skipped and why, then "N passed, N failed, N skipped".
The exit status is 0 only if every test was built, ran and passed.

Passed and failed tests are targets. Skipped ones are cases of GoogleTest, tests of
unittest that run verbosely, and scripts that print "skipped: REASON" or "REASON: the
test is skipped" at the beginning of a line.
"""

import collections
import json
import os
import re
import sys
import urllib.parse
import xml.etree.ElementTree as ElementTree

# Bazel's exit status if no target on the command line is a test.
NO_TESTS_STATUS = 4

PRINTED = re.compile(r"^skipped: (.+)$|^(.+): the test is skipped\b|"
                     r"\.\.\. skipped ['\"](.+)['\"]$", re.MULTILINE)
NAMES_SHOWN = 3


def count(lines):
    """Returns (passed, failed): the number of test targets in build events."""
    verdicts = {}
    for event in lines:
        label = event.get("id", {}).get("testSummary", {}).get("label")
        if label and "testSummary" in event:
            verdicts[label] = event["testSummary"]["overallStatus"] == "PASSED"
        label = event.get("id", {}).get("targetCompleted", {}).get("label")
        if label and not event.get("completed", {}).get("success"):
            # A target that cannot be built fails, even if it is not a test.
            verdicts.setdefault(label, False)
    passed = sum(verdicts.values())
    return passed, len(verdicts) - passed


def outputs(events):
    """Yields (label, {file name: path}) of each run of a test, and of each shard."""
    for event in events:
        label = event.get("id", {}).get("testResult", {}).get("label")
        files = event.get("testResult", {}).get("testActionOutput", [])
        if label and files:
            yield label, {file["name"]: urllib.parse.unquote(
                urllib.parse.urlparse(file.get("uri", "")).path) for file in files}


def read(path):
    if not path or not os.path.exists(path):
        return ""
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read()


def reasons_of_cases(xml):
    """Yields the reasons of the cases that GoogleTest skipped, from its report."""
    try:
        root = ElementTree.fromstring(xml)
    except ElementTree.ParseError:
        return
    for skipped in root.iter("skipped"):
        # The first line is the place in the source.
        text = (skipped.get("message") or skipped.text or "").strip()
        place, _, reason = text.partition("\n")
        yield (reason or place).strip() or "no reason given"


def skipped(events):
    """Returns {reason: {label: number of cases}}."""
    found = collections.defaultdict(collections.Counter)
    for label, files in outputs(events):
        reasons = list(reasons_of_cases(read(files.get("test.xml"))))
        if not reasons:
            reasons = [next(filter(None, match)).strip()
                       for match in PRINTED.findall(read(files.get("test.log")))]
        for reason in reasons:
            found[reason][label] += 1
    return found


def lines_of(found):
    for reason, labels in sorted(found.items(), key=lambda item: -sum(item[1].values())):
        names = sorted(labels)[:NAMES_SHOWN]
        if len(labels) > NAMES_SHOWN:
            names.append(f"and {len(labels) - NAMES_SHOWN} more")
        yield f"skipped {sum(labels.values())}: {reason} ({', '.join(names)})"


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        events = [json.loads(line) for line in file]
    passed, failed = count(events)
    status = int(sys.argv[2])
    if status not in (0, NO_TESTS_STATUS) and failed == 0:
        failed = 1  # The build failed.
    found = skipped(events)
    for line in lines_of(found):
        print(line)
    total = sum(sum(labels.values()) for labels in found.values())
    print(f"{passed} passed, {failed} failed, {total} skipped")
    return 1 if failed or passed == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
