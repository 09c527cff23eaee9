#!/usr/bin/env python3
"""Writes the drawings of this folder: shapes that look drawn by hand.

    make_drawings.py DIRECTORY

Writes one file for each class, with one drawing per line, in the format of Quick, Draw!:
{"word": "circle", "drawing": [[[x0, x1, ...], [y0, y1, ...]], ...]}, a pair of lists for
each stroke, with coordinates from 0 to 255.
"""

import json
import math
import pathlib
import random
import sys

DRAWINGS = 120  # Drawings of each class.


def polygon(random_, corners, closed=True):
    """Returns points on the sides between the corners, a few for each side."""
    ends = corners[1:] + corners[:1] if closed else corners[1:]
    points = []
    for (x0, y0), (x1, y1) in zip(corners, ends):
        steps = random_.randint(2, 4)
        points += [(x0 + (x1 - x0) * i / steps, y0 + (y1 - y0) * i / steps)
                   for i in range(steps)]
    return points + [ends[-1]]


def on_circle(count, radii, turn=0.0):
    return [(radii[i % len(radii)] * math.cos(turn + 2 * math.pi * i / count),
             radii[i % len(radii)] * math.sin(turn + 2 * math.pi * i / count))
            for i in range(count)]


# Each function returns strokes around the origin, within a circle of radius 1.
SHAPES = {
    "circle": lambda r: [polygon(r, on_circle(16, [1.0]))],
    "cross": lambda r: [polygon(r, [(-0.8, -0.8), (0.8, 0.8)], closed=False),
                        polygon(r, [(-0.8, 0.8), (0.8, -0.8)], closed=False)],
    "spiral": lambda r: [[(i / 40 * math.cos(i / 3), i / 40 * math.sin(i / 3))
                          for i in range(2, 40)]],
    "square": lambda r: [polygon(r, on_circle(4, [1.0], math.pi / 4))],
    "star": lambda r: [polygon(r, on_circle(10, [1.0, 0.4], -math.pi / 2))],
    "triangle": lambda r: [polygon(r, on_circle(3, [1.0], -math.pi / 2))],
}


def drawing(random_, shape):
    """Returns the strokes of one drawing: rotated, stretched, and shaky."""
    turn = random_.uniform(-0.25, 0.25)
    width, height = random_.uniform(0.6, 1), random_.uniform(0.6, 1)
    strokes = []
    for points in shape(random_):
        turned = [(width * (x * math.cos(turn) - y * math.sin(turn)),
                   height * (x * math.sin(turn) + y * math.cos(turn))) for x, y in points]
        shaky = [(x + random_.gauss(0, 0.04), y + random_.gauss(0, 0.04)) for x, y in turned]
        pixels = [(max(0, min(255, round(128 + 120 * x))), max(0, min(255, round(128 + 120 * y))))
                  for x, y in shaky]
        strokes.append([[x for x, _ in pixels], [y for _, y in pixels]])
    return strokes


def main():
    directory = pathlib.Path(sys.argv[1])
    for word, shape in SHAPES.items():
        random_ = random.Random(word)
        with open(directory / f"{word}.ndjson", "w", encoding="utf-8") as file:
            for _ in range(DRAWINGS):
                line = {"word": word, "drawing": drawing(random_, shape)}
                print(json.dumps(line, separators=(",", ":")), file=file)


if __name__ == "__main__":
    main()
