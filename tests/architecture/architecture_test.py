"""Compares the layers of docs/ARCHITECTURE.md with the build.

The document's table, the groups of bazel/visibility and the dependencies that
the BUILD files declare have to tell the same story. BUILD files are read as
Python, whose syntax they share. Generated headers stay out of what programs
include.
"""

import ast
import fnmatch
import os
import re
import subprocess
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.realpath(__file__))))
# They use everything and nothing uses them, but for their own tests.
TOP = ("bench", "deploy", "examples", "tests")


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        return file.read()


def layers_of(document):
    """The table's layers from the bottom up: (name, folders of its rooms)."""
    section = document.split("## Layers")[1].split("\n## ")[0]
    layers = []
    floor = ""
    for line in section.splitlines():
        match = re.match(r"\| (`[^`]+`)? ?\| `(\w+)` \| (.*) \|$", line)
        if not match:
            continue
        floor = match.group(1).strip("`") if match.group(1) else floor
        rooms = re.findall(r"`(\w+)`", match.group(3))
        folders = [floor if floor.rsplit("/", 1)[-1] == room else f"{floor}/{room}"
                   for room in rooms]
        layers.append((match.group(2), folders))
    return layers


def guarantees_of(document):
    """The table of what rooms do not reach: {folder: [folder or label, ...]}."""
    section = document.split("## Layers")[1].split("\n## ")[0]
    guarantees = {}
    for line in section.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) != 3 or not re.match(r"`[\w/]+`(, `[\w/]+`)*$", cells[0]):
            continue
        unreachable = re.findall(r"`([\w/:]+)`", cells[1])
        if not all("/" in name for name in unreachable):
            continue  # Of the table of layers.
        for folder in re.findall(r"`([\w/]+)`", cells[0]):
            guarantees[folder] = unreachable
    return guarantees


def broken_guarantees(guarantees, assertions):
    """Of {folder: [regular expression]}: what the document says and nothing asserts,
    and the other way round."""
    for folder in sorted(guarantees.keys() | assertions.keys()):
        if folder not in guarantees:
            yield f"{folder} has an assert_no_dependency that the table lacks"
        for name in guarantees.get(folder, []):
            label = "//" + (name if ":" in name else name + ":x")
            if not any(re.search(a, label) for a in assertions.get(folder, [])):
                yield f"nothing asserts that {folder} does not reach {name}"


class Resolver(ast.NodeTransformer):
    """Replaces the names of a BUILD file's constants by their values."""

    def __init__(self, tree):
        self.values = {node.targets[0].id: node.value for node in tree.body
                       if isinstance(node, ast.Assign)}

    def visit_Name(self, node):  # pylint: disable=invalid-name
        return self.values.get(node.id, node)


def rules_of(text):
    """The rules of a BUILD file's text: their kind, and their attributes."""
    tree = ast.parse(text)
    for node in Resolver(tree).visit(tree).body:
        call = node.value if isinstance(node, ast.Expr) else None
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name):
            yield call.func.id, {k.arg: k.value for k in call.keywords}


def strings_of(node):
    return [n.value for n in ast.walk(node)
            if isinstance(n, ast.Constant) and isinstance(n.value, str)]


def room_of(folder, layers):
    for rank, (_, rooms) in enumerate(layers):
        for room in rooms:
            if folder == room or folder.startswith(room + "/"):
                return rank, room
    return None


def wrong_dependencies(rules, layers):
    """Of (folder, kind, attributes): the arrows that do not point down.

    Tests may use rooms of their own layer beside their own.
    """
    for folder, kind, attributes in rules:
        user = room_of(folder, layers)
        if user is None or "deps" not in attributes:
            continue
        is_test = kind.endswith("_test") or "testonly" in attributes
        for label in strings_of(attributes["deps"]):
            if not label.startswith("//"):
                continue
            used_folder = label[2:].split(":")[0]
            used = room_of(used_folder, layers)
            if used is None:
                if not is_test:
                    yield f"{folder} uses {label}, which is in no layer below it"
            elif used[1] != user[1] and used[0] >= user[0]:
                if not (is_test and used[0] == user[0]):
                    yield f"{folder} uses {label}, which is not below it"


def files_in(node, names):
    """The files that an attribute lists, of which `names` are in its folder."""
    if isinstance(node, ast.Call):
        excluded = [glob for keyword in node.keywords for glob in strings_of(keyword.value)]
        return [name for name in names
                if any(fnmatch.fnmatch(name, glob) for glob in strings_of(node.args[0]))
                and not any(fnmatch.fnmatch(name, glob) for glob in excluded)]
    if isinstance(node, ast.BinOp):
        return files_in(node.left, names) + files_in(node.right, names)
    return strings_of(node)


