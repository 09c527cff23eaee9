"""Tests that joined sources compile, and that complaints name the source and its line."""

import os
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))

import join_tests  # noqa: E402

SOURCE = """#include <cstdint>

#define ANSWER %d

namespace muster {
namespace {

int Answer() { return ANSWER; }
static_assert(ANSWER == %d);

}  // namespace
}  // namespace muster
"""


def complaints(text):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "joined.cc")
        with open(path, "w", encoding="utf-8") as joined:
            joined.write(text)
        return subprocess.run(["clang", "-std=c++20", "-fsyntax-only", path],
                              capture_output=True, text=True, check=False).stderr


class JoinTestsTest(unittest.TestCase):

    def test_sources_may_use_one_name_for_different_things(self):
        self.assertEqual(complaints(join_tests.join([("a_test.cc", SOURCE % (1, 1)),
                                                     ("b_test.cc", SOURCE % (2, 2))])), "")

    def test_complaints_name_the_source_and_its_line(self):
        self.assertIn("b_test.cc:9:1: error",
                      complaints(join_tests.join([("a_test.cc", SOURCE % (1, 1)),
                                                  ("b_test.cc", SOURCE % (2, 3))])))


if __name__ == "__main__":
    unittest.main()
