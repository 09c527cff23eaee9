"""The progress in a notebook. Needs neither Keras nor IPython."""

import io
import sys
import types
import unittest
import xml.etree.ElementTree as ElementTree

from muster import notebook


class _Display:
    """Stands for IPython.display."""

    HTML = str

    def __init__(self):
        self.shown = []

    def display(self, content, display_id):
        assert display_id
        self.shown.append(content)
        return self

    def update(self, content):
        self.shown.append(content)


class NotebookTest(unittest.TestCase):
    def output_of(self, lines):
        display, stream = _Display(), io.StringIO()
        output = notebook.NotebookOutput(display, stream)
        for line in lines:
            output.write(line + "\n")
        output.flush()
        return display.shown, stream.getvalue()

    def test_epochs_are_graphics_and_other_lines_are_printed(self):
        shown, printed = self.output_of([
            "launch: 2 processes", "chief    | Epoch 1/2",
            "chief    | 45/45 - 0s - 1ms/step - loss: 0.5000 - val_loss: 0.7500",
            "worker 0 | W1129 slow", "Epoch 2/2",
            "45/45 - 1s - 1ms/step - loss: 0.2500 - val_loss: nan"])
        self.assertEqual(printed, "launch: 2 processes\nworker 0 | W1129 slow\n")
        self.assertEqual(len(shown), 4)
        self.assertIn('<progress value="0" max="2">', shown[0])
        self.assertIn("epoch 1/2 loss: 0.5000 - val_loss: 0.7500", shown[1])
        self.assertIn('<progress value="2" max="2">', shown[3])
        self.assertEqual(shown[3].count("<svg"), 1)  # A metric and its validation share a plot.
        root = ElementTree.fromstring(shown[3].replace("<br>", "<br/>"))
        lines = root.findall(".//polyline")
        self.assertEqual([line.get("points").count(",") for line in lines], [2, 1])

    def test_a_line_that_looks_like_a_result_before_an_epoch_is_printed(self):
        shown, printed = self.output_of(["3/4 - a - b: 1"])
        self.assertEqual((shown, printed), ([], "3/4 - a - b: 1\n"))

    def test_plots_scale_to_their_values(self):
        root = ElementTree.fromstring(notebook.plot("<a>", {"<a>": [1.0, 3.0, 2.0]}))
        points = [tuple(map(float, point.split(",")))
                  for point in root.find(".//polyline").get("points").split()]
        self.assertEqual([x for x, _ in points], [5, 120, 235])
        self.assertLess(points[1][1], points[2][1])
        self.assertLess(points[2][1], points[0][1])
        for values in ([], [2.0], [float("nan")], [1.0, 1.0]):
            ElementTree.fromstring(notebook.plot("a", {"a": values}))

    def test_only_kernels_are_notebooks(self):
        self.assertFalse(notebook.is_notebook())
        for shell, expected in ((types.SimpleNamespace(kernel=1), True),
                                (types.SimpleNamespace(), False), (None, False)):
            sys.modules["IPython"] = types.SimpleNamespace(get_ipython=lambda shell=shell: shell)
            try:
                self.assertEqual(notebook.is_notebook(), expected)
            finally:
                del sys.modules["IPython"]


if __name__ == "__main__":
    unittest.main()
