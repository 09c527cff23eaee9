"""Checks the record of a wheel, and unpacks it as installers do.

    python3 check_wheel.py WHEEL FOLDER
"""

import base64
import csv
import hashlib
import os
import sys
import zipfile


def main(path, folder):
    distribution, version = os.path.basename(path).split("-")[:2]
    with zipfile.ZipFile(path) as wheel:
        names = wheel.namelist()
        assert len(names) == len(set(names)), "a name occurs twice"
        info = f"{distribution}-{version}.dist-info"
        record = wheel.read(f"{info}/RECORD").decode().splitlines()
        assert [row[0] for row in csv.reader(record)] == names, "RECORD has other names"
        for name, digest, size in csv.reader(record):
            content = wheel.read(name)
            if name.endswith("/RECORD"):
                continue
            found = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=")
            assert digest == "sha256=" + found.decode(), f"{name} has another digest"
            assert int(size) == len(content), f"{name} has another size"
        assert f"Version: {version}\n" in wheel.read(f"{info}/METADATA").decode()
        tag = "-".join(os.path.basename(path)[:-len(".whl")].split("-")[2:])
        assert f"Tag: {tag}\n" in wheel.read(f"{info}/WHEEL").decode()
        for entry in wheel.infolist():
            os.chmod(wheel.extract(entry, folder), (entry.external_attr >> 16) & 0o777)


if __name__ == "__main__":
    main(*sys.argv[1:])
