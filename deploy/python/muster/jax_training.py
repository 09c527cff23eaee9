"""train(): functions of JAX on a cluster."""

import keras
from muster.api import fit

_DEFAULT_BATCH_SIZE = 32


def path_text(path):
    """Returns the path of a leaf of a pytree, such as "layers.0.kernel"."""
    parts = (getattr(key, "key", getattr(key, "name", getattr(key, "idx", key))) for key in path)
    return ".".join(str(part).replace("/", ".") for part in parts) or "params"


class _LossModel(keras.Model):
    """A loss function as a model whose variables are the leaves of its parameters."""

    def __init__(self, loss_fn, params, has_aux, takes_key):
        import jax

        super().__init__(name="loss")
        self._loss_fn = loss_fn
        self._has_aux = has_aux
        leaves, self._structure = jax.tree_util.tree_flatten_with_path(params)
        self._leaves = []
        for path, leaf in leaves:
            value = jax.numpy.asarray(leaf)
            is_trainable = jax.numpy.issubdtype(value.dtype, jax.numpy.floating)
            variable = self.add_weight(shape=value.shape, dtype=str(value.dtype),
                                       initializer="zeros", trainable=is_trainable,
                                       name=path_text(path))
            variable.assign(value)
            self._leaves.append(variable)
        self._keys = keras.random.SeedGenerator(0) if takes_key else None
        self._aux = {}
        self.built = True

    def params(self):
        """Returns the pytree of the variables' values."""
        import jax

        return jax.tree_util.tree_unflatten(self._structure,
                                            [variable.value for variable in self._leaves])

    def trained(self, values):
        """Returns the pytree of `values`, one for each trainable variable."""
        import jax

        given = iter(values)
        leaves = [next(given) if variable.trainable else None for variable in self._leaves]
        return jax.tree_util.tree_unflatten(self._structure, leaves)

    def add_aux_metrics(self, batch):
        """Creates a metric for each value that the loss function returns beside the loss."""
        import jax

        if not self._has_aux:
            return
        _, aux = jax.eval_shape(self._call_loss_fn, batch)
        if not isinstance(aux, dict):
            raise ValueError(f"loss_fn returned {type(aux).__name__} beside the loss; expected a "
                             "dict of numbers")
        for name in aux:
            self._aux[name] = keras.metrics.Mean(name=name)

    def _call_loss_fn(self, batch):
        import jax

        arguments = (self.params(), batch)
        if self._keys is not None:
            arguments += (jax.random.wrap_key_data(self._keys.next()),)
        return self._loss_fn(*arguments)

    def call(self, batch):
        return batch

    def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, training=True):
        import jax

        result = self._call_loss_fn(x)
        if not self._has_aux:
            return result
        loss, aux = result
        count = jax.tree.leaves(x)[0].shape[0]
        for name, metric in self._aux.items():
            metric.update_state(aux[name], sample_weight=count)
        return loss

    def compute_metrics(self, x, y, y_pred, sample_weight=None):
        return self.get_metrics_result()


def train(loss_fn, params, data, optimizer="adam", *, has_aux=False, takes_key=False,
          batch_size=_DEFAULT_BATCH_SIZE, epochs=1, validation_data=None, **options):
    """Minimizes a function of JAX on a cluster of processes.

    Needs Keras on JAX: set KERAS_BACKEND=jax.

    Args:
      loss_fn: (params, batch) -> loss, a scalar: the mean over the examples of the batch.
        It is exported by JAX, so it must be possible to trace it. The cluster runs it
        without Python.
      params: any pytree of arrays, such as the variables of Flax or Equinox. Arrays of
        integers stay as they are.
      data: arrays with a first axis of examples, in lists and dicts; or batches, as fit()
        takes them. A batch has the same structure.
      optimizer: of Keras, or its name; or a transformation of optax that treats each array
        by itself. muster.Optax(transformation) takes global_clipnorm and other options.
      has_aux: loss_fn returns (loss, dict of numbers); the history has their means.
      takes_key: loss_fn takes a key of jax.random as third argument. It differs in each step
        and on each worker.
      validation_data: as `data`, for the loss at the end of each epoch.
      options: as fit(): workers, ps, strategy, callbacks, seed, run_dir and others.

    Returns:
      (params, history): a pytree of arrays with the structure of `params`, and
      keras.callbacks.History.

    Raises:
      as fit().
    """
    if keras.backend.backend() != "jax":
        raise ValueError("train() needs Keras on JAX, not on "
                         f"{keras.backend.backend()}: set KERAS_BACKEND=jax before Python starts")
    import jax
    from muster.optax_optimizer import with_structure

    model = _LossModel(loss_fn, params, has_aux, takes_key)
    model.compile(with_structure(optimizer, model.trained))
    if has_aux:
        leaves = jax.tree.leaves(data)
        if not all(hasattr(leaf, "shape") for leaf in leaves):
            raise ValueError("has_aux needs data in arrays")
        model.add_aux_metrics(jax.tree.map(lambda array: array[:1], data))
    if validation_data is not None:
        validation_data = (validation_data, None)
    history = fit(model, data, batch_size=batch_size, epochs=epochs,
                  validation_data=validation_data, **options)
    return model.params(), history
