"""Compares docs/rooms.md with the BUILD files, and keeps protobuf inside rooms.

The build itself enforces the layers of bazel/layers.bzl.
"""

import re
import unittest

import rooms

# These folders may use every room, and no room may use them.
TOP = ("bench/", "deploy/", "examples/", "tests/")
PATH = re.compile(r"(?<![\w./])(?:common|proto|ps|worker|coordinator|bazel)/[\w./]*\w")


def room_of(path, folders):
    """Returns the folder in bazel/layers.bzl that contains a file."""
    return next((folder for folder in folders if path.startswith(folder + "/")), None)


def includes_of(text):
    return re.findall(r'^\s*#\s*include\s*"([^"]+)"', text or "", re.MULTILINE)


def protobuf_includes(header, read_header):
    """Yields the chains of includes by which `header` reaches a protobuf header, generated or not.

    `read_header` returns the text of a header of the source tree, and None for other headers.
    """
    chains = {header: [header]}
    names = [header]
    while names:
        name = names.pop()
        for included in includes_of(read_header(name)):
            if included in chains:
                continue
            chains[included] = [*chains[name], included]
            if included.endswith(".pb.h") or included.startswith("google/protobuf/"):
                yield " includes ".join(chains[included])
            names.append(included)


def headers_for_others(sources, folders, read_source):
    """Returns the headers that sources of other rooms include. Tests do not count."""
    used = set()
    for path in sources:
        if path.startswith(TOP) or "/testing/" in path or path.endswith("_test.cc"):
            continue
        for header in includes_of(read_source(path)):
            room = room_of(header, folders)
            if room is not None and room != room_of(path, folders):
                used.add(header)
    return used


def read_header(name):
    return rooms.read(name) if rooms.exists(name) else None


class ReaderTest(unittest.TestCase):

    def test_protobuf_includes(self):
        headers = {"a.h": '#include "b.h"\n', "b.h": '#include "a.h"\n# include "c.pb.h"'}
        self.assertEqual(list(protobuf_includes("a.h", headers.get)),
                         ["a.h includes b.h includes c.pb.h"])
        self.assertFalse(list(protobuf_includes("a.h", {"a.h": ""}.get)))

    def test_headers_for_others(self):
        sources = {"a/x.cc": '#include "a/own.h"\n#include "b/used.h"\n#include <b/no.h>',
                   "a/x_test.cc": '#include "b/tested.h"', "c/y.cc": '#include "a/own.h"'}
        self.assertEqual(headers_for_others(sources, ["a", "b"], sources.get),
                         {"b/used.h", "a/own.h"})

    def test_layers(self):
        self.assertEqual(rooms.folders_of_layers('"""Text."""\nLAYERS = [["a"], ["b", "c/d"]]\n'),
                         ["a", "b", "c/d"])

    def test_order_of_rooms(self):
        layers = ["common/a/y", "common/b", "common/a/x", "ps"]
        self.assertEqual(
            rooms.in_order(["tests/t", "ps", "common/a/x", "common/b", "common/a/y/z"], layers),
            ["common/a/y/z", "common/a/x", "common/b", "ps", "tests/t"])
        with self.assertRaisesRegex(ValueError, "common/c is in no layer"):
            rooms.in_order(["common/c"], layers)

    def test_descriptions(self):
        room = rooms.Room("a", "# One\n# two.\n# Start with x.h, y.h.\n# x.h,\n#   b/z.cc: why\n"
                               "#   it is so\n\n# More.\nload(1)\n")
        self.assertEqual(room.content, "One two.")
        self.assertEqual(room.start, ["x.h", "y.h"])
        self.assertEqual(room.answers, [("why it is so", ["x.h", "b/z.cc"])])
        self.assertEqual(room.path_of("x.h", {"a/x.h", "x.h"}.__contains__), "a/x.h")
        self.assertEqual(room.path_of("b/z.cc", {"b/z.cc"}.__contains__), "b/z.cc")
        with self.assertRaisesRegex(ValueError, "a/BUILD.bazel names y.h"):
            room.path_of("y.h", lambda path: False)

    def test_page(self):
        build = ('# One.\n# Start with x.h.\n# x.h: why\nassert_no_dependency(\n'
                 '    folders = ["b", "c"],\n    reason = "It is so.",\n)\n')
        page = rooms.page_of({"a": build}, ["a"], lambda path: True)
        self.assertIn("| `a` | One. | [x.h](../a/x.h) |\n", page)
        self.assertIn("| why | [x.h](../a/x.h) |\n", page)
        self.assertIn("| `a` | `b`, `c` | It is so. |\n", page)


class TreeTest(unittest.TestCase):

    def test_every_build_file_describes_its_folder(self):
        for folder, text in rooms.builds().items():
            self.assertTrue(
                rooms.Room(folder, text).content,
                f"{folder}/BUILD.bazel must begin with a comment that says what {folder} "
                f"contains: see tests/architecture/rooms.py")

    def test_the_page_of_rooms_is_up_to_date(self):
        self.assertTrue(rooms.read(rooms.PAGE) == rooms.page(),
                        f"{rooms.PAGE} is out of date: {rooms.COMMAND}")

    def test_the_paths_of_the_map_exist(self):
        paths = set(PATH.findall(rooms.read("docs/ARCHITECTURE.md")))
        self.assertGreater(len(paths), 20)
        for path in paths:
            self.assertTrue(rooms.exists(path), f"docs/ARCHITECTURE.md: {path}")

    def test_assertions_name_folders(self):
        with_assertions = set()
        for folder, text in rooms.builds().items():
            for folders, _ in rooms.assertions_of(text):
                with_assertions.add(folder)
                for name in folders:
                    self.assertTrue(rooms.exists(name), f"{folder}/BUILD.bazel: {name}")
        for folder in rooms.folders_of_layers(rooms.read("bazel/layers.bzl")):
            if folder.startswith("common/io/"):
                self.assertIn(folder, with_assertions)

    def test_programs_see_no_protobuf(self):
        self.assertIsNotNone(read_header("muster.h"))
        chains = list(protobuf_includes("muster.h", read_header))
        self.assertFalse(chains, "\n" + "\n".join(chains))

    def test_rooms_see_no_protobuf_of_others(self):
        headers = headers_for_others(
            rooms.tracked("*.h", "*.cc"),
            rooms.folders_of_layers(rooms.read("bazel/layers.bzl")), rooms.read)
        headers = sorted(header for header in headers if not header.startswith("proto/"))
        self.assertGreater(len(headers), 100)
        chains = [chain for header in headers
                  for chain in protobuf_includes(header, read_header)]
        self.assertFalse(chains, "\n" + "\n".join(chains))


if __name__ == "__main__":
    unittest.main()
