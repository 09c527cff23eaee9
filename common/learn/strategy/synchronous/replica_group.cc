#include "common/learn/strategy/synchronous/replica_group.h"

#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "common/core/base/status_macros.h"

namespace muster {

absl::StatusOr<std::unique_ptr<ReplicaGroup>> ReplicaGroup::Create(
    Communicators communicators, Options options) {
  const int local_count = static_cast<int>(communicators.size());
  if (local_count == 0 || options.worker_count < 1 ||
      options.worker_index < 0 ||
      options.worker_index >= options.worker_count) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a group of replicas needs at least one on each worker: got ",
        local_count, " on worker ", options.worker_index, " of ",
        options.worker_count));
  }
  for (int i = 0; i < local_count; ++i) {
    const int rank = options.worker_index * local_count + i;
    const int size = options.worker_count * local_count;
    if (communicators[i]->rank() == rank && communicators[i]->size() == size) {
      continue;
    }
    return absl::InvalidArgumentError(absl::StrCat(
        "replica ", i, " of worker ", options.worker_index, " must be rank ",
        rank, " of ", size, "; its communicator is rank ",
        communicators[i]->rank(), " of ", communicators[i]->size()));
  }
  return absl::WrapUnique(
      new ReplicaGroup(std::move(communicators), std::move(options)));
}

ReplicaGroup::ReplicaGroup(Communicators communicators, Options options)
    : options_(std::move(options)),
      threads_(static_cast<int>(communicators.size())),
      communicators_(std::move(communicators)) {}

ReplicaGroup::Communicators ReplicaGroup::communicators() const {
  absl::MutexLock lock(&mutex_);
  return communicators_;
}

absl::Status ReplicaGroup::Run(
    absl::FunctionRef<absl::Status(int replica)> work) {
  absl::MutexLock lock(&run_mutex_);
  return threads_.Run(work,
                      [this](const absl::Status& status) { Abort(status); });
}

void ReplicaGroup::Abort(const absl::Status& status) {
  Communicators communicators;
  {
    absl::MutexLock lock(&mutex_);
    if (status_.ok()) status_ = status;
    communicators = communicators_;
  }
  for (const std::shared_ptr<Communicator>& communicator : communicators) {
    communicator->Abort(status);
  }
}

absl::StatusOr<bool> ReplicaGroup::Renew() {
  absl::MutexLock lock(&mutex_);
  if (status_.ok()) return false;
  if (options_.renew == nullptr) return status_;
  ASSIGN_OR_RETURN(communicators_, options_.renew());
  status_ = absl::OkStatus();
  return true;
}

}  // namespace muster
