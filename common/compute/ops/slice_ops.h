#ifndef COMMON_COMPUTE_OPS_SLICE_OPS_H_
#define COMMON_COMPUTE_OPS_SLICE_OPS_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "common/compute/graph/graph_builder.h"

// Tensors joined, cut and padded. Axes may be negative and then count from the
// back.
namespace muster {

Value Concat(absl::Span<const Value> values, int64_t axis);
// Pieces of `sizes` along `axis`; one size may be -1, the rest.
std::vector<Value> Split(Value x, std::vector<int64_t> sizes, int64_t axis);

// Stands the values side by side along a new axis, and takes them apart.
Value Stack(absl::Span<const Value> values, int64_t axis);
std::vector<Value> Unstack(Value x, int64_t count, int64_t axis);

// x[begin[0] : begin[0] + size[0], ...]; size -1 reaches to the end.
Value Slice(Value x, std::vector<int64_t> begin, std::vector<int64_t> size);
// `paddings` is {before axis 0, after axis 0, before axis 1, ...}.
Value Pad(Value x, std::vector<int64_t> paddings, double value = 0);

// For gradients, where extents may be unknown while tracing.
// Zeros of the shape of `like`, with `x` from position `begin` on ...
Value PadLike(Value x, Value like, std::vector<int64_t> begin);
// ... and its inverse: as much of `x` from `begin` on as `like` is large.
Value SliceLike(Value x, Value like, std::vector<int64_t> begin);
// Pieces as large along `axis` as each of `likes` is.
std::vector<Value> SplitLike(Value x, absl::Span<const Value> likes,
                             int64_t axis);

}  // namespace muster

#endif  // COMMON_COMPUTE_OPS_SLICE_OPS_H_
