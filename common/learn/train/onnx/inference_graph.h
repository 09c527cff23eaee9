#ifndef COMMON_LEARN_TRAIN_ONNX_INFERENCE_GRAPH_H_
#define COMMON_LEARN_TRAIN_ONNX_INFERENCE_GRAPH_H_

#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "common/compute/graph/graph.h"
#include "common/core/tensor/tensor.h"

namespace muster {

// The values of variables, by name.
using VariableValues = absl::flat_hash_map<std::string, Tensor>;

// Returns `graph` as a graph without variables and 16-bit floats:
//   - Reads of variables become constants, named like the variables.
//   - 16-bit floats become float32, so that weights keep all their digits.
//   - Values that depend on constants only are computed, with the kernels of
//     this process, unless they are much larger than what they depend on.
//   - Nodes on which no result depends may remain.
//
//   kNotFound       `values` lacks a variable
//   kUnimplemented  the graph updates a variable; names the node
//   others          of the kernels
absl::StatusOr<Graph> PrepareForExport(const Graph& graph,
                                       const VariableValues& values);

}  // namespace muster

#endif  // COMMON_LEARN_TRAIN_ONNX_INFERENCE_GRAPH_H_
