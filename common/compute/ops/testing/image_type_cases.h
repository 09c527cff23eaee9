#ifndef COMMON_COMPUTE_OPS_TESTING_IMAGE_TYPE_CASES_H_
#define COMMON_COMPUTE_OPS_TESTING_IMAGE_TYPE_CASES_H_

#include <string>
#include <vector>

#include "common/compute/graph/graph.h"
#include "common/core/tensor/attributes.h"
#include "common/core/tensor/tensor.h"

namespace muster {

// A test case of an op's type rule.
struct TypeCase {
  std::string op;
  std::vector<TensorType> inputs;
  Attributes attributes;
  // The output types as text, "float32[2,3] bool[?]"; or "! " and a part of the
  // expected error message.
  std::string expected;
  Subgraphs subgraphs = {};
};

// Returns the cases of convolutions, pooling, normalization and resizing.
std::vector<TypeCase> ImageTypeCases();

}  // namespace muster

#endif  // COMMON_COMPUTE_OPS_TESTING_IMAGE_TYPE_CASES_H_
