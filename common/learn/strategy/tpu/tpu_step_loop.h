#ifndef COMMON_LEARN_STRATEGY_TPU_TPU_STEP_LOOP_H_
#define COMMON_LEARN_STRATEGY_TPU_TPU_STEP_LOOP_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/compute/graph/graph.h"
#include "common/core/tensor/tensor.h"
#include "common/dataset/dataset.h"
#include "common/learn/strategy/input/sharding_plan.h"
#include "common/learn/strategy/step_loop.h"
#include "common/learn/strategy/tpu/tpu_step.h"
#include "common/learn/strategy/tpu/tpu_system.h"
#include "common/learn/strategy/tpu/tpu_variable_store.h"

namespace muster {

// Runs steps on all devices of a TpuSystem, in the order of the data: each
// element is used once, and the same seeds yield the same random numbers as on
// one device. Two steps may be under way.
//
// Not thread-safe.
class TpuStepLoop final : public StepLoop,
                          public GroupingLoop,
                          public OverlappingLoop,
                          public SeekableLoop,
                          public StoppableLoop {
 public:
  struct Options {
    // Batches prepared ahead of the step; 0: none, and no thread for it.
    int prefetch_batch_count = 2;
  };

  // `variables` is borrowed.
  //   errors  as TpuStep::Create(), and errors in the dataset
  static absl::StatusOr<std::unique_ptr<StepLoop>> Create(
      const Graph& step, const Dataset& dataset, LoopKind kind,
      std::shared_ptr<TpuSystem> system, TpuVariableStore* variables,
      const Options& options);

  absl::StatusOr<Outcome> Run(int64_t step_count_max, OnStep on_step) override;
  SeekableLoop* seekable() override { return this; }
  StoppableLoop* stoppable() override { return this; }
  GroupingLoop* grouping() override { return this; }
  OverlappingLoop* overlapping() override { return this; }

  // A group is one execution. It is smaller where batches have another size,
  // where the optimizer makes another kind of update, and at the end.
  void GroupSteps(int steps_per_start) override {
    group_size_ = steps_per_start;
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
  // Groups that have begun and are not finished.
  static constexpr int kStartedMax = 2;

  TpuStepLoop(std::unique_ptr<TpuStep> step, ShardingPlan plan);

  absl::StatusOr<Outcome> RunSteps(int64_t step_count_max, OnStep on_step);
  // Draws the elements of a group of up to `count_max` steps into group_.
  absl::Status DrawGroup(int64_t count_max, Outcome* outcome);
  // Returns the number of steps.
  absl::StatusOr<int64_t> FinishGroup(OnStep on_step);
  bool MayBegin() const;

  const std::unique_ptr<TpuStep> step_;
  const ShardingPlan plan_;
  std::unique_ptr<DatasetIterator> iterator_;  // Null between epochs.
  StepPosition position_;
  std::function<bool()> is_to_stop_;  // May be empty.
  std::function<bool(int64_t)> may_overlap_;
  int group_size_ = 1;
  std::vector<Element> group_;
  // Drawn for the next group; empty if there is none.
  Element next_;
};

}  // namespace muster

#endif  // COMMON_LEARN_STRATEGY_TPU_TPU_STEP_LOOP_H_
