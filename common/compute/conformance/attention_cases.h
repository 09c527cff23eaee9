#ifndef COMMON_COMPUTE_CONFORMANCE_ATTENTION_CASES_H_
#define COMMON_COMPUTE_CONFORMANCE_ATTENTION_CASES_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/compute/graph/graph.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"
#include "common/core/tensor/tensor.h"

// Attention as layers trace it, for tests of devices that compute it as one op:
// common/compute/kernels/attention.h.
namespace muster {

struct AttentionCase {
  DType dtype = DType::kBfloat16;
  // [batch, time, heads, features], or without heads.
  Shape q, k, v;
  double scale = 1;  // 1: without a Mul of the query.
  // The shape of a mask that is broadcast to the scores; rank 0 means no mask.
  // Some queries have no key.
  Shape mask = {};
  bool is_causal = false;  // A constant mask.
};

std::string Describe(const AttentionCase& one);

// Returns cases with lengths that do and do not fill the tiles of devices, with
// different lengths of query and key, several numbers of features, and masks.
std::vector<AttentionCase> AttentionCases();

// Returns q, k, v, the gradient of the output, and the mask if there is one.
std::vector<Tensor> AttentionInputs(const AttentionCase& one);

// Additions of TraceAttention() to attention.
struct AttentionTracing {
  bool has_gradients = true;
  // Also returns the probabilities as a result, so that attention is not fused.
  bool keeps_probabilities = false;
};

// Returns a graph of AttentionInputs() with the results o, dq, dk and dv.
absl::StatusOr<Graph> TraceAttention(const AttentionCase& one,
                                     const AttentionTracing& tracing = {});

// Returns the results of the host's kernels, computed in float32.
absl::StatusOr<std::vector<Tensor>> WantedAttention(const AttentionCase& one);

// Expects results that differ at most by the rounding of operands to the dtype
// of the case.
void ExpectAttentionClose(const AttentionCase& one,
                          const std::vector<Tensor>& got,
                          const std::vector<Tensor>& wanted);

}  // namespace muster

#endif  // COMMON_COMPUTE_CONFORMANCE_ATTENTION_CASES_H_
