"""Runs the code of docs/python.md. MUSTER_KERAS_PYTHON names a Python with Keras."""

import os
import re
import tempfile
import unittest

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["CUDA_VISIBLE_DEVICES"] = ""

try:
    import keras
except ModuleNotFoundError as error:
    print(f"{error}: the test is skipped. Set MUSTER_KERAS_PYTHON to a Python with Keras.")
    raise SystemExit(0)


class TutorialTest(unittest.TestCase):

    def test_the_code_runs_from_top_to_bottom(self):
        with open("docs/python.md", encoding="utf-8") as file:
            blocks = re.findall(r"^```python\n(.*?)^```", file.read(), re.DOTALL | re.MULTILINE)
        self.assertGreater(len(blocks), 7)
        keras.utils.set_random_seed(1)
        names = {}
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            for block in blocks:
                exec(compile(block, f"docs/python.md: {block.splitlines()[0]}", "exec"), names)
            self.assertGreater(names["accuracy"], 0.9)
            self.assertIn("double_checkpoint is not supported", str(names["refused"]))
            self.assertTrue(os.path.exists("run_1/report.html"))
            self.assertTrue(os.path.exists(names["job"]))


if __name__ == "__main__":
    unittest.main()
