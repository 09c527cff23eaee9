#ifndef TESTS_GOLDEN_LAYER_CASE_H_
#define TESTS_GOLDEN_LAYER_CASE_H_

#include "common/learn/nn/layer.h"
#include "tests/golden/golden_data.h"

namespace muster {

// Calls `layer`, which must not have a name yet, in training mode on the inputs
// of a case with the weights of the case. Compares outputs and gradients with
// those of Keras.
//
// Inputs: x, or x0, x1, ... in the order of the layer's inputs; the weights by
// the last part of their names; a cotangent for each output, of the same shape.
// Outputs: y, or y0, y1, ...; grad_<name> for inputs and weights. Inputs,
// outputs and gradients that the case does not have are not compared. The first
// `unknown_axis_count` extents of inputs are unknown while tracing.
void ExpectLayerMatches(const GoldenCase& golden, const LayerPtr& layer,
                        double tolerance, int unknown_axis_count = 0);

}  // namespace muster

#endif  // TESTS_GOLDEN_LAYER_CASE_H_
