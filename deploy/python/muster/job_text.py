"""Job files: protocol buffers in text format (docs/job_reference.md)."""

import math
import numbers


class Word(str):
    """A value that is written without quotes, such as the name of an enum value."""


def quoted(text):
    """Returns `text` as a string of the text format.

    Raises:
      ValueError: the text contains "${", which begins a variable in a job file.
    """
    # This package itself uses only the variables ${job_dir} and ${run_dir}, at the start.
    for variable in ("${job_dir}", "${run_dir}"):
        if text.startswith(variable):
            return quoted(text[len(variable):]).replace('"', '"' + variable, 1)
    if "${" in text:
        raise ValueError(f'"{text}" contains "${{", which a job file replaces by the value '
                         "of a variable; use another name")
    escapes = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"}
    return '"' + "".join(escapes.get(letter, letter) for letter in text) + '"'


def _scalar(value):
    if isinstance(value, Word):
        return str(value)
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, numbers.Integral):
        return str(int(value))
    if isinstance(value, numbers.Real):
        number = float(value)
        if math.isnan(number):
            return "nan"
        if math.isinf(number):
            return "inf" if number > 0 else "-inf"
        return repr(number)
    raise TypeError(f"a job file has no {type(value).__name__} such as {value!r}")


def _lines(fields, indent):
    for name, value in fields.items():
        for item in value if isinstance(value, (list, tuple)) else [value]:
            if item is None:
                continue
            if not isinstance(item, dict):
                yield f"{indent}{name}: {_scalar(item)}"
                continue
            inner = list(_lines(item, indent + "  "))
            if not inner:
                yield f"{indent}{name} {{}}"
                continue
            yield f"{indent}{name} {{"
            yield from inner
            yield f"{indent}}}"


def job_text(fields):
    """Returns a job file.

    Args:
      fields: names and values. A dict is a message, a list a repeated field, and None an
        absent field.
    """
    return "".join(line + "\n" for line in _lines(fields, ""))
