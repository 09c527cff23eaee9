"""What README.md prints is what the tests run.

A block that stands behind `<!-- the text of FILE -->` has to be FILE, letter for
letter; other tests run these files. Links have to lead somewhere.
"""

import os
import re
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.realpath(__file__))))
QUOTED = re.compile(r"<!-- the text of (\S+) -->\n```\w*\n(.*?)```", re.DOTALL)


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        return file.read()


class ReadmeTest(unittest.TestCase):

    def test_quoted_files_are_the_files(self):
        quoted = QUOTED.findall(read("README.md"))
        self.assertEqual([path for path, _ in quoted],
                         ["examples/ten_lines/ten_lines.cc",
                          "examples/digits/digits.job"])
        for path, text in quoted:
            self.assertEqual(text, read(path), path)

    def test_links_of_all_pages_lead_somewhere(self):
        pages = ["README.md"]
        for folder, _, names in os.walk(os.path.join(ROOT, "docs")):
            pages += [os.path.relpath(os.path.join(folder, name), ROOT)
                      for name in names if name.endswith(".md")]
        for page in pages:
            for target in re.findall(r"\]\(([^)#:]+)\)", read(page)):
                path = os.path.join(ROOT, os.path.dirname(page), target)
                self.assertTrue(os.path.exists(path), f"{page}: {target}")


if __name__ == "__main__":
    unittest.main()
