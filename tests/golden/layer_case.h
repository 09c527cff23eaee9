#ifndef TESTS_GOLDEN_LAYER_CASE_H_
#define TESTS_GOLDEN_LAYER_CASE_H_

#include "common/learn/nn/layer.h"
#include "tests/golden/golden_data.h"

namespace muster {

// Calls `layer`, which has no name yet, for training on the inputs of a case,
// with its weights, and compares outputs and gradients with what Keras got.
//
// Inputs: x, or x0, x1, ... in the order of the layer's inputs; the weights by
// the ends of their names; a cotangent for each output, of its shape. Outputs:
// y, or y0, y1, ...; grad_<name> for inputs and weights. An input, an output or
// a gradient that the case does not have is not compared.
void ExpectLayerMatches(const GoldenCase& golden, const LayerPtr& layer,
                        double tolerance);

}  // namespace muster

#endif  // TESTS_GOLDEN_LAYER_CASE_H_
