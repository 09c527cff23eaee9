#ifndef COMMON_LEARN_TRAIN_ONNX_LOOPS_H_
#define COMMON_LEARN_TRAIN_ONNX_LOOPS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/compute/graph/graph.h"
#include "common/learn/train/onnx/graph_translator.h"

namespace muster {

// A loop over rows as a node of ONNX.
struct ScanParts {
  // Its parameters are the carry, the rows, and the captured values; its
  // results are the next carry, and the rows that it adds.
  const Graph* body = nullptr;
  std::vector<std::string> carry;  // Its first values.
  std::vector<std::string> rows;   // Iterates along axis 0 of each.
  std::vector<OnnxValue> captured;
  // From the last row to the first.
  bool reverse = false;
  // The row of the first iteration is the last one of the outputs.
  bool reverse_outputs = false;
};

// Adds ONNX's Scan, and returns the names of the last carry and of the rows of
// all iterations, stacked along axis 0.
//   kUnimplemented  the body cannot be translated
absl::StatusOr<std::vector<std::string>> EmitScan(OnnxNode& node,
                                                  const ScanParts& parts);

}  // namespace muster

#endif  // COMMON_LEARN_TRAIN_ONNX_LOOPS_H_
