"""The command muster-export."""

import argparse
import importlib
import os
import sys


def _arguments():
    parser = argparse.ArgumentParser(
        prog="muster-export",
        description="Writes a compiled model of Keras for job files (model { keras: ... }) and "
                    "for C++. Parts that Muster does not know become programs, which JAX exports. "
                    "Or writes the weights of a model by the paths of its variables.")
    parser.add_argument("model", help="a .keras file of Keras 3")
    parser.add_argument("-o", "--output", required=True,
                        help="the .keras file to write, or a .safetensors file for the weights")
    parser.add_argument("--weights", help="a .safetensors file with weights for the model, in "
                        "place of its own")
    parser.add_argument("--x", action="append", default=[],
                        help="a .npy file with features; once for each input; required for .keras")
    parser.add_argument("--y", action="append", default=[],
                        help="a .npy file with labels; once for each output")
    parser.add_argument("--batch_size", type=int, action="append", default=[],
                        help="a number of examples for which there are programs; default: 32")
    parser.add_argument("--import", dest="modules", action="append", default=[],
                        help="a module with classes of the model, registered in Keras")
    parser.add_argument("--backend", default="auto", choices=("auto", "native", "program"),
                        help="\"program\" makes the whole step one program")
    parser.add_argument("--for_prediction", action="store_true",
                        help="writes a model that only predicts, if its step would be one program")
    arguments = parser.parse_args()
    if not arguments.x and not arguments.output.endswith(".safetensors"):
        parser.error("--x is required for the programs in a .keras file")
    return arguments


def _arrays(paths):
    import numpy as np

    loaded = [np.load(path, mmap_mode="r")[:1] for path in paths]
    return loaded[0] if len(loaded) == 1 else loaded or None


def _export(arguments):
    import keras

    from muster.api import export, load_weights
    from muster.weights import save_weights

    for module in arguments.modules:
        importlib.import_module(module)
    model = keras.models.load_model(arguments.model)
    if arguments.weights:
        load_weights(model, arguments.weights)
    if arguments.output.endswith(".safetensors"):
        save_weights(model, arguments.output)
        return
    export(model, arguments.output, _arrays(arguments.x), _arrays(arguments.y),
           batch_sizes=arguments.batch_size or (32,), backend=arguments.backend,
           for_prediction=arguments.for_prediction)


def main():
    """Exports a model."""
    arguments = _arguments()
    sys.path.insert(0, os.getcwd())
    try:
        _export(arguments)
    except (ImportError, OSError, RuntimeError, TypeError, ValueError) as error:
        sys.exit(f"muster-export: {error}")


if __name__ == "__main__":
    main()