def reaches_beyond(folder, group, layers):
    """True if `group` has targets of another room than `folder`'s, besides those of TOP."""
    package = group.removeprefix("//").split(":")[0]
    if package in ("bazel/visibility", "visibility"):
        return group != "//visibility:private"
    return package.split("/")[0] not in TOP and (
        room_of(package, layers) != room_of(folder, layers))


def visible_headers(rules, layers, list_folder):
    """Of (folder, kind, attributes): the headers of targets that other rooms may use.

    Those for tests alone are left out.
    """
    for folder, _, attributes in rules:
        groups = strings_of(attributes["visibility"]) if "visibility" in attributes else []
        if "hdrs" in attributes and "testonly" not in attributes and any(
                reaches_beyond(folder, group, layers) for group in groups):
            for header in files_in(attributes["hdrs"], list_folder(folder)):
                yield f"{folder}/{header}" if folder else header


def protobuf_includes(header, read_header):
    """Yields how `header` reaches protobuf, generated or its own: chains of includes.

    `read_header` returns the text of a header of the tree, None for others.
    """
    chains = {header: [header]}
    names = [header]
    while names:
        name = names.pop()
        for included in re.findall(r'^\s*#\s*include\s*"([^"]+)"',
                                   read_header(name) or "", re.MULTILINE):
            if included in chains:
                continue
            chains[included] = [*chains[name], included]
            if included.endswith(".pb.h") or included.startswith("google/protobuf/"):
                yield " includes ".join(chains[included])
            names.append(included)


def read_header(name):
    return read(name) if os.path.exists(os.path.join(ROOT, name)) else None


def build_files():
    listed = subprocess.run(["git", "-C", ROOT, "ls-files", "*BUILD.bazel"],
                            capture_output=True, check=True, text=True).stdout
    return [path for path in listed.split() if not path.startswith("third_party/")]


class ReaderTest(unittest.TestCase):

    LAYERS = [("base", ["a/base"]), ("upper", ["a/left", "a/right"])]

    def complaints(self, folder, label, kind="cc_library"):
        attributes = {"deps": ast.parse(f'["{label}"]', mode="eval").body}
        return list(wrong_dependencies([(folder, kind, attributes)], self.LAYERS))

    def test_arrows(self):
        self.assertFalse(self.complaints("a/left", "//a/base:x"))
        self.assertFalse(self.complaints("a/left", "//a/left/inner:x"))
        self.assertTrue(self.complaints("a/base", "//a/left:x"))
        self.assertTrue(self.complaints("a/left", "//a/right:x"))
        self.assertTrue(self.complaints("a/left", "//elsewhere:x"))
        self.assertFalse(self.complaints("a/left", "//a/right:x", "cc_test"))
        self.assertTrue(self.complaints("a/base", "//a/left:x", "cc_test"))

    def test_protobuf_includes(self):
        headers = {"a.h": '#include "b.h"\n', "b.h": '#include "a.h"\n# include "c.pb.h"'}
        self.assertEqual(list(protobuf_includes("a.h", headers.get)),
                         ["a.h includes b.h includes c.pb.h"])
        self.assertFalse(list(protobuf_includes("a.h", {"a.h": ""}.get)))

    def test_visible_headers(self):

        def headers(visibility, hdrs='["b.h", "c.h"]'):
            build = f'NOT = ["d.*"]\ncc_library(hdrs = {hdrs}, {visibility})'
            rules = [("a/left", kind, attributes) for kind, attributes in rules_of(build)]
            return [header.removeprefix("a/left/") for header in visible_headers(
                rules, self.LAYERS, lambda folder: ["b.cc", "b.h", "d.h", "e.h"])]

        visible = 'visibility = ["//bazel/visibility:base"]'
        self.assertEqual(headers(visible), ["b.h", "c.h"])
        self.assertEqual(headers(visible, '["c.h"] + glob(["*.h"], exclude = ["d.h"])'),
                         ["c.h", "b.h", "e.h"])
        self.assertEqual(headers(visible, 'glob(["*.h"], exclude = NOT)'), ["b.h", "e.h"])
        self.assertFalse(headers(""))
        self.assertFalse(headers(f"testonly = True, {visible}"))

        def is_visible_to(group):
            return bool(headers(f'visibility = ["{group}"]'))

        self.assertTrue(is_visible_to("//visibility:public"))
        self.assertFalse(is_visible_to("//visibility:private"))
        self.assertTrue(is_visible_to("//a/right:__pkg__"))
        self.assertFalse(is_visible_to("//a/left:__subpackages__"))
        self.assertFalse(is_visible_to("//a/left/inner:__pkg__"))
        self.assertFalse(is_visible_to("//tests/fuzz:__pkg__"))

    def test_table(self):
        table = ("## Layers\n| `a` | `base` | `base` |\n"
                 "| | `upper` | `left`, `right` |\n## Rooms\n")
        self.assertEqual(layers_of(table), self.LAYERS)


    def test_guarantees(self):
        table = ("## Layers\n| `a` | `base` | `base` |\n"
                 "| `a/left`, `a/right` | `b/x`, `b/y:z` | why |\n## Rooms\n")
        guarantees = guarantees_of(table)
        self.assertEqual(guarantees, {"a/left": ["b/x", "b/y:z"],
                                      "a/right": ["b/x", "b/y:z"]})
        whole = {"a/left": ["//b/(x|y)"], "a/right": ["//b/x", "//b/y:z"]}
        self.assertFalse(list(broken_guarantees(guarantees, whole)))
        self.assertEqual(
            list(broken_guarantees(guarantees, {"a/left": ["//b/x"], "a/up": ["//b"],
                                                "a/right": ["//b"]})),
            ["nothing asserts that a/left does not reach b/y:z",
             "a/up has an assert_no_dependency that the table lacks"])


