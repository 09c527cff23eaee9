#include "common/learn/train/batch_loop.h"

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/compute/graph/graph.h"
#include "common/core/base/status_macros.h"
#include "common/core/tensor/shape.h"
#include "common/core/tensor/tensor.h"
#include "common/dataset/dataset.h"
#include "common/learn/strategy/strategy.h"

namespace muster {

absl::StatusOr<std::unique_ptr<BatchLoop>> BatchLoop::Create(
    Strategy& strategy, const Graph& step, const Element& batch,
    LoopKind kind) {
  std::vector<TensorType> types = TypesOf(batch);
  for (const TensorType& type : types) {
    if (type.shape.rank() > 0) continue;
    return absl::InvalidArgumentError(
        "expected a batch, got a scalar among its components");
  }
  auto feed = std::make_shared<Feed>();
  // Each pass through the data is one batch: the one in `feed` when the pass
  // begins.
  const Dataset data = Dataset::Range(1).MapElements(
      [feed](Element) -> absl::StatusOr<Element> { return feed->batch; },
      types);
  absl::StatusOr<std::unique_ptr<StepLoop>> loop =
      strategy.CreateLoop(step, data, kind);
  if (absl::IsInvalidArgument(loop.status())) {
    // Replicas can only divide batches of known size.
    const int64_t size = batch.front().shape().dim(0);
    for (TensorType& type : types) type.shape.set_dim(0, size);
    loop = strategy.CreateLoop(step, data.Unbatch().Batch(size), kind);
  }
  RETURN_IF_ERROR(loop.status());
  return std::unique_ptr<BatchLoop>(
      new BatchLoop(std::move(feed), std::move(types), *std::move(loop)));
}

BatchLoop::BatchLoop(std::shared_ptr<Feed> feed, std::vector<TensorType> types,
                     std::unique_ptr<StepLoop> loop)
    : feed_(std::move(feed)),
      types_(std::move(types)),
      loop_(std::move(loop)) {}

std::vector<TensorType> BatchLoop::TypesOf(const Element& batch) {
  std::vector<TensorType> types;
  for (const Tensor& component : batch) {
    TensorType type = component.type();
    if (type.shape.rank() > 0) type.shape.set_dim(0, Shape::kUnknown);
    types.push_back(std::move(type));
  }
  return types;
}

bool BatchLoop::Fits(const Element& batch) const {
  if (types_.size() != batch.size()) return false;
  for (size_t i = 0; i < batch.size(); ++i) {
    const bool fits = batch[i].dtype() == types_[i].dtype &&
                      batch[i].shape().IsCompatibleWith(types_[i].shape);
    if (!fits) return false;
  }
  return true;
}

absl::StatusOr<std::vector<Tensor>> BatchLoop::Run(Element batch) {
  feed_->batch = std::move(batch);
  std::vector<Tensor> kept;
  const auto keep = [&](absl::Span<const Tensor> results) {
    for (const Tensor& result : results) kept.push_back(result.Clone());
    return absl::OkStatus();
  };
  // Runs to the end of the data, so that the next pass starts at the beginning.
  const absl::Status status =
      loop_->Run(std::numeric_limits<int64_t>::max(), keep).status();
  feed_->batch.clear();
  RETURN_IF_ERROR(status);
  if (kept.empty()) {
    return absl::InvalidArgumentError("the batch has no examples");
  }
  return kept;
}

}  // namespace muster
