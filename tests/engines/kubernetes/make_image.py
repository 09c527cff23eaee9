"""Packs a root file system as a container image (an OCI archive), as `podman build` does with a
Containerfile that only copies the file system and sets defaults.

    make_image.py --name=NAME --rootfs=DIR --out=FILE.tar
        [--containerfile=FILE | --entrypoint=LIST]
"""

import argparse
import hashlib
import io
import json
import os
import tarfile

ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}


def config_of(containerfile):
    """Returns the defaults of the image that the lines of a Containerfile set."""
    config = {}
    for line in containerfile.splitlines():
        instruction, _, value = line.strip().partition(" ")
        if instruction in ("", "#", "COPY") or (instruction, value) == ("FROM", "scratch"):
            continue
        if instruction == "USER":
            config["User"] = value
        elif instruction == "STOPSIGNAL":
            config["StopSignal"] = value
        elif instruction == "ENTRYPOINT":
            config["Entrypoint"] = json.loads(value)
        elif instruction == "EXPOSE":
            config["ExposedPorts"] = {f"{port}/tcp": {} for port in value.split()}
        else:
            raise ValueError(f"Containerfile: {line!r}: expected FROM scratch, COPY, "
                             "USER, STOPSIGNAL, ENTRYPOINT or EXPOSE")
    return config


def layer_of(rootfs):
    def of_root(member):
        member.uid = member.gid = 0
        member.uname = member.gname = ""
        return member

    layer = io.BytesIO()
    with tarfile.open(fileobj=layer, mode="w") as archive:
        for name in sorted(os.listdir(rootfs)):
            archive.add(os.path.join(rootfs, name), name, filter=of_root)
    return layer.getvalue()


def write_image(name, rootfs, containerfile, out):
    """Writes the image `name`, with one layer, to the archive `out`."""
    with tarfile.open(out, "w") as archive:

        def add(path, data):
            member = tarfile.TarInfo(path)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))

        def blob(media_type, data):
            digest = hashlib.sha256(data).hexdigest()
            add(f"blobs/sha256/{digest}", data)
            return {"mediaType": f"application/vnd.oci.image.{media_type}",
                    "digest": f"sha256:{digest}", "size": len(data)}

        layer = blob("layer.v1.tar", layer_of(rootfs))
        config = blob("config.v1+json", json.dumps({
            "architecture": ARCHITECTURES[os.uname().machine], "os": "linux",
            "config": config_of(containerfile),
            "rootfs": {"type": "layers", "diff_ids": [layer["digest"]]},
        }).encode())
        manifest = blob("manifest.v1+json", json.dumps({
            "schemaVersion": 2, "config": config, "layers": [layer],
        }).encode())
        manifest["annotations"] = {"io.containerd.image.name": name,
                                   "org.opencontainers.image.ref.name":
                                       name.rpartition(":")[2]}
        add("oci-layout", json.dumps({"imageLayoutVersion": "1.0.0"}).encode())
        add("index.json", json.dumps({"schemaVersion": 2,
                                      "manifests": [manifest]}).encode())


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--name", required=True)
    parser.add_argument("--rootfs", required=True)
    parser.add_argument("--containerfile")
    parser.add_argument("--entrypoint", help="as a list of JSON")
    parser.add_argument("--out", required=True)
    flags = parser.parse_args()
    containerfile = f"ENTRYPOINT {flags.entrypoint}" if flags.entrypoint else ""
    if flags.containerfile:
        with open(flags.containerfile, encoding="utf-8") as file:
            containerfile = file.read()
    write_image(flags.name, flags.rootfs, containerfile, flags.out)


if __name__ == "__main__":
    main()
