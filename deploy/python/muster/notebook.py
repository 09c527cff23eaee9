"""Progress in a notebook: a bar, and a plot of each metric, in place of a line for each epoch."""

import html
import math
import re
import sys

_EPOCH = re.compile(r"(?:[\w ]+\| )?Epoch (\d+)/(\d+)$")
_RESULT = re.compile(r"(?:[\w ]+\| )?\d+/\d+ - \S+ - .*")
_METRIC = re.compile(r" - (\w+): (\S+)")
_COLORS = ("#1f77b4", "#ff7f0e")
_WIDTH, _HEIGHT = 240, 110


def is_notebook():
    """True if this process is the kernel of a notebook."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return hasattr(shell, "kernel")


def _number(text):
    try:
        return float(text)
    except ValueError:
        return math.nan


def _line(values, low, high, color):
    """Returns a line through (epoch, value) in a plot. Leaves gaps at NaN and infinity."""
    scale = (_HEIGHT - 20) / (high - low) if high > low else 0
    step = (_WIDTH - 10) / max(1, len(values) - 1)
    points = [f"{5 + step * index:.1f},{_HEIGHT - 10 - scale * (value - low):.1f}"
              for index, value in enumerate(values) if math.isfinite(value)]
    shape = f'<polyline points="{" ".join(points)}" fill="none" stroke="{color}"/>'
    return shape + "".join(
        f'<circle cx="{point.split(",")[0]}" cy="{point.split(",")[1]}" r="2" fill="{color}"/>'
        for point in points)


def plot(name, series):
    """Returns a plot as SVG.

    Args:
      name: of the metric.
      series: {label: values of the epochs}, at most two.
    """
    finite = [value for values in series.values() for value in values if math.isfinite(value)]
    low, high = (min(finite), max(finite)) if finite else (0, 1)
    lines = "".join(_line(values, low, high, color)
                    for values, color in zip(series.values(), _COLORS))
    labels = " ".join(f'<tspan fill="{color}">{html.escape(label)}</tspan>'
                      for label, color in zip(series, _COLORS))
    return (f'<svg width="{_WIDTH}" height="{_HEIGHT + 30}" role="img" '
            f'aria-label="{html.escape(name)}" font-size="11" font-family="sans-serif">'
            f'<text x="5" y="12">{labels}</text><g transform="translate(0,18)">{lines}'
            f'<text x="5" y="{_HEIGHT + 8}" fill="#777">{low:.4g} to {high:.4g}</text></g></svg>')


class NotebookOutput:
    """A stream for the output of a run: shows epochs as graphics, and prints other lines.

    Args:
      display: IPython.display.
      stream: for other lines.
    """

    def __init__(self, display, stream):
        self._display = display
        self._stream = stream
        self._handle = None
        self._epoch, self._epochs = 0, 0
        self._logs = {}

    def write(self, text):
        """Takes one line."""
        line = text.rstrip("\n")
        epoch = _EPOCH.match(line)
        if epoch:
            self._epoch, self._epochs = map(int, epoch.groups())
            self._update(self._epoch - 1)
        elif self._epochs and _RESULT.match(line):
            for name, value in _METRIC.findall(line):
                self._logs.setdefault(name, []).append(_number(value))
            self._update(self._epoch)
        else:
            self._stream.write(text)

    def flush(self):
        """Flushes the lines that are no epochs."""
        self._stream.flush()

    def _update(self, done):
        shown = self._display.HTML(self._html(done))
        if self._handle is None:
            self._handle = self._display.display(shown, display_id=True)
        else:
            self._handle.update(shown)

    def _html(self, done):
        last = " - ".join(f"{html.escape(name)}: {values[-1]:.4f}"
                          for name, values in self._logs.items())
        names = [name for name in self._logs if name.removeprefix("val_") not in self._logs
                 or not name.startswith("val_")]
        plots = "".join(plot(name, {key: self._logs[key] for key in (name, f"val_{name}")
                                    if key in self._logs}) for name in names)
        return (f'<div><progress value="{done}" max="{self._epochs}"></progress> '
                f"epoch {done}/{self._epochs} {last}<br>{plots}</div>")
