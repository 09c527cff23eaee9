#ifndef COMMON_COMPUTE_OPS_TESTING_OP_CASES_H_
#define COMMON_COMPUTE_OPS_TESTING_OP_CASES_H_

#include <string>
#include <vector>

#include "absl/types/span.h"
#include "common/compute/graph/op_registry.h"
#include "common/core/tensor/attributes.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"

namespace muster {

// An input of an op, and between which numbers its elements lie.
struct OpInput {
  DType dtype = DType::kFloat32;
  Shape shape;
  double low = -4;
  double high = 4;
};

// One way to run an op.
struct OpCase {
  std::string op;
  Attributes attributes;
  std::vector<OpInput> inputs;
};

// The op, its inputs and its attributes, for messages.
std::string Describe(const OpCase& one);

// A case for each list of attributes in the samples of `schema`, an elementwise
// op, with inputs of `dtype` and `shapes`. None where the op takes another
// number of inputs, or refuses such types.
std::vector<OpCase> ElementwiseCases(const OpSchema& schema, DType dtype,
                                     absl::Span<const Shape> shapes);

}  // namespace muster

#endif  // COMMON_COMPUTE_OPS_TESTING_OP_CASES_H_
