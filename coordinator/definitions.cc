#include "coordinator/definitions.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "coordinator/per_worker_dataset.h"
#include "coordinator/worker_record.h"
#include "proto/worker.pb.h"
#include "worker/client/worker_protocol.h"

namespace muster {

Definitions::Definitions() = default;
Definitions::~Definitions() = default;

uint32_t Definitions::AddFunction(absl::string_view name,
                                  std::string serialized_graph) {
  const uint64_t fingerprint = GraphFingerprint(serialized_graph);
  for (size_t i = 0; i < functions_.size(); ++i) {
    if (functions_[i].fingerprint == fingerprint) {
      return static_cast<uint32_t>(i);
    }
  }
  functions_.push_back({.fingerprint = fingerprint,
                        .serialized_graph = std::move(serialized_graph),
                        .name = std::string(name)});
  return static_cast<uint32_t>(functions_.size() - 1);
}

uint32_t Definitions::AddIterator(IteratorRecord iterator) {
  iterators_.push_back(std::move(iterator));
  return static_cast<uint32_t>(iterators_.size() - 1);
}

void Definitions::AddTo(WorkerRecord* record,
                        proto::WorkerCommand* command) const {
  for (; record->sent_function_count < functions_.size();
       ++record->sent_function_count) {
    const Function& function = functions_[record->sent_function_count];
    proto::FunctionDefinition* const definition = command->add_functions();
    definition->set_function_id(
        static_cast<uint32_t>(record->sent_function_count));
    definition->set_fingerprint(function.fingerprint);
    if (record->known_fingerprints.insert(function.fingerprint).second) {
      definition->set_graph(function.serialized_graph);
    }
  }
  for (; record->sent_iterator_count < iterators_.size();
       ++record->sent_iterator_count) {
    const IteratorRecord& iterator = iterators_[record->sent_iterator_count];
    proto::IteratorDefinition* const definition = command->add_iterators();
    *definition = iterator.contexts[record->worker];
    // A worker that reconnects gets the epoch of another pass, so that its
    // iterator does not repeat the same elements.
    definition->set_epoch(definition->epoch() + record->sessions_open_count -
                          1);
    definition->set_iterator_id(
        static_cast<uint32_t>(record->sent_iterator_count));
    definition->set_dataset(iterator.serialized_datasets.size() == 1
                                ? iterator.serialized_datasets[0]
                                : iterator.serialized_datasets[record->worker]);
  }
}

absl::Status Definitions::AddStepDurations(const proto::WorkerReport& report) {
  for (const proto::FunctionTime& time : report.function_times()) {
    if (time.function_id() >= functions_.size() || time.step_count() <= 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("the report has the time of ", time.step_count(),
                       " steps of function ", time.function_id(),
                       "; expected one step or more of one of ",
                       functions_.size(), " functions"));
    }
    functions_[time.function_id()].step_durations->Add(
        absl::Nanoseconds(time.busy_ns()) / time.step_count(),
        time.step_count());
  }
  return absl::OkStatus();
}

absl::Duration Definitions::TotalStepDuration() const {
  absl::Duration total;
  for (const Function& function : functions_) {
    total += function.step_durations->total();
  }
  return total;
}

}  // namespace muster
