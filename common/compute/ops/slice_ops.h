#ifndef COMMON_COMPUTE_OPS_SLICE_OPS_H_
#define COMMON_COMPUTE_OPS_SLICE_OPS_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "common/compute/graph/graph_builder.h"

// Joining, slicing and padding tensors. Negative axes count from the last one.
namespace muster {

Value Concat(absl::Span<const Value> values, int64_t axis);
// Returns pieces of `sizes` along `axis`. One size may be -1: the rest.
std::vector<Value> Split(Value x, std::vector<int64_t> sizes, int64_t axis);

// Joins the values along a new axis, and splits them again.
Value Stack(absl::Span<const Value> values, int64_t axis);
std::vector<Value> Unstack(Value x, int64_t count, int64_t axis);

// x[begin[0] : begin[0] + size[0], ...]. Size -1 extends to the end.
Value Slice(Value x, std::vector<int64_t> begin, std::vector<int64_t> size);
// `paddings` is {before axis 0, after axis 0, before axis 1, ...}.
Value Pad(Value x, std::vector<int64_t> paddings, double value = 0);

// Repeats `x` multiples[i] times along axis i: one multiple, at least 1, for
// each axis.
//
// Equivalent to: tf.tile.
Value Tile(Value x, const std::vector<int64_t>& multiples);

// Returns x with the order of its elements reversed along `axes`.
Value Reverse(Value x, std::vector<int64_t> axes);

// For gradients, whose extents may be unknown while tracing. Returns zeros of
// the shape of `like`, with `x` at position `begin`.
Value PadLike(Value x, Value like, std::vector<int64_t> begin);
// The inverse of PadLike(): the part of `x` at `begin` that has the shape of
// `like`.
Value SliceLike(Value x, Value like, std::vector<int64_t> begin);
// Returns pieces with the extents of `likes` along `axis`.
std::vector<Value> SplitLike(Value x, absl::Span<const Value> likes,
                             int64_t axis);

}  // namespace muster

#endif  // COMMON_COMPUTE_OPS_SLICE_OPS_H_
