#ifndef BENCH_MLP_STEP_H_
#define BENCH_MLP_STEP_H_

#include "common/compute/graph/graph.h"
#include "common/compute/variables/variable_store.h"

namespace muster {

inline constexpr int kMlpWidths[] = {784, 256, 256, 10};
inline constexpr int kMlpLayerCount = 3;

// Returns the training step of an MNIST classifier: forward, backward, and one
// update of each variable by the optimizer of `store`, in which it creates the
// variables. Parameters: float32 [batch, 784] and int64 labels [batch]. Result:
// the mean loss. An error ends the process.
Graph TraceMlpStep(VariableStore* store);

}  // namespace muster

#endif  // BENCH_MLP_STEP_H_
