#ifndef COMMON_COMPUTE_RUNTIME_REPLICA_SHAPES_H_
#define COMMON_COMPUTE_RUNTIME_REPLICA_SHAPES_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "common/compute/graph/graph.h"
#include "common/compute/runtime/replica_link.h"
#include "common/core/tensor/tensor.h"

namespace muster {

// Exchanges the shapes of the arguments of all replicas of a step, so that each
// replica can compute the sizes of gathered values before the step begins.
// Costs one small collective per step, for graphs that need it. Not
// thread-safe.
class ReplicaShapes {
 public:
  // `link` is borrowed and outlives this object.
  ReplicaShapes(const Graph& graph, ReplicaLink* link);

  // Waits for all replicas. The arguments must fit the graph's parameters.
  // Allocates nothing. Errors are the link's.
  absl::Status Exchange(absl::Span<const Tensor> arguments);

  // Returns the result of the last exchange: all extents of all arguments, by
  // replica.
  absl::Span<const int64_t> extents() const {
    return all_extents_.flat<int64_t>();
  }

  // Returns the same as types: [replica][argument].
  std::vector<std::vector<TensorType>> ArgumentTypes() const;

 private:
  ReplicaLink* const link_;
  std::vector<TensorType> declared_;
  std::vector<int64_t> element_counts_;  // Of all_extents_, by replica.
  Tensor own_extents_;
  Tensor all_extents_;
};

}  // namespace muster

#endif  // COMMON_COMPUTE_RUNTIME_REPLICA_SHAPES_H_
