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

// A step that runs on batches that are passed one by one. It is compiled once.
//
// Not thread-safe.
class BatchLoop {
 public:
  // The parameters of `step` are the components of batches with the types of
  // `batch`; the number of examples may differ. `strategy` must outlive the
  // loop.
  static absl::StatusOr<std::unique_ptr<BatchLoop>> Create(Strategy& strategy,
                                                           const Graph& step,
                                                           const Element& batch,
                                                           LoopKind kind);

  // Returns the types of `batch` with an unknown number of examples.
  static std::vector<TensorType> TypesOf(const Element& batch);

  // True if the loop accepts `batch`. If replicas divide the batch, the loop
  // accepts only one batch size.
  bool Fits(const Element& batch) const;

  // Runs the step on `batch`, which must fit (Fits()). Replicas divide the
  // batch. The results are valid until the next call.
  absl::StatusOr<std::vector<Tensor>> Run(Element batch);

 private:
  struct Feed {
    Element batch;
  };

  BatchLoop(std::shared_ptr<Feed> feed, std::vector<TensorType> types,
            std::unique_ptr<StepLoop> loop);

  // Read, during Run(), by the thread that reads the dataset.
  const std::shared_ptr<Feed> feed_;
  const std::vector<TensorType> types_;
  const std::unique_ptr<StepLoop> loop_;
};

}  // namespace muster

#endif  // COMMON_LEARN_TRAIN_BATCH_LOOP_H_
