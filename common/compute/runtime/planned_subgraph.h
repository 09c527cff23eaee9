#ifndef COMMON_COMPUTE_RUNTIME_PLANNED_SUBGRAPH_H_
#define COMMON_COMPUTE_RUNTIME_PLANNED_SUBGRAPH_H_

#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "common/compute/kernels/kernel.h"
#include "common/compute/runtime/plan.h"
#include "common/core/tensor/tensor.h"

namespace muster {

// Runs the plan of a subgraph for the kernel of its node.
class PlannedSubgraph final : public CompiledSubgraph {
 public:
  explicit PlannedSubgraph(std::unique_ptr<Plan> plan)
      : plan_(std::move(plan)) {}

  absl::Status Run(absl::Span<const Tensor> arguments,
                   const KernelArguments& step,
                   std::vector<Tensor>* results) override {
    return plan_->Run(
        arguments,
        {.step_seed = step.step_seed, .example_offset = step.example_offset},
        /*session=*/nullptr, results);
  }

 private:
  const std::unique_ptr<Plan> plan_;
};

}  // namespace muster

#endif  // COMMON_COMPUTE_RUNTIME_PLANNED_SUBGRAPH_H_
