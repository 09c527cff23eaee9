"""Tests each rule on text that violates it, and then applies all rules to the tree."""

import os
import tempfile
import unittest

import tidy

# The folder of the sources themselves, to which the build links.
ROOT = os.path.realpath(os.path.join(
    os.path.dirname(os.path.realpath(tidy.__file__)), "..", ".."))


def function_of(lines, head="int F(int x) {"):
    return "\n".join([head] + ["  x;"] * (lines - 2) + ["}", ""])


class RulesTest(unittest.TestCase):

    def complaints(self, rule, path, text):
        return list(rule(path, text))

    def test_long_files(self):
        self.assertTrue(self.complaints(tidy.length_of_file, "a.cc", "\n" * 601))
        self.assertFalse(self.complaints(tidy.length_of_file, "a.cc", "\n" * 600))
        self.assertFalse(self.complaints(tidy.length_of_file, "a.md", "\n" * 601))

    def test_long_functions(self):
        rule = tidy.length_of_functions
        self.assertFalse(self.complaints(rule, "a.cc", function_of(70)))
        self.assertTrue(self.complaints(rule, "a.cc", function_of(71)))
        self.assertTrue(self.complaints(
            rule, "a.cc", function_of(71, "int F(int x,\n      int y) {")))
        self.assertTrue(self.complaints(
            rule, "a.cc", function_of(71, "TEST(A, B) {")))
        method = "class C {\n" + "\n".join(
            "  " + line for line in function_of(71).split("\n")[:-1]) + "\n};\n"
        self.assertTrue(self.complaints(rule, "a.h", method))
        table = function_of(90, "constexpr int kTable[] = {").replace("}", "};")
        self.assertFalse(self.complaints(rule, "a.cc", table))
        many = "int a;\n" + function_of(40) + "\n" + function_of(40)
        self.assertFalse(self.complaints(rule, "a.cc", many))

    def test_header_guards(self):
        rule = tidy.header_guard
        text = "#ifndef A_B_H_\n#define A_B_H_\n\n#endif  // A_B_H_\n"
        self.assertFalse(self.complaints(rule, "a/b.h", text))
        self.assertTrue(self.complaints(rule, "a/c.h", text))
        self.assertTrue(self.complaints(rule, "a/b.h", text.replace("  //", "")))

    def test_banned_words(self):
        rule = tidy.banned_words
        for text in ("// TO" "DO: later", "see issue" " 12", "/root" "/.cache",
                     "../shared" "/design.md", "pypi" ".org/simple"):
            self.assertTrue(self.complaints(rule, "a.cc", text), text)
        for text in ("an issue of style", "../shared/data/mnist", "network/home",
                     "the root/", "shared/memory.h"):
            self.assertFalse(self.complaints(rule, "a.cc", text), text)

    def test_terms(self):
        rule = tidy.unusual_terms

        def found(path, text):
            return [int(complaint.split(":")[1])
                    for complaint in self.complaints(rule, path, text)]

        page = "docs/a.md"
        self.assertEqual(found(page, "one\n\nThey are of one mind.\n"), [3])
        self.assertEqual(found(page, "The Farewell, and its kin"), [1, 1])
        self.assertEqual(found(page, "```\nfarewell\n```\nmended"), [4])
        self.assertEqual(found(page, "`farewell.h`, `class\nDoor` and mend"), [2])
        for text in ("kindly", "outdoor", "a federation", "door_", "cut off",
                     "short-cut", "recommend"):
            self.assertEqual(found(page, text), [], text)
        # The list of terms contains them.
        self.assertEqual(found("docs/style.md", "farewell"), [])

    def test_prose_is_told_from_code(self):
        def prose(path, text):
            return [(number, words.strip())
                    for number, words in tidy.prose(path, text)]

        self.assertEqual(
            prose("a.cc", '#include "door.h"\nint door;  // One.\n'
                          'F("two // still", \'"\');\n/* three\nfour */\n'
                          'R"(five\nsix)"; x = 1\'000;  // Seven.\n'),
            [(2, "One."), (3, "two // still"), (4, "three"), (5, "four"),
             (6, "five"), (7, "six"), (7, "Seven.")])
        self.assertEqual(prose("a.sh", "a=$#\n# One.\nb  # Two."),
                         [(2, "# One."), (3, "# Two.")])

    def test_terms_are_documented(self):
        with open(os.path.join(ROOT, "docs", "style.md")) as file:
            style = file.read()
        listed = style.split("## Terms to avoid")[1].split("## Glossary")[0]
        rows = "\n".join(row.split("|")[1] for row in listed.split("\n")
                         if row.startswith("|"))
        for words, _ in tidy.TERMS:
            self.assertRegex(rows, f"(?i){words}")

    def test_sleeps(self):
        rule = tidy.sleeps_in_tests
        self.assertTrue(self.complaints(rule, "a_test.cc", "absl::SleepFor(d);"))
        self.assertTrue(self.complaints(rule, "tests/e2e/a.cc", "sleep(1);"))
        self.assertFalse(self.complaints(rule, "a.cc", "absl::SleepFor(d);"))
        self.assertFalse(self.complaints(rule, "tests/simulation/a.cc", "sleep(1);"))

    def test_endless_waits(self):
        rule = tidy.endless_waits_in_tests
        self.assertTrue(self.complaints(
            rule, "a_test.cc", "while (!done) std::this_thread::yield();"))
        self.assertTrue(self.complaints(
            rule, "tests/e2e/a.cc", "done.WaitForNotification();"))
        self.assertFalse(self.complaints(
            rule, "a_test.cc", "EXPECT_TRUE(done.WaitForNotificationWithTimeout(t));"))
        self.assertFalse(self.complaints(rule, "a.cc", "done.WaitForNotification();"))

    def test_braces(self):
        rule = tidy.braces
        self.assertTrue(self.complaints(rule, "a.cc", "  if (a)\n    b();\n"))
        self.assertTrue(self.complaints(rule, "a.h", "  for (int i : all)\n    b(i);\n"))
        self.assertFalse(self.complaints(rule, "a.cc", "  if (a) b();\n"))
        self.assertFalse(self.complaints(rule, "a.cc", "  if (a) {\n    b();\n  }\n"))

    def test_visibility(self):
        rule = tidy.default_visibility
        library = 'cc_library(\n    name = "a",\n    visibility = ["//%s"],\n)\n'
        public = library % "visibility:public"
        self.assertTrue(self.complaints(rule, "a/BUILD.bazel", public))
        self.assertFalse(self.complaints(
            rule, "a/BUILD.bazel", library % "a:__pkg__"))
        self.assertFalse(self.complaints(
            rule, "BUILD.bazel", public.replace('"a"', '"muster"')))

    def test_line_length(self):
        rule = tidy.line_length
        self.assertTrue(self.complaints(rule, "a.py", "x" * 101))
        self.assertFalse(self.complaints(rule, "a.py", "x" * 100 + "\nx"))

    def test_layout(self):
        with tempfile.TemporaryDirectory() as root:
            for name, text in (("a.cc", "int  x;\n"), ("b.cc", "int x;\n")):
                with open(os.path.join(root, name), "w") as file:
                    file.write(text)
            complaints = list(tidy.layout(root, ["a.cc", "b.cc"]))
        self.assertEqual(len(complaints), 1)
        self.assertIn("a.cc:1", complaints[0])

    def test_spelling(self):
        with tempfile.TemporaryDirectory() as root:
            for name, text in (("a.cc", "int x;\n// Rec" "ieves it.\n"),
                               ("b.md", "`UpTo` receives it.\n")):
                with open(os.path.join(root, name), "w") as file:
                    file.write(text)
            complaints = list(tidy.spelling(root, ["a.cc", "b.md"]))
        self.assertEqual(len(complaints), 1)
        self.assertIn("a.cc:2: Rec" "ieves ==> Receives", complaints[0])

    def test_types_of_one_name(self):
        rule = tidy.types_of_one_name
        plan = "namespace muster {\nclass Plan final : public A {\n};\n}\n"
        self.assertTrue(list(rule({"a/b.h": plan, "c/d.h": "struct Plan {"})))
        self.assertFalse(list(rule({"a/b.h": plan, "c/d.h": "class Plan;"})))
        self.assertFalse(list(rule({"a/b.h": plan, "c/d.h": "  class Plan {"})))
        self.assertFalse(list(rule({"a/b.h": plan, "c/d.cc": plan})))

    def test_files_of_one_name(self):

        def found(*paths, text=""):
            return list(tidy.files_of_one_name({path: text for path in paths}))

        self.assertEqual(found("a/b/x.h", "a/c/x.h"),
                         ["a/c/x.h has the name of a file in a/b/; rename one"])
        self.assertTrue(found("a/x.cc", "a/b/x.cc"))
        self.assertTrue(found("a/main.cc", "b/main.cc"))
        self.assertFalse(found("a/b/x.h", "a/c/x.cc"))
        self.assertFalse(found("a/b/x.md", "a/c/x.md"))
        self.assertFalse(found("a/b/__init__.py", "a/c/__init__.py"))
        # Rooms that are farther apart count only if one includes the other on the same floor.
        far = ("common/a/b/x.cc", "common/a/c/d/x.cc")
        self.assertFalse(found(*far))
        self.assertTrue(found(*far, text='#include "common/a/c/d/y.h"\n'))
        self.assertFalse(found("common/a/b/x.cc", "common/e/c/x.cc",
                               text='#include "common/e/c/y.h"\n'))

    def test_missing_includes(self):

        def found(texts):
            return list(tidy.missing_includes(texts))

        use = 'std::vector<int> v;  // absl::StrCat(\n'
        self.assertEqual(found({"a/b.cc": use}),
                         ["a/b.cc: std::vector is used without vector"])
        self.assertFalse(found({"a/b.cc": "#include <vector>\n" + use}))
        own = '#include "a/b.h"\n' + use
        self.assertTrue(found({"a/b.cc": own, "a/b.h": "int x;\n"}))
        self.assertFalse(found({"a/b.cc": own, "a/b.h": "#include <vector>\n"}))
        self.assertFalse(found({"a/b.cc": 'f("std::vector<int>");\n'}))
        self.assertFalse(found({"a/b.md": use}))

    def test_small_files(self):
        rule = tidy.small_files
        self.assertTrue(self.complaints(rule, "a/b.cc", "std::ifstream file(path);"))
        self.assertTrue(self.complaints(rule, "a/b.h", "FILE* f = fopen(path, x);"))
        self.assertFalse(self.complaints(rule, "a/b.cc", "std::ofstream file(path);"))
        for path in ("a/b_test.cc", "tests/b.cc", "a/testing/b.cc", "a/test_b.h"):
            self.assertFalse(self.complaints(rule, path, "std::ifstream file(p);"))

    def test_targets_that_do_not_exist(self):

        def found(path, text):
            return list(tidy.targets_that_do_not_exist(
                {path: text, "deploy/a/BUILD.bazel": 'name = "a"\nname = "b"\n',
                 "room/BUILD.bazel": "muster_room()\n\nmuster_tests()\n"}))

        self.assertEqual(found("x.cc", 'f("(bazel build //a)");\n'),
                         ["x.cc:1: there is no target //a:a"])
        self.assertEqual(found("x.cc", '\n{"a", "//a"},\n'),
                         ["x.cc:2: there is no target //a:a"])
        self.assertTrue(found("x.md", "`bazel run //deploy/a:c -- //x`\n"))
        self.assertFalse(found("x.md", "`bazel run //deploy/a:b -- --x`\n"))
        self.assertFalse(found("x.sh", "bazel build //deploy/a //deploy/a:all\n"))
        self.assertFalse(found("x.md", "bazel test //... or //a:my_test\n"))
        self.assertFalse(found("x.md", "bazel test //room:tests //room\n"))
        self.assertTrue(found("x.md", "bazel test //deploy/a:tests\n"))
        self.assertFalse(found("x_test.cc", 'f("//a");\n'))

    def test_precompiled_headers_are_covered(self):
        # Nearly every header includes these.
        everywhere = {"cstddef", "cstdint", "string", "type_traits", "utility",
                      "absl/status/status.h", "absl/status/statusor.h",
                      "absl/strings/string_view.h", "absl/time/time.h",
                      "absl/types/span.h"}
        with open(os.path.join(ROOT, "bazel", "precompiled_headers.h"),
                  encoding="utf-8") as file:
            headers = set(tidy.includes(file.read()))
        self.assertEqual({h for h in headers if not h.startswith("google/")},
                         everywhere | set(tidy.USES))


class TreeTest(unittest.TestCase):

    def test_the_tree_is_tidy(self):
        complaints = tidy.check_tree(ROOT)
        self.assertFalse(complaints, "\n" + "\n".join(complaints))


if __name__ == "__main__":
    unittest.main()
