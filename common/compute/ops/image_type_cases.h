#ifndef COMMON_COMPUTE_OPS_IMAGE_TYPE_CASES_H_
#define COMMON_COMPUTE_OPS_IMAGE_TYPE_CASES_H_

#include <string>
#include <vector>

#include "common/core/tensor/attributes.h"
#include "common/core/tensor/tensor.h"

namespace muster {

// What an op makes of types, for tests.
struct TypeCase {
  std::string op;
  std::vector<TensorType> inputs;
  Attributes attributes;
  // What comes out, as text: "float32[2,3] bool[?]"; or, after "! ", what the
  // error must say.
  std::string expected;
};

// Of convolutions, poolings, normalizations and what resizes images.
std::vector<TypeCase> ImageTypeCases();

}  // namespace muster

#endif  // COMMON_COMPUTE_OPS_IMAGE_TYPE_CASES_H_
