"""The losses and metrics of compile(), with programs for those that Muster does not know."""

import keras
from muster.program_losses import export_loss, export_metric
from muster.programs import (MEASURES, ProgramLoss, ProgramMetric, flat_measures, is_known_measure,
                             name_of)


class Measures:
    """Converts the losses and metrics of compile().

    Args:
      model: the copy with programs.
      labels: for each output, (shape of an example, dtype) of its labels.
      sizes: the batch sizes that occur.
    """

    def __init__(self, model, labels, sizes):
        self._names = list(model.output_names)
        self._outputs = [(tuple(tensor.shape[1:]), tensor.dtype) for tensor in model.outputs]
        self._labels = labels
        self._sizes = sizes

    def settings(self, settings):
        """Returns the arguments of compile() with programs."""
        converted_settings = dict(settings)
        for what in MEASURES:
            value = settings.get(what)
            if all(is_known_measure(measure) for measure in flat_measures(value)):
                continue
            if what == "loss":
                converted_settings[what] = self._by_output(what, value, self._loss)
            else:
                weighted = what == "weighted_metrics"
                converted_settings[what] = self._by_output(
                    what, value, lambda one, index, weighted=weighted: [
                        self._metric(metric, index, weighted) for metric in flat_measures(one)])
        return converted_settings

    def _by_output(self, what, value, convert):
        """Returns {output: converted value}, or the converted value for one output."""
        if isinstance(value, dict):
            unknown = set(value) - set(self._names)
            if unknown:
                raise ValueError(f"{what} has {', '.join(map(repr, sorted(unknown)))}; the model's "
                                 f"outputs are {', '.join(self._names)}")
            each = value
        elif len(self._names) == 1:
            each = {self._names[0]: value[0] if what == "loss" and isinstance(value, (list, tuple))
                    else value}
        elif isinstance(value, (list, tuple)) and len(value) == len(self._names):
            each = dict(zip(self._names, value))
        elif what == "loss" and not isinstance(value, (list, tuple)):
            each = {name: value for name in self._names}
        else:
            raise ValueError(f"{what} is {value!r}; expected one entry for each of the outputs "
                             f"{', '.join(self._names)}")
        made = {name: convert(one, self._names.index(name)) for name, one in each.items()}
        return made if len(self._names) > 1 else made[self._names[0]]

    def _label(self, index, name):
        if index >= len(self._labels):
            raise ValueError(f"{name} needs labels for the output {self._names[index]}")
        return self._labels[index]

    def _loss(self, loss, index):
        if is_known_measure(loss):
            return loss
        name = name_of(loss)
        if not isinstance(loss, keras.losses.Loss):
            loss = keras.src.losses.losses.LossFunctionWrapper(loss, name=name)
        program, reduction = export_loss(name, loss, self._label(index, f"loss {name}"),
                                         self._outputs[index], self._sizes)
        return ProgramLoss(name, program, reduction)

    def _metric(self, metric, index, is_weighted):
        if is_known_measure(metric):
            return metric
        name = name_of(metric)
        if not isinstance(metric, keras.metrics.Metric):
            metric = keras.metrics.MeanMetricWrapper(metric, name=name)
        return ProgramMetric(name, export_metric(
            metric, self._label(index, f"metric {name}"), self._outputs[index], self._sizes,
            is_weighted))
