#ifndef COMMON_COMPUTE_CONFORMANCE_ATTENTION_CASES_H_
#define COMMON_COMPUTE_CONFORMANCE_ATTENTION_CASES_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/compute/graph/graph.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"
#include "common/core/tensor/tensor.h"

// Attention as layers trace it, for tests of the devices that compute it as one
// op: common/compute/kernels/attention.h.
namespace muster {

struct AttentionCase {
  DType dtype = DType::kBfloat16;
  // [batch, time, heads, features], or without heads.
  Shape q, k, v;
  double scale = 1;  // If it is 1, the query is not multiplied.
  // Of a mask that is broadcast to the scores; of rank 0: there is none. Some
  // queries have no key.
  Shape mask = {};
  bool is_causal = false;  // A constant mask.
};

std::string Describe(const AttentionCase& one);

// Lengths that fill the tiles of devices and others, lengths of query and key
// that differ, several numbers of features, and masks.
std::vector<AttentionCase> AttentionCases();

// Returns q, k, v, what the gradient of the output is to be, and the mask, if
// there is one.
std::vector<Tensor> AttentionInputs(const AttentionCase& one);

// What TraceAttention() adds to attention.
struct AttentionTracing {
  bool has_gradients = true;
  // The probabilities are a result, too, so that nothing is fused.
  bool keeps_probabilities = false;
};

// Returns the graph of those inputs with the results o, dq, dk and dv.
absl::StatusOr<Graph> TraceAttention(const AttentionCase& one,
                                     const AttentionTracing& tracing = {});

// Returns the results by the kernels of the host, computed in float32.
absl::StatusOr<std::vector<Tensor>> WantedAttention(const AttentionCase& one);

// Expects results that differ by the rounding of operands to the dtype of the
// case.
void ExpectAttentionClose(const AttentionCase& one,
                          const std::vector<Tensor>& got,
                          const std::vector<Tensor>& wanted);

}  // namespace muster

#endif  // COMMON_COMPUTE_CONFORMANCE_ATTENTION_CASES_H_
