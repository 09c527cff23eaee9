#ifndef COMMON_COMPUTE_OPS_INDEX_OPS_H_
#define COMMON_COMPUTE_OPS_INDEX_OPS_H_

#include <cstdint>
#include <vector>

#include "common/compute/graph/graph_builder.h"
#include "common/core/tensor/dtype.h"

// Lookups by int32 or int64 indices.
namespace muster {

// Returns a tensor of shape params[:axis] + indices.shape + params[axis+1:]. An
// index out of range fails the step. The gradient of `params` is sparse if axis
// is 0.
Value Gather(Value params, Value indices, int64_t axis = 0);

// The gradient of Gather: zeros of the type of `like`, with `values` added at
// `indices` along `axis`. Rows with equal indices are summed.
Value ScatterRowsLike(Value values, Value indices, Value like,
                      int64_t axis = 0);

// Returns params[indices[i, 0], indices[i, 1], ...] for each row of indices
// [..., n]: a tensor of shape indices.shape[:-1] + params.shape[n:]. The
// extents of `params`, and n, must be known while tracing. An index out of
// range of its axis fails the step.
//
// Equivalent to: tf.gather_nd.
Value GatherNd(Value params, Value indices);

// The reverse of GatherNd(): zeros of `shape`, with `updates` added at
// `indices`.
//
// Equivalent to: tf.scatter_nd.
Value ScatterNd(Value indices, Value updates, std::vector<int64_t> shape);

// Sums the rows of `data` whose segment_ids [rows] are equal: result i is the
// sum of those with id i, [segment_count, ...]. Rows with a negative id belong
// to no segment. An id from segment_count on fails the step.
//
// Equivalent to: tf.math.unsorted_segment_sum, and segment_sum.
Value SegmentSum(Value data, Value segment_ids, int64_t segment_count);

struct OneHotOptions {
  double on_value = 1;
  double off_value = 0;
  DType dtype = DType::kFloat32;
};
// Returns a tensor of shape indices.shape + [depth]. An index out of range
// fails the step. TensorFlow returns a row of off_value instead, which hides
// wrong labels.
Value OneHot(Value indices, int64_t depth, OneHotOptions options = {});

// True if targets[i] is among the `k` greatest of predictions[i], including
// ties: bool [batch]. False if a prediction is not finite or the target is out
// of range.
Value InTopK(Value predictions, Value targets, int64_t k);

}  // namespace muster

#endif  // COMMON_COMPUTE_OPS_INDEX_OPS_H_
