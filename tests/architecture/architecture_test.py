"""Compares docs/ARCHITECTURE.md with the build, and keeps protobuf inside rooms.

The build itself enforces the layers of bazel/layers.bzl. BUILD files are read as Python, whose
syntax they share.
"""

import ast
import os
import re
import subprocess
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.realpath(__file__))))
# They use everything, and nothing uses them.
TOP = ("bench/", "deploy/", "examples/", "tests/")


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        return file.read()


def tracked(*patterns):
    return subprocess.run(["git", "-C", ROOT, "ls-files", *patterns], capture_output=True,
                          check=True, text=True).stdout.split()


def folders_of_layers(text):
    """The folders that bazel/layers.bzl names, from the bottom up."""
    for node in ast.parse(text).body:
        if isinstance(node, ast.Assign) and node.targets[0].id == "LAYERS":
            return [folder for layer in ast.literal_eval(node.value) for folder in layer]
    raise ValueError("bazel/layers.bzl has no LAYERS")


def described_rooms(document):
    """The folders in the first column of the table of rooms."""
    section = document.split("\n## Rooms")[1].split("\n## ")[0]
    return {folder.rstrip("/")
            for folder in re.findall(r"^\| `([\w/]+)`", section, re.MULTILINE)}


def guarantees_of(document):
    """The table of what rooms do not reach: {folder: [folder, ...]}."""
    section = document.split("\n## Layers")[1].split("\n## ")[0]
    guarantees = {}
    for line in section.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) == 3 and re.match(r"`[\w/]+`(, `[\w/]+`)*$", cells[0]):
            for folder in re.findall(r"`([\w/]+)`", cells[0]):
                guarantees[folder] = re.findall(r"`([\w/]+)`", cells[1])
    return guarantees


def broken_guarantees(guarantees, assertions):
    """Of {folder: [regular expression]}: what the document says and nothing asserts,
    and the other way round."""
    for folder in sorted(guarantees.keys() | assertions.keys()):
        if folder not in guarantees:
            yield f"{folder} has an assert_no_dependency that the table lacks"
        for name in guarantees.get(folder, []):
            label = f"//{name}:x"
            if not any(re.search(a, label) for a in assertions.get(folder, [])):
                yield f"nothing asserts that {folder} does not reach {name}"


def calls_of(text):
    """The calls of a BUILD file: the name of what is called, and the arguments."""
    for node in ast.parse(text).body:
        call = node.value if isinstance(node, ast.Expr) else None
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name):
            yield call.func.id, {k.arg: k.value for k in call.keywords}


def room_of(path, folders):
    """The folder of bazel/layers.bzl that a file is in."""
    return next((folder for folder in folders if path.startswith(folder + "/")), None)


def includes_of(text):
    return re.findall(r'^\s*#\s*include\s*"([^"]+)"', text or "", re.MULTILINE)


def protobuf_includes(header, read_header):
    """Yields how `header` reaches protobuf, generated or its own: chains of includes.

    `read_header` returns the text of a header of the tree, None for others.
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
    """The headers that a source of another room includes. Tests do not count."""
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
    return read(name) if os.path.exists(os.path.join(ROOT, name)) else None


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
        self.assertEqual(folders_of_layers('"""Text."""\nLAYERS = [["a"], ["b", "c/d"]]\n'),
                         ["a", "b", "c/d"])

    def test_rooms(self):
        table = "# A\n\n## Rooms\n\n| room | content |\n| --- | --- |\n| `a/b/` | `c` |\n"
        self.assertEqual(described_rooms(table), {"a/b"})

    def test_guarantees(self):
        table = ("# A\n\n## Layers\n| `a/left`, `a/right` | `b/x`, `b/y` | why |\n## Rooms\n")
        guarantees = guarantees_of(table)
        self.assertEqual(guarantees, {"a/left": ["b/x", "b/y"], "a/right": ["b/x", "b/y"]})
        whole = {"a/left": ["//b/(x|y)"], "a/right": ["//b/x", "//b/y"]}
        self.assertFalse(list(broken_guarantees(guarantees, whole)))
        self.assertEqual(
            list(broken_guarantees(guarantees, {"a/left": ["//b/x"], "a/up": ["//b"],
                                                "a/right": ["//b"]})),
            ["nothing asserts that a/left does not reach b/y",
             "a/up has an assert_no_dependency that the table lacks"])


class TreeTest(unittest.TestCase):

    def setUp(self):
        self.folders = folders_of_layers(read("bazel/layers.bzl"))
        self.builds = {os.path.dirname(path): list(calls_of(read(path)))
                       for path in tracked("*BUILD.bazel")
                       if not path.startswith("third_party/")}

    def test_every_room_is_described(self):
        described = described_rooms(read("docs/ARCHITECTURE.md"))
        for folder, calls in self.builds.items():
            parts = folder.split("/")
            is_room = any(kind in ("muster_room", "cc_protos") for kind, _ in calls)
            if is_room and parts[-1] not in ("fake", "testing") and "testing" not in parts and (
                    parts[0] + "/" not in TOP):
                self.assertIn(folder, described)
        for folder in described:
            self.assertTrue(os.path.isdir(os.path.join(ROOT, folder)), folder)

    def test_assertions_follow_the_table(self):
        assertions = {
            folder: [ast.literal_eval(arguments["dependency"]) for kind, arguments in calls
                     if kind == "assert_no_dependency"]
            for folder, calls in self.builds.items()}
        guarantees = guarantees_of(read("docs/ARCHITECTURE.md"))
        complaints = list(broken_guarantees(
            guarantees, {folder: found for folder, found in assertions.items() if found}))
        self.assertFalse(complaints, "\n" + "\n".join(complaints))
        for folder in self.folders:
            if folder.startswith("common/io/"):
                self.assertIn(folder, guarantees)

    def test_programs_see_no_protobuf(self):
        self.assertIsNotNone(read_header("muster.h"))
        chains = list(protobuf_includes("muster.h", read_header))
        self.assertFalse(chains, "\n" + "\n".join(chains))

    def test_rooms_see_no_protobuf_of_others(self):
        headers = headers_for_others(tracked("*.h", "*.cc"), self.folders, read)
        headers = sorted(header for header in headers if not header.startswith("proto/"))
        self.assertGreater(len(headers), 100)
        chains = [chain for header in headers
                  for chain in protobuf_includes(header, read_header)]
        self.assertFalse(chains, "\n" + "\n".join(chains))


if __name__ == "__main__":
    unittest.main()
