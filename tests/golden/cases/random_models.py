"""random_models.json and ../random_files/*.keras: some of the random models.

random_models/record.py says how they are drawn and recorded. A change of what is drawn
changes all of them.
"""

import pathlib

from random_models import record

FOLDER = pathlib.Path(__file__).parent.parent / "random_files"
SEEDS = tuple(range(30))


def cases():
    FOLDER.mkdir(exist_ok=True)
    for path in FOLDER.glob("*.keras"):
        path.unlink()
    for seed in SEEDS:
        yield record.record(seed, FOLDER)
