#include "common/compute/runtime/replica_shapes.h"

#include <algorithm>
#include <utility>

#include "common/core/tensor/shape.h"

namespace muster {

ReplicaShapes::ReplicaShapes(const Graph& graph, ReplicaLink* link)
    : link_(link) {
  int64_t extent_count = 0;
  for (const int parameter : graph.parameters) {
    declared_.push_back(graph.nodes[parameter].outputs[0]);
    extent_count += declared_.back().shape.rank();
  }
  element_counts_.assign(link->replica_count(), extent_count);
  own_extents_ = Tensor(DType::kInt64, {extent_count});
  all_extents_ = Tensor(DType::kInt64, {extent_count * link->replica_count()});
}

absl::Status ReplicaShapes::Exchange(absl::Span<const Tensor> arguments) {
  auto next = own_extents_.mutable_flat<int64_t>().begin();
  for (const Tensor& argument : arguments) {
    const auto dims = argument.shape().dims();
    next = std::copy(dims.begin(), dims.end(), next);
  }
  return link_->AllGather(own_extents_, element_counts_, &all_extents_,
                          "the shapes of the arguments");
}

std::vector<std::vector<TensorType>> ReplicaShapes::ArgumentTypes() const {
  const auto extents = all_extents_.flat<int64_t>();
  std::vector<std::vector<TensorType>> types;
  size_t next = 0;
  for (int replica = 0; replica < link_->replica_count(); ++replica) {
    types.emplace_back();
    for (const TensorType& declared : declared_) {
      const auto dims = extents.subspan(next, declared.shape.rank());
      types.back().push_back({declared.dtype, Shape(dims)});
      next += dims.size();
    }
  }
  return types;
}

}  // namespace muster
