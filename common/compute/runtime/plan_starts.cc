// What steps need that begin before the one before them is done: their own
// memory and arguments.
#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "common/compute/runtime/argument_uses.h"
#include "common/compute/runtime/plan_builder.h"
#include "common/core/base/status_macros.h"
#include "common/core/device/step_graphs.h"
#include "common/core/tensor/buffer.h"

namespace muster {

bool PlanBuilder::CanStart() const {
  if (options_.gate == nullptr) return false;
  for (size_t i = 0; i < graph_.nodes.size(); ++i) {
    if (schemas_[i]->reads == OpReads::kReplicas) return false;
  }
  for (const Plan::Step& step : plan_->steps_) {
    if (step.needs_copies && step.kind != Plan::StepKind::kSetLossDenominator) {
      return false;
    }
  }
  // String tensors have one slot for all steps.
  if (std::count(storages_.begin(), storages_.end(), Storage::kOwn) > 0) {
    return false;
  }
  return std::all_of(graph_.results.begin(), graph_.results.end(),
                     [this](const NodeOutput& result) {
                       const Storage storage = storages_[RootOf(result)];
                       return storage == Storage::kConstant ||
                              storage == Storage::kArena;
                     });
}

absl::Status PlanBuilder::PrepareStarts() {
  if (!CanStart()) return absl::OkStatus();
  plan_->can_start_ = true;
  if (options_.device->captures_steps()) {
    plan_->graphs_ =
        std::make_unique<StepGraphs>(options_.device, options_.stream);
  }
  std::vector<int> positions(roots_.size(), -1);  // Indices in host_slots_.
  for (size_t slot = 0; slot < roots_.size(); ++slot) {
    const int root = roots_[slot];
    if (storages_[root] != Storage::kArena ||
        IsOnDevice(nodes_of_slots_[root])) {
      continue;
    }
    positions[slot] = static_cast<int>(plan_->host_slots_.size());
    plan_->host_slots_.push_back(static_cast<int>(slot));
  }
  for (Plan::Result& result : plan_->results_) {
    result.host_value = positions[result.slot];
  }
  std::shared_ptr<Buffer> arena = plan_->arena_;
  for (Plan::Started& started : plan_->started_) {
    if (arena == nullptr) {
      ASSIGN_OR_RETURN(arena, options_.device->pinned_memory().Allocate(
                                  arena_.size_bytes()));
    }
    for (const int slot : plan_->host_slots_) {
      const Tensor& value = plan_->slots_[slot];
      started.host_values.emplace_back(value.dtype(), value.shape(), arena,
                                       blocks_[roots_[slot]].offset_bytes);
    }
    arena = nullptr;
    ASSIGN_OR_RETURN(started.done, options_.device->CreateEvent());
  }
  return PrepareArguments();
}

absl::Status PlanBuilder::PrepareArguments() {
  std::vector<StepArguments::Use> uses = UsesOfArguments(graph_, options_.ops);
  if (std::count(uses.begin(), uses.end(), StepArguments::Use::kUpload) > 0) {
    ASSIGN_OR_RETURN(plan_->uploads_, options_.device->CreateStream());
  }
  for (Plan::Started& started : plan_->started_) {
    ASSIGN_OR_RETURN(
        started.arguments,
        StepArguments::Create(plan_->argument_types_, uses, graph_.name,
                              options_.device, options_.stream,
                              plan_->uploads_.get()));
  }
  return absl::OkStatus();
}

}  // namespace muster
