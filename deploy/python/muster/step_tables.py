"""Embeddings of a model whose step is a program: their rows become inputs of the program.

The cluster looks the rows up and updates single rows, so that tables on parameter servers are not
sent as a whole. What the model computes from its inputs to get the row numbers becomes another
program, unless an input has them.
"""

import collections
import contextlib

import jax
from jax.extend import core

import keras
from muster.program_export import CalledPart, export_part, output_types, restricted
from muster.programs import Program

# A call of an embedding: the layer, the types of its row numbers with None for the batch, and the
# index of the input that has them, or None.
_Call = collections.namedtuple("_Call", ["layer", "shape", "dtype", "input"])


def _candidates(model):
    layers = [layer for layer in model._flatten_layers()
              if type(layer) is keras.layers.Embedding and layer.built
              and layer.embeddings_regularizer is None and layer.embeddings_constraint is None
              and not getattr(layer, "lora_enabled", False)
              and getattr(layer, "quantization_mode", None) is None]
    names = collections.Counter(layer.name for layer in layers)
    return [layer for layer in layers if names[layer.name] == 1]


@contextlib.contextmanager
def _calls(layers, function):
    """Within the context, the layers return function(layer, inputs)."""
    def replaced(layer):
        return lambda inputs: function(layer, inputs)

    for layer in layers:
        vars(layer)["call"] = replaced(layer)
    try:
        yield
    finally:
        for layer in layers:
            del vars(layer)["call"]


class Tables:
    """The embeddings of a model that are looked up outside of its program.

    Args:
      name: of the model.
      inputs: the types of the inputs of the step for a batch.
      weights: [(variable, value)] of the model.
      run: (values of the inputs, training) runs the step, and returns what depends on tables.
    """

    def __init__(self, name, model, inputs, weights, run):
        self._name, self._model = name, model
        self._inputs, self._weights, self._run = inputs, weights, run
        self._layers = _candidates(model)
        self._calls = []
        unfit = self._layers
        while unfit:
            unfit = self._find_calls()
            self._layers = [layer for layer in self._layers if layer not in unfit]

    def _trace(self, function, inputs):
        """Returns the jaxpr of `function`, of the inputs and the weights."""
        def results(values, weights):
            mapping = [(variable, value) for (variable, _), value in zip(self._weights, weights)]
            with keras.StatelessScope(state_mapping=mapping, collect_losses=True):
                return function(values)

        return jax.make_jaxpr(results)(inputs, [value for _, value in self._weights])

    def _trace_numbers(self, inputs):
        """Returns (the jaxpr of the row numbers, the layers) of the calls in a step."""
        layers = []

        def numbers(values):
            found = []

            def look_up(layer, ids):
                layers.append(layer)
                found.append(jax.numpy.asarray(ids))
                return type(layer).call(layer, ids)

            with _calls(self._layers, look_up):
                self._run(values, False)
            return found

        return self._trace(numbers, inputs), layers

    def _find_calls(self):
        """Sets the calls. Returns the layers that must stay in the program."""
        closed, called = self._trace_numbers(self._inputs)
        count = len(self._inputs)
        positions = {id(one): index for index, one in enumerate(closed.jaxpr.invars[:count])}
        unfit, calls = [layer for layer in self._layers if layer not in called], []
        for index, layer in enumerate(called):
            outvar = closed.jaxpr.outvars[index]
            _, used = restricted(closed, [index])
            shape = outvar.aval.shape
            if any(one >= count for one in used) or not shape or shape[0] != 3:
                unfit.append(layer)
            calls.append(_Call(layer, (None, *shape[1:]), str(outvar.aval.dtype),
                               positions.get(id(outvar))))
        self._calls = calls
        return unfit or self._used_otherwise()

    def _used_otherwise(self):
        """Returns the layers whose tables the step uses other than by calling the layers."""
        def loss(values):
            with self.looked_up([jax.numpy.zeros((3, *shape[1:]), dtype)
                                 for (shape, dtype), _ in self.rows()]):
                return self._run(values, True)

        jaxpr = self._trace(loss, self._inputs).jaxpr
        used = {id(atom) for equation in jaxpr.eqns for atom in equation.invars}
        tables = {id(layer._embeddings): layer for layer in self._layers}
        return [tables[id(variable)] for (variable, _), invar in
                zip(self._weights, jaxpr.invars[len(self._inputs):])
                if id(variable) in tables and id(invar) in used]

    def variables(self):
        return [layer._embeddings for layer in self._layers]

    def rows(self):
        """Returns ((shape, dtype), whether it is trained) of the rows of each call."""
        return [(((*call.shape, call.layer.output_dim), call.layer.compute_dtype),
                 call.layer._embeddings.trainable) for call in self._calls]

    @contextlib.contextmanager
    def looked_up(self, rows):
        """Within the context, calls of the layers in a step return `rows`, one after another."""
        given = iter(rows)
        with _calls(self._layers, lambda layer, inputs: next(given)):
            yield

    @contextlib.contextmanager
    def called(self, inputs, sizes):
        """Within the context, the layers are called. Yields their outputs, KerasTensors.

        Args:
          inputs: KerasTensors of the inputs of the step.
          sizes: the batch sizes that occur.
        """
        computed = iter(self._computed_numbers(inputs, sizes))
        nodes = []
        try:
            rows = []
            for call in self._calls:
                rows.append(call.layer(next(computed) if call.input is None else
                                       inputs[call.input]))
                nodes.append((call.layer, call.layer._inbound_nodes[-1]))
            yield rows
        finally:
            for layer, node in nodes:
                layer._inbound_nodes.remove(node)

    def _computed_numbers(self, inputs, sizes):
        """Returns the KerasTensors of the row numbers that are no inputs."""
        indices = [index for index, call in enumerate(self._calls) if call.input is None]
        if not indices:
            return []

        def numbers(values, training):
            closed, _ = restricted(self._trace_numbers(values)[0], indices)
            unused = [jax.numpy.zeros(value.shape, value.dtype) for _, value in self._weights]
            return core.jaxpr_as_fun(closed)(*values, *unused)

        name = f"{self._name}_rows"
        part = CalledPart(name, None, [((None, *spec.shape[1:]), str(spec.dtype))
                                       for spec in self._inputs], [False] * len(inputs), numbers)
        fields, weights = export_part(part, sizes, sizes)
        outputs = [keras.KerasTensor(shape, dtype) for shape, dtype in output_types(fields)]
        program = Program(name, fields, weights, outputs)
        return keras.tree.flatten(program(*inputs))
