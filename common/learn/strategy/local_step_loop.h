#ifndef COMMON_LEARN_STRATEGY_LOCAL_STEP_LOOP_H_
#define COMMON_LEARN_STRATEGY_LOCAL_STEP_LOOP_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/compute/graph/graph.h"
#include "common/compute/runtime/executable.h"
#include "common/compute/variables/variable_session.h"
#include "common/core/device/device.h"
#include "common/core/tensor/tensor.h"
#include "common/dataset/dataset.h"
#include "common/learn/strategy/input/sharding_plan.h"
#include "common/learn/strategy/step_loop.h"

namespace muster {

// Runs steps one after another on this machine, in the order of the data: each
// element is used once, and the same seeds yield bit-identical results. On a
// GPU two steps may be under way.
//
// Not thread-safe.
class LocalStepLoop final : public StepLoop,
                            public OverlappingLoop,
                            public SeekableLoop,
                            public StoppableLoop {
 public:
  struct Options {
    // The GPU that computes; borrowed. Null: the host.
    Device* device = nullptr;
    // Threads per operation.
    int thread_count = 1;
    // Batches prepared ahead of the step; 0: none, and no thread for it.
    int prefetch_batch_count = 0;
  };

  // `variables` is borrowed.
  //   errors  as Executable::Compile(), and errors in the dataset
  static absl::StatusOr<std::unique_ptr<StepLoop>> Create(
      const Graph& step, const Dataset& dataset,
      VariableSessionFactory* variables, const Options& options);

  absl::StatusOr<Outcome> Run(int64_t step_count_max, OnStep on_step) override;
  std::optional<double> DeviceIdleShare() const override;
  SeekableLoop* seekable() override { return this; }
  StoppableLoop* stoppable() override { return this; }
  OverlappingLoop* overlapping() override {
    return step_->overlaps_steps() ? this : nullptr;
  }

  StepPosition position() const override { return position_; }
  absl::Status Seek(const StepPosition& position) override;
  void StopWhen(std::function<bool()> is_to_stop) override {
    is_to_stop_ = std::move(is_to_stop);
  }
  void OverlapWhen(
      std::function<bool(int64_t unfinished_count)> may_overlap) override {
    may_overlap_ = std::move(may_overlap);
  }

 private:
  LocalStepLoop(std::unique_ptr<Executable> step, ShardingPlan plan);

  absl::StatusOr<Outcome> RunSteps(int64_t step_count_max, OnStep on_step);
  // False: the data ends.
  absl::StatusOr<bool> BeginStep();
  absl::Status FinishStep(OnStep on_step);
  bool MayBegin() const;

  const std::unique_ptr<Executable> step_;
  const ShardingPlan plan_;
  std::unique_ptr<DatasetIterator> iterator_;  // Null between epochs.
  StepPosition position_;
  int64_t unfinished_count_ = 0;      // Steps that have begun.
  std::function<bool()> is_to_stop_;  // May be empty.
  std::function<bool(int64_t)> may_overlap_;
  // Returned to their producer, which reuses their memory.
  Element element_;
  std::vector<Tensor> results_;
};

}  // namespace muster

#endif  // COMMON_LEARN_STRATEGY_LOCAL_STEP_LOOP_H_
