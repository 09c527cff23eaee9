#!/usr/bin/env python3
"""Checks that gcc compiles every source file, without making objects.

    bazel/compile_with_gcc.py [FOLDER ...]     all folders if none is named

Sources are compiled together in units, because most of the time goes into shared headers and
the templates of the standard library. Tests, which join_tests.py joins, are units of their
own. Two sources that use one name for different things go to different units. Device code is
compiled as the simulated GPU runs it, each file alone. A unit that compiled before and whose files
are unchanged is skipped. The last line is "N units compile with gcc, N do not".

`bazel build --config=gcc TARGET` makes objects and executables; first remove
bazel/precompiled.bazelrc, which is for clang.
"""

import concurrent.futures
import dataclasses
import functools
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import embed_device_code
import join_tests

ROOT = pathlib.Path(__file__).resolve().parent.parent
CACHE = pathlib.Path.home() / ".cache" / "muster" / "gcc"
COMPILER = [
    "g++", "-std=c++20", "-fsyntax-only", "-Wall", "-Wextra", "-Werror", "-DNDEBUG",
    # Designated initializers leave the rest at its default, on purpose.
    "-Wno-missing-field-initializers",
    # The size of the heap, in KiB, below which gcc collects no garbage: collections took a quarter
    # of the time.
    "--param=ggc-min-heapsize=4000000",
]


# Turns off warnings that do not apply to units.
UNIT_OPTIONS = [
    # A unit includes its sources as if they were headers, whose types may not use types of an
    # anonymous namespace.
    "-Wno-subobject-linkage",
    # Nothing is inlined here, so vectors seem to be passed between functions.
    "-Wno-psabi",
]


# A larger unit would leave the other processors idle at the end.
FILES_IN_UNIT_MAX = 60

# Headers are parsed once for all units.
PRECOMPILED = {
    "sources": ["bazel/precompiled_headers.h"],
    "tests": ["bazel/precompiled_headers.h", "gmock/gmock.h", "gtest/gtest.h"],
}

MAIN = re.compile(r"^int main\(", re.MULTILINE)
# An unindented line defines the name before the first of these signs, unless the name is a
# member's. A name that `using` declares may be declared again, but not defined.
DEFINITION = re.compile(r"^(?!namespace|extern|template|TEST)[A-Za-z_][^;({=\n]*?"
                        r"(?<!::)\b(\w+)(?:<[^({=;]*>)?\s*(?:\[[^=]*\]\s*)?"
                        r"(?: final)?(?: : public [^{]*)?[({=]", re.MULTILINE)
USED_NAME = re.compile(r"^using [\w:]*::(\w+);", re.MULTILINE)
TEST_CASE = re.compile(r"^\w*TEST\w*\((\w+),\s*(\w+)\)", re.MULTILINE)


@dataclasses.dataclass
class Unit:
    kind: str  # A key of PRECOMPILED, or a file that is compiled alone.
    files: list = dataclasses.field(default_factory=list)
    defined: set = dataclasses.field(default_factory=set)
    used: set = dataclasses.field(default_factory=set)

    def takes(self, defined, used):
        """Returns true if a file with these names can be added to the unit."""
        return (len(self.files) < FILES_IN_UNIT_MAX
                and self.defined.isdisjoint(defined | used)
                and self.used.isdisjoint(defined))

    def name(self):
        if len(self.files) == 1:
            return self.files[0]
        return f"{len(self.files)} {self.kind}, {self.files[0]} first"


def defined_names(text):
    return {*DEFINITION.findall(text),
            *map("_".join, TEST_CASE.findall(text))} - {"main"}


def make_units(folders):
    listed = subprocess.run(["git", "ls-files", "*.cc", "*.cu"], cwd=ROOT, check=True,
                            capture_output=True, text=True).stdout.split()
    units = []
    for path in listed:
        folder = os.path.dirname(path)
        # Programs without a BUILD file need packages that may not be installed.
        if not (ROOT / folder / "BUILD.bazel").exists():
            continue
        if folders and not any(f"{folder}/".startswith(f"{f.rstrip('/')}/")
                               for f in folders):
            continue
        text = (ROOT / path).read_text()
        # A file of device kernels defines macros, so it is compiled alone.
        kind = (path if path.endswith(".cu") else
                "tests" if path.endswith("_test.cc") and not MAIN.search(text) else
                "sources")
        defined, used = defined_names(text), set(USED_NAME.findall(text))
        if kind == "tests":
            defined, used = set(), set()  # join_tests.py tells them apart.
        for unit in units:
            if unit.kind == kind and unit.takes(defined, used):
                break
        else:
            unit = Unit(kind)
            units.append(unit)
        unit.files.append(path)
        unit.defined |= defined
        unit.used |= used
    return units


