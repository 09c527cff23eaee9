#!/usr/bin/env python3
"""Checks that gcc compiles every source file, without making objects.

    bazel/compile_with_gcc.py [FOLDER ...]     all folders if none is named

The sources of a folder are compiled as one unit, because most of the time goes
into headers that they share; so are its tests. Device code is compiled as the
simulated GPU runs it, a file each. Where two files of a folder use
one name for different things, each file is compiled alone. A unit that compiled
before and whose files have not changed since is skipped. The last line is
"N units compile with gcc, N do not".

`bazel build --config=gcc TARGET` makes objects and executables; remove
bazel/precompiled.bazelrc first, which is for clang.
"""

import concurrent.futures
import functools
import hashlib
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import embed_device_code

ROOT = pathlib.Path(__file__).resolve().parent.parent
CACHE = pathlib.Path.home() / ".cache" / "muster" / "gcc"
COMPILER = [
    "g++", "-std=c++20", "-fsyntax-only", "-Wall", "-Wextra", "-Werror", "-DNDEBUG",
    # Designated initializers leave the rest at its default, on purpose.
    "-Wno-missing-field-initializers",
]


# Warnings that are right elsewhere and wrong here.
UNIT_OPTIONS = [
    # What is a source of its own is a header to the unit that includes it, and a
    # type there may not use one of an anonymous namespace.
    "-Wno-subobject-linkage",
    # Nothing is inlined here, and vectors then seem to pass between functions.
    "-Wno-psabi",
]


def sources_by_unit(folders):
    """Units as (name, files): a folder's sources, and a folder's tests."""
    listed = subprocess.run(["git", "ls-files", "*.cc", "*.cu"], cwd=ROOT, check=True,
                            capture_output=True, text=True).stdout.split()
    units = {}
    for path in listed:
        folder = os.path.dirname(path)
        # Programs that the build does not know need what may not be installed.
        if not (ROOT / folder / "BUILD.bazel").exists():
            continue
        if folders and not any(f"{folder}/".startswith(f"{f.rstrip('/')}/")
                               for f in folders):
            continue
        # A program has a main() of its own, and a device kernel's file its macros.
        is_alone = path.endswith(".cu") or "\nint main(" in (ROOT / path).read_text()
        kind = path if is_alone else "tests" if path.endswith("_test.cc") else "sources"
        units.setdefault((folder, kind), []).append(path)
    return [(folder if kind == "sources" else f"{folder} ({kind})", files)
            for (folder, kind), files in sorted(units.items())]


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
    """The folders of headers that sources include by their name alone."""
    listed = subprocess.run(["git", "ls-files", "third_party/*.h"], cwd=ROOT, check=True,
                            capture_output=True, text=True).stdout.split()
    return sorted({os.path.dirname(path) for path in listed})


def digest(path):
    return hashlib.sha256(pathlib.Path(path).read_bytes()).hexdigest()


def record_of(files):
    key = hashlib.sha256("\n".join([*COMPILER, *files]).encode()).hexdigest()
    return CACHE / key


def is_unchanged(record, generated):
    try:
        known = json.loads(record.read_text())
        return all(digest(path.replace("GENERATED", generated, 1)) == value
                   for path, value in known.items())
    except (OSError, ValueError):
        return False


def compile_files(files, generated):
    """The compiler's complaints, or None if it has none."""
    record = record_of(files)
    if is_unchanged(record, generated):
        return None
    with tempfile.TemporaryDirectory() as folder:
        unit = pathlib.Path(folder) / "unit.cc"
        unit.write_text("".join(f'#include "{ROOT / path}"\n' for path in files))
        dependencies = pathlib.Path(folder) / "unit.d"
        done = subprocess.run(
            [*COMPILER, *UNIT_OPTIONS, "-iquote", ROOT, "-isystem", generated,
             "-iquote", generated, *(f"-I{folder}" for folder in third_party_folders()),
             "-MMD", "-MF", dependencies, unit],
            cwd=ROOT, capture_output=True, text=True)
        if done.returncode != 0:
            return done.stderr
        paths = dependencies.read_text().replace("\\\n", " ").split()[1:]
        used = {str(path).replace(generated, "GENERATED", 1): digest(path)
                for path in paths if path != str(unit)}
    CACHE.mkdir(parents=True, exist_ok=True)
    record.write_text(json.dumps(used))
    return None


def compile_unit(unit, generated):
    name, files = unit
    complaints = compile_files(files, generated)
    if complaints and len(files) > 1:
        alone = [compile_files([path], generated) for path in files]
        complaints = "".join(text for text in alone if text)
    print(f"{'gcc refuses' if complaints else 'compiled'}: {name}", flush=True)
    return complaints


def main():
    units = sources_by_unit(sys.argv[1:])
    # The dearest units first, so that none of them is left for the end.
    units.sort(key=lambda unit: -len(unit[1]))
    with tempfile.TemporaryDirectory() as generated, \
            concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        generate_headers(generated)
        complaints = list(pool.map(lambda unit: compile_unit(unit, generated), units))
    failed = [text for text in complaints if text]
    sys.stderr.write("".join(failed))
    print(f"{len(units) - len(failed)} units compile with gcc, {len(failed)} do not")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
