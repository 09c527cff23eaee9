#ifndef COMMON_LEARN_TRAIN_BASE_LOAD_WEIGHTS_OPTIONS_H_
#define COMMON_LEARN_TRAIN_BASE_LOAD_WEIGHTS_OPTIONS_H_

namespace muster {

// The options of Model::LoadWeights() for Keras files. The names are Keras'.
struct LoadWeightsOptions {
  // Loads the layers whose names are in the file and leaves the others
  // unchanged. For files of Keras 2 (*.h5). If false, the layers of such a file
  // must be those of the model, in the same order.
  bool by_name = false;
  // Leaves a layer unchanged, with a warning, if its weights in the file do not
  // fit, for example a new head.
  bool skip_mismatch = false;
};

}  // namespace muster

#endif  // COMMON_LEARN_TRAIN_BASE_LOAD_WEIGHTS_OPTIONS_H_
