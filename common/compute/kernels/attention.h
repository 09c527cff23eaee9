#ifndef COMMON_COMPUTE_KERNELS_ATTENTION_H_
#define COMMON_COMPUTE_KERNELS_ATTENTION_H_

#include <array>
#include <cstdint>
#include <optional>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/core/tensor/shape.h"
#include "common/core/tensor/tensor.h"

namespace muster {

// Ops that exist only in kernels: scaled dot-product attention as one op, which
// does not store scores in memory.
//
// FusedAttention(q, k, v, bias) returns
//   o           softmax(scale q k' + bias) v, for each example and head
//   statistics  float32[batch, heads, time]: the logarithm of the sum of the
//               exponentials of each row of scale q k' + bias
// FusedAttentionGrad(do, q, k, v, o, statistics, bias) returns dq, dk and dv.
//
// q, o and their gradients are [batch, time, heads, features], k and v [batch,
// source time, heads, features]; without the axis of heads there is one head. k
// has as many features as q, and o as many as v. `scale` is a double. The bias
// is optional. It is [batch, heads, time, source time] with the dtype of q;
// batch and heads may be 1 and are then broadcast. If the bool `is_causal` is
// true, position i of the query attends to positions 0 to i of the key only.
//
// Source: Dao, "FlashAttention-2: Faster Attention with Better Parallelism and
// Work Partitioning", 2023.
inline constexpr absl::string_view kFusedAttentionOp = "FusedAttention";
inline constexpr absl::string_view kFusedAttentionGradOp = "FusedAttentionGrad";
inline constexpr absl::string_view kAttentionScaleAttribute = "scale";
inline constexpr absl::string_view kAttentionCausalAttribute = "is_causal";

struct AttentionGeometry {
  int64_t batch = 0;
  int64_t heads = 1;
  int64_t query_count = 0;  // The time of the query.
  int64_t key_count = 0;    // The time of key and value.
  int64_t key_dim = 0;      // The features of a head of query and key.
  int64_t value_dim = 0;    // The features of a head of value and output.
  std::optional<std::array<int64_t, 4>> bias_extents = {};

  // `bias` is null if there is none.
  //   kInvalidArgument  the types do not match the description of q, k, v and
  //                     bias above
  static absl::StatusOr<AttentionGeometry> Of(const TensorType& q,
                                              const TensorType& k,
                                              const TensorType& v,
                                              const TensorType* bias);

  Shape StatisticsShape() const { return {batch, heads, query_count}; }
};

}  // namespace muster

#endif  // COMMON_COMPUTE_KERNELS_ATTENTION_H_
