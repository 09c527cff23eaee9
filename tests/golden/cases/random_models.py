"""random_models.json and ../random_files/*.keras: some of the random models.

random_models/record.py describes how they are drawn and recorded. A change of the drawing changes
all models.
"""

import pathlib

from random_models import record

FOLDER = pathlib.Path(__file__).parent.parent / "random_files"
# Beyond 29: sample weights beside masks of time; a Minimum of masked inputs; calls of one
# layer in another order than the model needs them; Adafactor in a LossScaleOptimizer; a mask
# that SpectralNormalization drops.
SEEDS = (*range(30), 57, 118, 145, 181, 189)


def cases():
    FOLDER.mkdir(exist_ok=True)
    for path in FOLDER.glob("*.keras"):
        path.unlink()
    for seed in SEEDS:
        yield record.record(seed, FOLDER)
