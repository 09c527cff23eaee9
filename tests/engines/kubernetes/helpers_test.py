"""Tests the helpers of the scenarios, without Kubernetes."""

import hashlib
import io
import json
import os
import socket
import struct
import tarfile
import tempfile
import unittest

import cluster_dns
import job_per_task
import make_image

WORKERS = {
    "kind": "Job", "metadata": {"name": "digits-worker"}, "spec": {
        "completionMode": "Indexed", "completions": 2, "parallelism": 2,
        "podFailurePolicy": {}, "backoffLimit": 20, "template": {"spec": {
            "subdomain": "digits",
            "containers": [{"name": "muster", "env": [{"name": "A", "value": "b"}]}]}}}}

ENDPOINTS = {
    "metadata": {"name": "digits", "namespace": "test"},
    "subsets": [{"addresses": [{"ip": "10.78.0.2", "hostname": "digits-ps-0"},
                               {"ip": "10.78.0.9"}],
                 "notReadyAddresses": [{"ip": "10.78.0.3", "hostname": "digits-ps-0"}]}]}


class JobPerTaskTest(unittest.TestCase):

    def test_each_task_is_a_job_that_names_its_host(self):
        service = {"kind": "Service"}
        rewritten = job_per_task.rewrite([service, WORKERS])
        self.assertEqual(rewritten[0], service)
        self.assertEqual([job["metadata"]["name"] for job in rewritten[1:]],
                         ["digits-worker-0", "digits-worker-1"])
        spec = rewritten[2]["spec"]
        self.assertEqual(spec.keys(),
                         {"completions", "parallelism", "backoffLimit", "template"})
        self.assertEqual((spec["completions"], spec["parallelism"]), (1, 1))
        pod = spec["template"]["spec"]
        self.assertEqual((pod["hostname"], pod["subdomain"]), ("digits-worker-1", "digits"))
        self.assertEqual(pod["containers"][0]["env"], [
            {"name": "A", "value": "b"}, {"name": "JOB_COMPLETION_INDEX", "value": "1"}])


def query(name, question_type):
    labels = b"".join(struct.pack("B", len(label)) + label.encode()
                      for label in name.split("."))
    return struct.pack("!HHHHHH", 7, 0x0100, 1, 0, 0, 0) + labels + struct.pack(
        "!BHH", 0, question_type, 1)


class ClusterDnsTest(unittest.TestCase):
    NAMES = cluster_dns.names_of(ENDPOINTS, "cluster.local")

    def test_pods_have_names_also_before_they_are_ready(self):
        self.assertEqual(self.NAMES, {
            "digits-ps-0.digits.test.svc.cluster.local": ["10.78.0.2", "10.78.0.3"]})

    def test_addresses_of_a_name(self):
        question = query("Digits-ps-0.digits.test.svc.cluster.local", 1)
        response = cluster_dns.answer(question, self.NAMES)
        self.assertEqual(response[:8], struct.pack("!HHHH", 7, 0x8500, 1, 2))
        self.assertTrue(response[12:].startswith(question[12:]))
        self.assertTrue(response.endswith(socket.inet_aton("10.78.0.3")))

    def test_no_addresses_of_another_kind(self):
        response = cluster_dns.answer(
            query("digits-ps-0.digits.test.svc.cluster.local", 28), self.NAMES)
        self.assertEqual(response[2:8], struct.pack("!HHH", 0x8500, 1, 0))

    def test_no_such_name(self):
        response = cluster_dns.answer(query("digits-ps-1.digits", 1), self.NAMES)
        self.assertEqual(response[2:8], struct.pack("!HHH", 0x8503, 1, 0))

    def test_a_question_that_ends_early(self):
        response = cluster_dns.answer(query("a", 1)[:14], self.NAMES)
        self.assertEqual(response[2:8], struct.pack("!HHH", 0x8501, 0, 0))


class MakeImageTest(unittest.TestCase):

    def test_an_image_of_a_containerfile(self):
        with tempfile.TemporaryDirectory() as folder:
            os.makedirs(f"{folder}/rootfs/usr/bin")
            with open(f"{folder}/rootfs/usr/bin/a", "w", encoding="utf-8") as file:
                file.write("a")
            make_image.write_image(
                "localhost/a:1", f"{folder}/rootfs",
                "# A comment.\nFROM scratch\nCOPY rootfs/ /\nUSER 1:1\nEXPOSE 1 2\n"
                'ENTRYPOINT ["/usr/bin/a"]\n', f"{folder}/a.tar")
            with tarfile.open(f"{folder}/a.tar") as archive:
                files = {member.name: archive.extractfile(member).read()
                         for member in archive}

        def blob(descriptor):
            data = files["blobs/sha256/" + descriptor["digest"].removeprefix("sha256:")]
            self.assertEqual(len(data), descriptor["size"])
            self.assertEqual(hashlib.sha256(data).hexdigest(), descriptor["digest"][7:])
            return data

        manifest = json.loads(files["index.json"])["manifests"][0]
        self.assertEqual(manifest["annotations"]["io.containerd.image.name"],
                         "localhost/a:1")
        manifest = json.loads(blob(manifest))
        config = json.loads(blob(manifest["config"]))
        self.assertEqual(config["config"], {
            "User": "1:1", "Entrypoint": ["/usr/bin/a"],
            "ExposedPorts": {"1/tcp": {}, "2/tcp": {}}})
        with tarfile.open(fileobj=io.BytesIO(blob(manifest["layers"][0]))) as layer:
            member = layer.getmember("usr/bin/a")
            self.assertEqual((layer.extractfile(member).read(), member.uid), (b"a", 0))

    def test_instructions_that_need_a_builder_are_refused(self):
        with self.assertRaisesRegex(ValueError, "RUN make"):
            make_image.config_of("FROM scratch\nRUN make\n")


if __name__ == "__main__":
    unittest.main()