class TreeTest(unittest.TestCase):

    def setUp(self):
        self.layers = layers_of(read("docs/ARCHITECTURE.md"))
        self.assertGreater(len(self.layers), 10)

    def test_dependencies_follow_the_table(self):
        rules = [(os.path.dirname(path), kind, attributes)
                 for path in build_files() for kind, attributes in rules_of(read(path))]
        complaints = list(wrong_dependencies(rules, self.layers))
        self.assertFalse(complaints, "\n" + "\n".join(complaints))

    def test_assertions_follow_the_table(self):
        assertions = {}
        for path in build_files():
            for kind, attributes in rules_of(read(path)):
                if kind == "assert_no_dependency":
                    assertions.setdefault(os.path.dirname(path), []).append(
                        strings_of(attributes["dependency"])[0])
        guarantees = guarantees_of(read("docs/ARCHITECTURE.md"))
        complaints = list(broken_guarantees(guarantees, assertions))
        self.assertFalse(complaints, "\n" + "\n".join(complaints))
        for _, rooms in self.layers:
            for room in rooms:
                if room.startswith("common/io/"):
                    self.assertIn(room, guarantees)

    def test_programs_see_no_protobuf(self):
        self.assertIsNotNone(read_header("muster.h"))
        chains = list(protobuf_includes("muster.h", read_header))
        self.assertFalse(chains, "\n" + "\n".join(chains))

    def test_rooms_see_no_protobuf_of_others(self):
        rules = [(os.path.dirname(path), kind, attributes)
                 for path in build_files() for kind, attributes in rules_of(read(path))]
        headers = sorted(set(visible_headers(
            rules, self.layers, lambda folder: os.listdir(os.path.join(ROOT, folder)))))
        self.assertGreater(len(headers), 100)
        chains = [chain for header in headers
                  for chain in protobuf_includes(header, read_header)]
        self.assertFalse(chains, "\n" + "\n".join(chains))

    def test_every_room_has_a_layer(self):
        for path in build_files():
            folder = os.path.dirname(path)
            if folder and folder.split("/")[0] not in TOP + ("bazel",):
                self.assertIsNotNone(room_of(folder, self.layers), folder)

    def test_visibility_follows_the_table(self):
        groups = {strings_of(attributes["name"])[0]: attributes
                  for kind, attributes in rules_of(read("bazel/visibility/BUILD.bazel"))
                  if kind == "package_group"}
        self.assertEqual(list(groups), [name for name, _ in self.layers])
        for rank, (name, rooms) in enumerate(self.layers):
            above = self.layers[rank + 1:rank + 2]
            expected = {f"//{room}/..." for room in rooms}
            for _, rooms_above in above:
                expected |= {f"//{room}/..." for room in rooms_above}
            if not above:
                expected |= {f"//{folder}/..." for folder in TOP} | {"//"}
            self.assertEqual(set(strings_of(groups[name]["packages"])), expected)
            self.assertEqual(
                strings_of(groups[name]["includes"]) if above else [],
                [f":{above_name}" for above_name, _ in above])


if __name__ == "__main__":
    unittest.main()
