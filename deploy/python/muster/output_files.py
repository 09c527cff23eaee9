"""Files of callbacks that tasks on other machines write: their names there and here."""

import json
import os
import re
import shutil

_LIST = "output_files.json"  # In the folder of the run.
_FOLDER = "files"  # Below the run folder of the tasks.
_FILES, _FOLDERS = ("filename", "filepath"), ("backup_dir", "log_dir")


def _check_is_new(kind, fields, path):
    """Raises ValueError if a callback would continue what exists on this machine only."""
    is_continued = kind == "backup_and_restore" or (kind == "csv_logger" and fields.get("append"))
    is_empty = os.path.isdir(path) and not os.listdir(path)
    if is_continued and os.path.exists(path) and not is_empty:
        raise ValueError(f"{kind}: {path} exists on this machine, and the tasks on the cluster "
                         "do not see it; expected a new name")


def _place(path, is_folder):
    """Returns (folder, pattern) of a path: the files that match the pattern below the folder."""
    if is_folder:
        return path, None
    folder, name = os.path.split(path)
    while "{" in folder:
        folder, part = os.path.split(folder)
        name = f"{part}/{name}"
    return folder, name


def placed(callbacks, folder):
    """Returns fields of callbacks whose files are in the run folder of the tasks.

    Writes into `folder`, that of the run on this machine, what fetch() needs.

    Args:
      callbacks: the callbacks of a job file.

    Raises:
      ValueError: a callback would continue a file that exists on this machine only.
    """
    places, changed = [], []
    for callback in callbacks:
        kind, fields = next(iter(callback.items()))
        fields = dict(fields)
        for name in (*_FILES, *_FOLDERS):
            path = fields.get(name)
            if not path or not os.path.isabs(path):
                continue
            _check_is_new(kind, fields, path)
            place, pattern = _place(path, name in _FOLDERS)
            fields[name] = "/".join(["${run_dir}", _FOLDER, str(len(places)),
                                     *([pattern] if pattern else [])])
            places.append([place, pattern])
        changed.append({kind: fields})
    with open(os.path.join(folder, _LIST), "w", encoding="utf-8") as file:
        json.dump(places, file)
    return changed


def output_folders(callbacks):
    """Returns the folders that the callbacks of a job file write, without those that they name
    relative to another one."""
    paths = [(fields[name], name in _FOLDERS)
             for callback in callbacks for fields in callback.values()
             for name in (*_FILES, *_FOLDERS) if os.path.isabs(fields.get(name) or "")]
    return sorted({_place(path, is_folder)[0] for path, is_folder in paths})


def _expression(pattern):
    """Returns a regular expression for the names that a pattern such as "{epoch}.keras" has."""
    parts = re.split(r"\{[^}]*\}", pattern)
    return re.compile("[^/]*".join(re.escape(part) for part in parts))


def fetch(run, folder):
    """Moves files of callbacks to where the caller of fit() expects them.

    Files that no callback should have written stay where they are.

    Args:
      run: a copy of the tasks' run folder.
      folder: as for placed().
    """
    with open(os.path.join(folder, _LIST), encoding="utf-8") as file:
        places = json.load(file)
    for index, (place, pattern) in enumerate(places):
        top = os.path.join(run, _FOLDER, str(index))
        for parent, _, names in os.walk(top):
            for name in names:
                path = os.path.join(parent, name)
                relative = os.path.relpath(path, top)
                if pattern is not None and not _expression(pattern).fullmatch(relative):
                    continue
                target = os.path.join(place, relative)
                os.makedirs(os.path.dirname(target), exist_ok=True)
                shutil.move(path, target)
                os.utime(target)
