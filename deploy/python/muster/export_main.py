"""Exports a model under JAX for a process on another backend: see program_files.py.

Reads model.keras and request.pickle in the folder that is the only argument, and writes
result.json there: the positions of the variables, or {"error": message}.
"""

import json
import os
import pickle
import sys
import zipfile


def _answer(folder):
    with open(os.path.join(folder, "request.pickle"), "rb") as file:
        path, search_path, pickled, fields, values = pickle.load(file)
    sys.path[:] = search_path
    from muster import program_files

    request = program_files.Request(**fields)
    try:
        with zipfile.ZipFile(os.path.join(folder, "model.keras")) as archive:
            config = json.loads(archive.read("config.json"))
        model = program_files.rebuilt(config, pickle.loads(pickled), values, request)
    except Exception as error:  # pylint: disable=broad-exception-caught
        return {"error": f"the model cannot be rebuilt under JAX: {error}"}
    try:
        return program_files.write_here(model, path, request)
    except Exception as error:  # pylint: disable=broad-exception-caught
        return {"error": f"the model cannot be exported: {error}"}


def main():
    folder = sys.argv[1]
    answer = _answer(folder)
    with open(os.path.join(folder, "result.json"), "w", encoding="utf-8") as file:
        json.dump(answer, file)


if __name__ == "__main__":
    main()
