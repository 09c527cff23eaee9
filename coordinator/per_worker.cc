#include "coordinator/per_worker.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "worker/client/step_signature.h"

namespace muster {

std::vector<Value> Iterator::Next() const {
  const int element = state_->taken_count++;
  std::vector<Value> components;
  for (size_t i = 0; i < state_->element_types.size(); ++i) {
    components.push_back(state_->builder->Parameter(
        absl::StrCat("element_", element, "_", i), state_->element_types[i],
        ToAttributes({.argument = state_->argument,
                      .element = element,
                      .component = static_cast<int>(i)})));
  }
  return components;
}

namespace internal {

void ReportComponentCount(GraphBuilder* builder, size_t wanted,
                          size_t received) {
  builder->ReportError(absl::InvalidArgumentError(
      absl::StrCat("Next<", wanted, ">() of an iterator whose elements have ",
                   received, " components")));
}

}  // namespace internal
}  // namespace muster
