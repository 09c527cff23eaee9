#include "common/strategy/local_step_loop.h"

#include "common/base/status_macros.h"
#include "common/kernels/cpu/cpu_kernels.h"
#include "common/ops/builtin_ops.h"

namespace muster {

absl::StatusOr<std::unique_ptr<StepLoop>> LocalStepLoop::Create(
    const Graph& step, const Dataset& dataset, VariableStore* variables,
    const Options& options) {
  RETURN_IF_ERROR(dataset.status());
  ASSIGN_OR_RETURN(
      std::unique_ptr<Executable> executable,
      Executable::Compile(step, BuiltinOps(), CpuKernels(), variables,
                          {.intra_op_thread_count = options.thread_count}));
  return std::unique_ptr<StepLoop>(new LocalStepLoop(
      std::move(executable),
      options.prefetch_batch_count > 0
          ? dataset.Prefetch(options.prefetch_batch_count)
          : dataset));
}

absl::StatusOr<StepLoop::Outcome> LocalStepLoop::Run(int64_t step_count_max,
                                                     OnStep on_step) {
  Outcome outcome;
  while (outcome.step_count < step_count_max) {
    if (iterator_ == nullptr) {
      ASSIGN_OR_RETURN(iterator_, dataset_.MakeIterator({}, epoch_));
    }
    ASSIGN_OR_RETURN(const bool has_element, iterator_->Next(&element_));
    if (!has_element) {
      iterator_ = nullptr;
      ++epoch_;
      outcome.end_of_data = true;
      break;
    }
    // Steps are numbered for all time, so that each draws its own numbers.
    const RunOptions options{.step_seed = step_number_++};
    RETURN_IF_ERROR(step_->Run(element_, options, &results_));
    ++outcome.step_count;
    RETURN_IF_ERROR(on_step(results_));
  }
  return outcome;
}

}  // namespace muster
