"""Copies headers and converts their comments to Doxygen's format.

    doxygen_comments.py INCLUDE_DIR OUTPUT_DIR

Converts comments before a declaration and behind a member, lists of error codes, and
indented lines, which become code. Escapes all other text. Omits namespaces called
`internal`.
"""

import pathlib
import re
import sys

_COMMENT = re.compile(r"^(\s*)//(?: (.*))?$")
# A member, an argument or an enumerator with a comment behind it.
_BEHIND = re.compile(r"^(\s*[^/\s].*[;,{}]|\s*[A-Za-z]\w*)\s\s// (.*)$")
# A forward declaration. A comment behind it does not describe it.
_FORWARD = re.compile(r"^\s*(?:class|struct|enum|template)\b[^{]*;")
# "kNotFound  the file does not exist", and words that replace a code.
_CODE = re.compile(r"^ +((?:k[A-Z]\w+|others?|any|errors?|as)\b(?:, k[A-Z]\w+)*)(?:  +| )(.*)$")
_INDENTED = re.compile(r"^ {2,}\S")
_NOLINT = re.compile(r"^(NOLINT|clang-format)")


def escaped(text):
    """Escapes Doxygen's special characters, except in code between backticks."""
    parts = re.split(r"(`[^`]*`)", text)
    for index in range(0, len(parts), 2):
        parts[index] = re.sub(r"([\\@<>#%&$*\[\]|~_^])", r"\\\1", parts[index])
    return "".join(parts)


def of_comment(indent, text, was_item):
    """Returns (the line in Doxygen's format, True if it belongs to a list)."""
    item = _CODE.match(text)
    if item and (item.group(1)[0] == "k" or was_item or item.group(1) != "as"
                 or text.startswith("  ")):
        return f"{indent}/// - {escaped((item.group(1) + ' ' + item.group(2)).strip())}", True
    if was_item and _INDENTED.match(text):
        return f"{indent}///   {escaped(text.strip())}", True
    if _INDENTED.match(text):
        return f"{indent}///     {text}", False
    return f"{indent}/// {escaped(text)}".rstrip(), False


def without_internals(lines):
    is_internal = False
    for line in lines:
        is_internal = is_internal or line == "namespace internal {"
        yield "" if is_internal else line
        is_internal = is_internal and line != "}  // namespace internal"


def converted(lines):
    was_item = was_code = False
    for line in lines:
        comment = _COMMENT.match(line)
        if not comment or _NOLINT.match(comment.group(2) or ""):
            was_item = was_code = False
            behind = None if _FORWARD.match(line) else _BEHIND.match(line)
            yield f"{behind.group(1)}  ///< {escaped(behind.group(2))}" if behind else line
            continue
        indent, text = comment.group(1), comment.group(2) or ""
        result, is_item = of_comment(indent, text, was_item)
        is_code = not is_item and bool(_INDENTED.match(text))
        if (is_code and not was_code) or (is_item and not was_item):
            yield indent + "///"
        yield result
        was_item, was_code = is_item, is_code


def main():
    include, output = map(pathlib.Path, sys.argv[1:])
    for header in include.rglob("*.h"):
        target = output / header.relative_to(include)
        target.parent.mkdir(parents=True, exist_ok=True)
        lines = without_internals(header.read_text(encoding="utf-8").splitlines())
        target.write_text("\n".join(converted(lines)) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
