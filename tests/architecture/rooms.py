"""Writes docs/rooms.md from the BUILD files: what each folder contains, and where to start.

A BUILD file begins with a comment:

    # What the folder contains, in one or two sentences.
    # Start with main_header.h, another.h.
    # file.h, folder/other.cc: a question that these files answer

The last two kinds of lines are optional. They continue on lines that are indented further.
Files are named from the folder or from the root. BUILD files are read as Python, whose syntax
they share.
"""

import ast
import os
import re
import subprocess

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.realpath(__file__))))
PAGE = "docs/rooms.md"
COMMAND = "python3 -B tests/architecture/rooms.py"
# Above the layers of common/, each folder is a section.
ABOVE_LAYERS = ["deploy", "examples", "bench", "tests", "bazel"]

HEAD = f"""# Rooms

<!-- Written by {COMMAND} from the BUILD files. -->

What each folder contains, with the files to read first, from the bottom layer to the top.
[ARCHITECTURE.md](ARCHITECTURE.md) explains how the layers work together. This page is written
from the first comment of each `BUILD.bazel`. To change it, edit the comment and run
`{COMMAND}`.
"""

ASSERTIONS_HEAD = """
## Forbidden dependencies

The layers already forbid most dependencies. `assert_no_dependency` in the BUILD file of a room
tests these, for everything that the room reaches.

| room | does not reach | because |
| --- | --- | --- |
"""

_START = re.compile(r"Start with (.*)\.$")
_BEGIN = re.compile(r"Start with |[\w./-]+\.\w+[,:](?: |$)")  # Beginning of such a line.
_FILES = re.compile(r"((?:[\w./-]+\.\w+)(?:, [\w./-]+\.\w+)*): (.+)$")


class Room:
    """The description of a folder in its BUILD file."""

    def __init__(self, folder, text):
        self.folder = folder
        self.content = ""  # What the folder contains.
        self.start = []  # Files to read first.
        self.answers = []  # (question, files)
        for line in paragraphs_of(text):
            start, files = _START.match(line), _FILES.match(line)
            if start:
                self.start = start.group(1).split(", ")
            elif files:
                self.answers.append((files.group(2), files.group(1).split(", ")))
            else:
                self.content = f"{self.content} {line}".strip()

    def path_of(self, name, exists):
        """Returns the path of a file, given relative to the folder or to the root."""
        for path in (f"{self.folder}/{name}", name):
            if exists(path):
                return path
        raise ValueError(f"{self.folder}/BUILD.bazel names {name}, which does not exist")


def paragraphs_of(text):
    """Returns the first comment of a BUILD file without `#`. Continued lines are joined."""
    lines = []
    for line in text.splitlines():
        if not line.startswith("# "):
            break
        words = line[2:]
        if not lines or _BEGIN.match(words):
            lines.append(words)
        else:
            lines[-1] += " " + words.strip()
    return lines


def calls_of(text):
    """Yields each call in a BUILD file: the name of the function, and the keyword arguments."""
    for node in ast.parse(text).body:
        call = node.value if isinstance(node, ast.Expr) else None
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name):
            yield call.func.id, {k.arg: k.value for k in call.keywords}


def assertions_of(text):
    """Yields (folders, reason) for each assert_no_dependency of a BUILD file."""
    for kind, arguments in calls_of(text):
        if kind == "assert_no_dependency":
            yield (ast.literal_eval(arguments["folders"]),
                   ast.literal_eval(arguments["reason"]))


def folders_of_layers(text):
    """Returns the folders in bazel/layers.bzl, from the lowest layer to the highest."""
    for node in ast.parse(text).body:
        if isinstance(node, ast.Assign) and node.targets[0].id == "LAYERS":
            return [folder for layer in ast.literal_eval(node.value) for folder in layer]
    raise ValueError("bazel/layers.bzl has no LAYERS")


def section_of(folder):
    parts = folder.split("/")
    return "/".join(parts[:2]) if parts[0] == "common" else parts[0]


def in_order(folders, layers):
    """Returns the folders in the order of the layers, and by name within a layer."""
    layers = [name for name in layers if name not in ABOVE_LAYERS] + ABOVE_LAYERS

    def rank(folder):
        for i, name in enumerate(layers):
            if folder == name or folder.startswith(name + "/"):
                return i
        raise ValueError(f"{folder} is in no layer of bazel/layers.bzl")

    # A section has the position of its first layer.
    first = {}
    for folder in sorted(folders, key=rank):
        first.setdefault(section_of(folder), rank(folder))
    return sorted(folders, key=lambda folder: (first[section_of(folder)], rank(folder), folder))


def links(room, names, exists):
    paths = [(name, room.path_of(name, exists)) for name in names]
    return ", ".join(f"[{name}](../{path})" for name, path in paths)


def page_of(builds, layers, exists):
    """Returns the page. `builds` is {folder: text of its BUILD file}."""
    page = HEAD
    rooms = [Room(folder, builds[folder]) for folder in in_order(builds, layers)]
    for section in dict.fromkeys(section_of(room.folder) for room in rooms):
        inside = [room for room in rooms if section_of(room.folder) == section]
        page += f"\n## {section}\n\n| room | content | start with |\n| --- | --- | --- |\n"
        for room in inside:
            page += (f"| `{room.folder}` | {room.content} | "
                     f"{links(room, room.start, exists)} |\n")
        answers = [f"| {question} | {links(room, names, exists)} |\n"
                   for room in inside for question, names in room.answers]
        if answers:
            page += "\n| to find out | read |\n| --- | --- |\n" + "".join(answers)
    page += ASSERTIONS_HEAD
    for room in rooms:
        for folders, reason in assertions_of(builds[room.folder]):
            names = ", ".join(f"`{folder}`" for folder in folders)
            page += f"| `{room.folder}` | {names} | {reason} |\n"
    return page.replace(" |  |\n", " | |\n")


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        return file.read()


def tracked(*patterns):
    listed = subprocess.run(["git", "-C", ROOT, "ls-files", *patterns], capture_output=True,
                            check=True, text=True).stdout.split()
    return [path for path in listed if exists(path)]


def exists(path):
    return os.path.exists(os.path.join(ROOT, path))


def builds():
    """Returns all BUILD files below the root, except those of third-party libraries."""
    return {os.path.dirname(path): read(path) for path in tracked("*/BUILD.bazel")
            if not path.startswith("third_party/")}


def page():
    return page_of(builds(), folders_of_layers(read("bazel/layers.bzl")), exists)


if __name__ == "__main__":
    TEXT = page()
    with open(os.path.join(ROOT, PAGE), "w", encoding="utf-8") as output:
        output.write(TEXT)
