"""Checks that the sources use the same names that one file declares."""

import pathlib
import re
import unittest

# The folder of the sources themselves, to which the build links.
ROOT = pathlib.Path(__file__).resolve().parents[2]
ROOMS = ("common", "coordinator", "deploy", "ps", "worker")


def sources():
    for room in ROOMS:
        for path in sorted((ROOT / room).rglob("*")):
            is_test = path.name.endswith("_test.cc") or path.name.startswith("test_")
            if path.suffix in (".cc", ".h") and not is_test and "testing" not in path.parts:
                yield path


def found_in_sources(pattern):
    """Returns {name: path} of the matches of the group in `pattern`."""
    return {
        name: path.relative_to(ROOT)
        for path in sources()
        for name in re.findall(pattern, path.read_text(encoding="utf-8"))
    }


class DeclaredNamesTest(unittest.TestCase):
    def assert_same(self, used, declared, place):
        undeclared = {name: str(used[name]) for name in set(used) - set(declared)}
        self.assertFalse(undeclared, f"{place} lacks them")
        self.assertFalse(set(declared) - set(used), f"{place} has names that no source uses")

    def test_fault_points(self):
        header = (ROOT / "common/net/rpc/fault_point.h").read_text(encoding="utf-8")
        table = header[header.index("kFaultPoints[]"):].partition("};")[0]
        declared = re.findall(r'"([a-z_.]+)"', table)
        self.assertEqual(declared, sorted(declared))
        used = found_in_sources(r'FaultPoint\(\s*"([a-z_.]+)"')
        self.assertGreater(len(used), 10)
        self.assert_same(used, declared, "kFaultPoints of fault_point.h")

    def test_metrics(self):
        page = (ROOT / "docs/metrics.md").read_text(encoding="utf-8")
        # The names are in the first column of the tables.
        cells = re.findall(r"^\| (`muster_[^|]*) \|", page, re.MULTILINE)
        declared = re.findall(r"`(muster_[a-z_0-9]+)`", " ".join(cells))
        used = found_in_sources(r'MetricInfo \w+\s*=\s*\{\s*"(muster_[a-z_0-9]+)"')
        used |= found_in_sources(r'\{\s*"(muster_[a-z_0-9]+)",')
        self.assertGreater(len(used), 40)
        self.assert_same(used, declared, "docs/metrics.md")


    def test_code_of_custom_layers(self):
        page = (ROOT / "docs/custom_layers.md").read_text(encoding="utf-8")
        tested = (ROOT / "common/learn/train/custom_parts_test.cc").read_text(encoding="utf-8")
        blocks = re.findall(r"```cpp\n(.*?)```", page, re.DOTALL)
        self.assertGreater(len(blocks), 3)
        for block in blocks:
            self.assertIn(block, tested)


if __name__ == "__main__":
    unittest.main()
