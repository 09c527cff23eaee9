#ifndef COMMON_LEARN_TRAIN_BATCH_LOOP_H_
#define COMMON_LEARN_TRAIN_BATCH_LOOP_H_

#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/compute/graph/graph.h"
#include "common/core/tensor/tensor.h"
#include "common/dataset/dataset.h"
#include "common/learn/strategy/strategy.h"

namespace muster {

// A step that is run on batches that are handed to it one by one. It is
// compiled once.
//
// Not thread-safe.
class BatchLoop {
 public:
  // The parameters of `step` are the components of batches like `batch`, but
  // for the batch's extent. `strategy` outlives the loop.
  static absl::StatusOr<std::unique_ptr<BatchLoop>> Create(Strategy& strategy,
                                                           const Graph& step,
                                                           const Element& batch,
                                                           LoopKind kind);

  // The types of batches like `batch`, of unknown extent.
  static std::vector<TensorType> TypesOf(const Element& batch);

  // True if the loop is for batches like this one. Where replicas divide the
  // batch, it is for one size only.
  bool Fits(const Element& batch) const;

  // Runs the step on `batch`, which Fits(); replicas divide it among them. Good
  // until the next call.
  absl::StatusOr<std::vector<Tensor>> Run(Element batch);

 private:
  struct Feed {
    Element batch;
  };

  BatchLoop(std::shared_ptr<Feed> feed, std::vector<TensorType> types,
            std::unique_ptr<StepLoop> loop);

  // Read by the thread that draws from the dataset, in the course of Run().
  const std::shared_ptr<Feed> feed_;
  const std::vector<TensorType> types_;
  const std::unique_ptr<StepLoop> loop_;
};

}  // namespace muster

#endif  // COMMON_LEARN_TRAIN_BATCH_LOOP_H_
