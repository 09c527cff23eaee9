#ifndef COMMON_COMPUTE_OPS_TESTING_OP_CASES_H_
#define COMMON_COMPUTE_OPS_TESTING_OP_CASES_H_

#include <string>
#include <vector>

#include "absl/types/span.h"
#include "common/compute/graph/graph.h"
#include "common/compute/graph/op_registry.h"
#include "common/core/tensor/attributes.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"

namespace muster {

// An input of an op, and the range of its elements.
struct OpInput {
  DType dtype = DType::kFloat32;
  Shape shape;
  double low = -4;
  double high = 4;
};

// A test case of an op.
struct OpCase {
  std::string op;
  Attributes attributes;
  std::vector<OpInput> inputs;
  Subgraphs subgraphs = {};
};

// Returns the op, its inputs and its attributes as text.
std::string Describe(const OpCase& one);

// Returns a case for each list of attributes in the samples of `schema`, an
// elementwise op, with inputs of `dtype` and `shapes`. Returns none if the op
// has another number of inputs or rejects the types.
std::vector<OpCase> ElementwiseCases(const OpSchema& schema, DType dtype,
                                     absl::Span<const Shape> shapes);

}  // namespace muster

#endif  // COMMON_COMPUTE_OPS_TESTING_OP_CASES_H_
