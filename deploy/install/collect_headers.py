"""Copies a header and the headers that it includes, each at its path in the tree.

    collect_headers.py HEADER OUTPUT_DIR ROOT...

Included files that are in none of the ROOT folders are system headers, and are not copied.
"""

import pathlib
import re
import shutil
import sys

_INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.MULTILINE)


def closure(header, roots):
    """Returns the files by the name under which they are included."""
    found = {}
    names = [header]
    while names:
        name = names.pop()
        path = next((root / name for root in roots if (root / name).is_file()), None)
        if name not in found and path:
            found[name] = path
            names += _INCLUDE.findall(path.read_text())
    return found


def main():
    header, output, *roots = sys.argv[1:]
    for name, path in closure(header, [pathlib.Path(root) for root in roots]).items():
        target = pathlib.Path(output) / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, target)


if __name__ == "__main__":
    main()
