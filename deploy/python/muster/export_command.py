"""The command muster-export."""

import argparse
import importlib
import os
import sys


def _arguments():
    parser = argparse.ArgumentParser(
        prog="muster-export",
        description="Writes a compiled model of Keras for job files (model { keras: ... }) and "
                    "for C++. Parts that Muster does not know become programs, which JAX exports.")
    parser.add_argument("model", help="a .keras file of Keras 3")
    parser.add_argument("-o", "--output", required=True, help="the .keras file to write")
    parser.add_argument("--x", required=True, action="append",
                        help="a .npy file with features; once for each input")
    parser.add_argument("--y", action="append", default=[],
                        help="a .npy file with labels; once for each output")
    parser.add_argument("--batch_size", type=int, action="append", default=[],
                        help="a number of examples for which there are programs; default: 32")
    parser.add_argument("--import", dest="modules", action="append", default=[],
                        help="a module with classes of the model, registered in Keras")
    parser.add_argument("--backend", default="auto", choices=("auto", "native", "program"),
                        help="\"program\" makes the whole step one program")
    return parser.parse_args()


def _arrays(paths):
    import numpy as np

    loaded = [np.load(path, mmap_mode="r")[:1] for path in paths]
    return loaded[0] if len(loaded) == 1 else loaded or None


def main():
    """Exports a model."""
    arguments = _arguments()
    sys.path.insert(0, os.getcwd())
    try:
        import keras

        from muster.api import export

        for module in arguments.modules:
            importlib.import_module(module)
        export(keras.models.load_model(arguments.model), arguments.output, _arrays(arguments.x),
               _arrays(arguments.y), batch_sizes=arguments.batch_size or (32,),
               backend=arguments.backend)
    except (ImportError, OSError, RuntimeError, TypeError, ValueError) as error:
        sys.exit(f"muster-export: {error}")


if __name__ == "__main__":
    main()
