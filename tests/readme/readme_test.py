"""Checks README.md and the other documents against the source tree.

A block after `<!-- the text of FILE -->` must equal FILE, which other tests run.
Relative links and their anchors must resolve. Flags and paths that README.md and the
pages for users name must exist. The indexes list each page once.
"""

import os
import re
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.realpath(__file__))))
QUOTED = re.compile(r"<!-- the text of (\S+) -->\n```\w*\n(.*?)```", re.DOTALL)
LINK = re.compile(r"\]\(([^)]+)\)")
FENCE = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)
FLAG = re.compile(r"(?<![\w-])--([a-z]\w*)")
DEFINED_FLAG = re.compile(r"ABSL_FLAG\(\s*[^\n]+?,\s*(\w+),")
# A row of the table of task flags.
TABLED_FLAG = re.compile(r"^  FLAG\(\s*[^\n,]+,\s*(\w+),", re.MULTILINE)
PATH = re.compile(r"`([\w./]+/[\w.]*)`|bazel-bin/([\w/]+)")

README_LINES_MAX = 150
# Pages whose flags and paths are checked: those that new users read.
USER_PAGES = ["README.md"] + [f"docs/{page}.md" for page in (
    "install", "first_training", "concepts", "training", "clusters", "gpus", "watching",
    "results", "comparison", "limitations")]

# Flags of other programs that these pages name, and flags without ABSL_FLAG.
OTHER_FLAGS = {"cflags", "config", "explain", "flagfile", "help", "libs", "logdir", "set"}


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        return file.read()


def pages():
    found = ["README.md", "CONTRIBUTING.md", "CHANGELOG.md", "bench/README.md"]
    for folder, _, names in os.walk(os.path.join(ROOT, "docs")):
        found += [os.path.relpath(os.path.join(folder, name), ROOT)
                  for name in names if name.endswith(".md")]
    return found


def anchors(text):
    """Returns the anchors that GitHub gives to the headings of a page."""
    headings = re.findall(r"^#+ (.*)$", FENCE.sub("", text), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-")
            for heading in headings}


def listed_count(index, page):
    """Returns the number of rows of an index that link to a page.

    Links to a section of a page do not count.
    """
    return len(re.findall(rf"^\|.*?\]\({re.escape(page)}\)", index, re.MULTILINE))


def defined_flags():
    flags = set(OTHER_FLAGS)
    for folder, _, names in os.walk(ROOT):
        if "/bazel-" in folder or "/.git" in folder:
            continue
        for name in names:
            if name.endswith(".cc") and not name.endswith("_test.cc"):
                flags.update(DEFINED_FLAG.findall(
                    read(os.path.join(folder, name))))
    flags.update(TABLED_FLAG.findall(read("common/net/process/task_flag_table.h")))
    for script in ["quickstart.sh", "deploy/install/install.sh",
                   "deploy/debian/make_packages.sh", "deploy/python/muster/export_command.py"]:
        flags.update(FLAG.findall(read(script)))
    return flags


class ReadmeTest(unittest.TestCase):

    def test_quoted_files_are_the_files(self):
        quoted = QUOTED.findall(read("README.md"))
        self.assertEqual([path for path, _ in quoted],
                         ["examples/digits/digits.job",
                          "examples/ten_lines/ten_lines.cc"])
        for path, text in quoted:
            self.assertEqual(text, read(path), path)

    def test_readme_is_short(self):
        self.assertLessEqual(read("README.md").count("\n"), README_LINES_MAX)

    def test_the_indexes_list_each_page_once(self):
        for folder, headings in (("docs", ["## For users", "## For contributors"]),
                                 ("docs/design", [])):
            index = read(f"{folder}/README.md")
            for heading in headings:
                self.assertIn(f"\n{heading}\n", index)
            for page in os.listdir(os.path.join(ROOT, folder)):
                if page.endswith(".md") and page != "README.md":
                    self.assertEqual(listed_count(index, page), 1,
                                     f"{folder}/README.md must list {page} once")

    def test_links_of_all_pages_resolve(self):
        for page in pages():
            for target in LINK.findall(FENCE.sub("", read(page))):
                if "://" in target:
                    continue
                path, _, anchor = target.partition("#")
                path = os.path.normpath(
                    os.path.join(os.path.dirname(page), path)) if path else page
                self.assertTrue(os.path.exists(os.path.join(ROOT, path)),
                                f"{page}: {target}")
                if anchor:
                    self.assertIn(anchor, anchors(read(path)),
                                  f"{page}: {target}")

    def test_pages_are_counted(self):
        index = "| q | [a](a.md), [b](b.md) |\n| [b](b.md#part) |\nSee [a](a.md).\n"
        self.assertEqual(listed_count(index, "a.md"), 1)
        self.assertEqual(listed_count(index, "b.md"), 1)
        self.assertEqual(listed_count(index, "c.md"), 0)

    def test_flags_of_user_pages_exist(self):
        flags = defined_flags()
        self.assertIn("job", flags)
        for page in USER_PAGES:
            unknown = [flag for flag in FLAG.findall(read(page))
                       if flag not in flags and flag.removeprefix("no") not in flags]
            self.assertFalse(unknown, page)

    def test_paths_of_user_pages_exist(self):
        for page in USER_PAGES:
            for path, binary in PATH.findall(read(page)):
                if binary:  # A target: its folder has a BUILD file.
                    path = os.path.dirname(binary) + "/BUILD.bazel"
                if path.startswith(("run/", "logs/")):
                    continue
                self.assertTrue(os.path.exists(os.path.join(ROOT, path)), f"{page}: {path}")

    def test_the_checks_find_what_they_look_for(self):
        self.assertEqual(anchors("# Job `file`, again\n```\n# no\n```\n"),
                         {"job-file-again"})
        self.assertEqual(FLAG.findall("a --job=x --no_such `--b` x--c ---d"),
                         ["job", "no_such", "b"])
        self.assertEqual(
            DEFINED_FLAG.findall("ABSL_FLAG(\n    std::string, a_b, \"\","
                                 "ABSL_FLAG(absl::optional<int>, c, 1,"),
            ["a_b", "c"])
        self.assertEqual(
            TABLED_FLAG.findall("  FLAG(int, a_b, -1, kAll, \\\n  FLAG(std::string, c, \"\","),
            ["a_b", "c"])
        self.assertEqual(PATH.findall("`a/b.h` `c` bazel-bin/d/e"),
                         [("a/b.h", ""), ("", "d/e")])


if __name__ == "__main__":
    unittest.main()
