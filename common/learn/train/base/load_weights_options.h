#ifndef COMMON_LEARN_TRAIN_BASE_LOAD_WEIGHTS_OPTIONS_H_
#define COMMON_LEARN_TRAIN_BASE_LOAD_WEIGHTS_OPTIONS_H_

namespace muster {

// Of Model::LoadWeights(), for files of Keras; the names are Keras'.
struct LoadWeightsOptions {
  // Loads the layers whose names are in the file, and leaves the others as they
  // are. For files of Keras 2 (*.h5), whose layers are otherwise those of the
  // model in their order.
  bool by_name = false;
  // Leaves a layer as it is, with a warning, if the file has other weights for
  // it: as for a new head.
  bool skip_mismatch = false;
};

}  // namespace muster

#endif  // COMMON_LEARN_TRAIN_BASE_LOAD_WEIGHTS_OPTIONS_H_
