"""Runs ONNX files with onnxruntime and compares the outputs with those of Muster.

Usage: run_onnx.py RUNS.json

RUNS.json is a list of {name, model, inputs, outputs}. Tensors are {dtype, shape, values}, in
the order of the model's inputs and outputs. Prints a line for each mistake: "<name>: <why>".
A model for which onnxruntime has no kernel has the line "<name>: no kernel: <message>". If
Python has onnx, it checks the files, too.
"""

import json
import sys

import numpy as np
import onnxruntime as ort

try:
    import onnx  # Checks files against the standard; onnxruntime is more tolerant.
except ImportError:
    onnx = None

TOLERANCE = 1e-4


def tensor(spec):
    values = [float(value) if isinstance(value, str) else value for value in spec["values"]]
    return np.array(values, spec["dtype"]).reshape(spec["shape"])


def difference(actual, expected):
    """Returns "" if the arrays agree: absolutely up to 1, relatively above."""
    if actual.dtype != expected.dtype or actual.shape != expected.shape:
        return (f"is {actual.dtype}{list(actual.shape)}, "
                f"not {expected.dtype}{list(expected.shape)}")
    a, b = (np.atleast_1d(x.astype(np.float64)) for x in (actual, expected))
    with np.errstate(invalid="ignore"):
        error = np.abs(a - b) / np.maximum(1, np.abs(b))
    error[(a == b) | (np.isnan(a) & np.isnan(b))] = 0
    error[np.isnan(error)] = np.inf
    if error.size and error.max() > TOLERANCE:
        at = np.unravel_index(error.argmax(), error.shape)
        return f"is {a[at]} at {[int(i) for i in at]}, not {b[at]}"
    return ""


def fits(declared, actual):
    """True if a declared shape, with extents, names and None, allows the actual one."""
    return len(declared) == len(actual) and all(
        not isinstance(want, int) or want == have for want, have in zip(declared, actual))


def mistakes(run):
    options = ort.SessionOptions()
    options.log_severity_level = 3
    try:
        if onnx is not None:
            onnx.checker.check_model(run["model"], full_check=True)
        session = ort.InferenceSession(run["model"], options, ["CPUExecutionProvider"])
        inputs = [tensor(spec) for spec in run["inputs"]]
        actual = session.run(None, {declared.name: value for declared, value in
                                    zip(session.get_inputs(), inputs)})
    except Exception as error:  # onnxruntime has no common base class for its errors.
        is_missing = "NOT_IMPLEMENTED" in str(error)
        return [("no kernel: " if is_missing else "") + str(error).splitlines()[0]]
    expected = [tensor(spec) for spec in run["outputs"]]
    if len(actual) != len(expected):
        return [f"has {len(actual)} outputs, not {len(expected)}"]
    found = []
    for declared, have, want in zip(session.get_outputs(), actual, expected):
        why = difference(have, want)
        if not why and not fits(declared.shape, have.shape):
            why = f"has shape {have.shape}, but declares {declared.shape}"
        if why:
            found.append(f"output {declared.name} {why}")
    return found


def main():
    ort.disable_telemetry_events()
    with open(sys.argv[1], encoding="utf-8") as file:
        runs = json.load(file)
    for run in runs:
        for why in mistakes(run):
            print(f"{run['name']}: {why}")


if __name__ == "__main__":
    main()
