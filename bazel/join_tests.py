"""Joins sources of tests into one, which compiles faster because they share headers.

    join_tests.py OUTPUT SOURCE...

Two sources may use one name for different things. The joined source puts the unnamed
namespace of each source into a namespace with a number. Macros of a source are undefined at
its end.
"""

import re
import sys

OPENS = re.compile(r"^namespace \{$", re.MULTILINE)
CLOSES = re.compile(r"^\}  // namespace$", re.MULTILINE)
MACRO = re.compile(r"^#define (\w+)", re.MULTILINE)


def join(sources):
    """Returns the text of one source for all of these paths and their texts."""
    parts = []
    for number, (path, text) in enumerate(sources):
        text = OPENS.sub(f"namespace {{ namespace source_{number} {{", text)
        text = CLOSES.sub("} }", text)
        undefined = "".join(f"#undef {name}\n" for name in sorted(set(MACRO.findall(text))))
        parts.append(f'#line 1 "{path}"\n{text}{undefined}')
    return "".join(parts)


def main():
    output, *paths = sys.argv[1:]
    sources = []
    for path in paths:
        with open(path, encoding="utf-8") as source:
            sources.append((path, source.read()))
    with open(output, "w", encoding="utf-8") as joined:
        joined.write(join(sources))


if __name__ == "__main__":
    main()