def generate_headers(out):
    listed = subprocess.run(["git", "ls-files", "*.cu"], cwd=ROOT, check=True,
                            capture_output=True, text=True).stdout.split()
    for path in map(pathlib.PurePath, listed):
        folder = pathlib.Path(out) / path.parent
        folder.mkdir(parents=True, exist_ok=True)
        embed_device_code.write(folder / f"{path.stem}_image.h",
                                embed_device_code.header(path.stem))
    page = pathlib.Path("common/net/status")
    (pathlib.Path(out) / page).mkdir(parents=True, exist_ok=True)
    with open(pathlib.Path(out) / page / "page_files.h", "w") as header:
        files = sorted((ROOT / page / "page").glob("status.*"))
        subprocess.run([ROOT / page / "embed_page.sh", *files], check=True, stdout=header)
    for proto in sorted(ROOT.glob("proto/*.proto")):
        subprocess.run(["protoc", "-I.", f"--cpp_out={out}", f"--grpc_out={out}",
                        "--plugin=protoc-gen-grpc=/usr/bin/grpc_cpp_plugin",
                        f"proto/{proto.name}"], cwd=ROOT, check=True)


@functools.cache
def third_party_folders():
    """Returns the folders of headers that sources include by file name alone."""
    listed = subprocess.run(["git", "ls-files", "third_party/*.h"], cwd=ROOT, check=True,
                            capture_output=True, text=True).stdout.split()
    return sorted({os.path.dirname(path) for path in listed})


def digest(path):
    return hashlib.sha256(pathlib.Path(path).read_bytes()).hexdigest()


def record_of(files):
    key = hashlib.sha256("\n".join([*COMPILER, *files]).encode()).hexdigest()
    return CACHE / key


def is_unchanged(files, generated):
    try:
        known = json.loads(record_of(files).read_text())
        return all(digest(path.replace("GENERATED", generated, 1)) == value
                   for path, value in known.items())
    except (OSError, ValueError):
        return False


def precompile(kind, out):
    header = pathlib.Path(out) / f"{kind}.h"
    header.write_text("".join(f'#include "{name}"\n' for name in PRECOMPILED[kind]))
    options = [option for option in COMPILER if option != "-fsyntax-only"]
    subprocess.run([*options, *UNIT_OPTIONS, "-iquote", ROOT, "-x", "c++-header", header,
                    "-o", f"{header}.gch"], check=True)


def text_of_unit(kind, files):
    if kind == "tests" and len(files) > 1:
        return join_tests.join([(ROOT / path, (ROOT / path).read_text()) for path in files])
    # A unit may hold several programs.
    return "".join(f'#define main main_{i}\n#include "{ROOT / path}"\n#undef main\n'
                   for i, path in enumerate(files))


def compile_files(kind, files, generated):
    """Returns the compiler's errors, or None if there are none."""
    with tempfile.TemporaryDirectory() as folder:
        unit = pathlib.Path(folder) / "unit.cc"
        precompiled = kind if kind in PRECOMPILED else "sources"
        unit.write_text(f'#include "{precompiled}.h"\n' + text_of_unit(kind, files))
        dependencies = pathlib.Path(folder) / "unit.d"
        done = subprocess.run(
            [*COMPILER, *UNIT_OPTIONS, "-Winvalid-pch", "-iquote", ROOT,
             "-isystem", generated, "-iquote", generated,
             *(f"-I{folder}" for folder in third_party_folders()),
             "-MMD", "-MF", dependencies, unit],
            cwd=ROOT, capture_output=True, text=True)
        if done.returncode != 0:
            return done.stderr
        paths = dependencies.read_text().replace("\\\n", " ").split()[1:]
        used = {path.replace(generated, "GENERATED", 1): digest(path)
                for path in [*paths, *(str(ROOT / path) for path in files)]
                if path != str(unit) and not path.endswith((f"/{precompiled}.h", ".gch"))}
    CACHE.mkdir(parents=True, exist_ok=True)
    record_of(files).write_text(json.dumps(used))
    return None


def compile_apart(kind, files, generated):
    """As compile_files(), but compiles files alone if they do not compile together.

    Names may clash in ways that defined_names() does not detect.
    """
    complaints = compile_files(kind, files, generated)
    if not complaints or len(files) == 1:
        return complaints
    refused = [path for path in files if f"{ROOT / path}:" in complaints] or files
    others = [path for path in files if path not in refused]
    print(f"{len(refused)} alone: ", end="")
    texts = [compile_files(kind, [path], generated) for path in refused]
    if others:
        texts.append(compile_apart(kind, others, generated))
    return "".join(filter(None, texts))


def compile_unit(unit, generated):
    complaints = compile_apart(unit.kind, unit.files, generated)
    print(f"{'gcc rejects' if complaints else 'compiled'}: {unit.name()}", flush=True)
    return complaints


def main():
    units = make_units(sys.argv[1:])
    with tempfile.TemporaryDirectory() as generated, \
            concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        generate_headers(generated)
        changed = [unit for unit in units if not is_unchanged(unit.files, generated)]
        # Largest first, so that no large unit is left for the end.
        changed.sort(key=lambda unit: -len(unit.files))
        if changed:
            list(pool.map(lambda kind: precompile(kind, generated), PRECOMPILED))
        complaints = list(pool.map(lambda unit: compile_unit(unit, generated), changed))
    failed = [text for text in complaints if text]
    sys.stderr.write("".join(failed))
    print(f"{len(units) - len(failed)} units compile with gcc, {len(failed)} do not")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
