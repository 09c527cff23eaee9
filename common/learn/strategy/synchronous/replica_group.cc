#include "common/learn/strategy/synchronous/replica_group.h"

#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "common/core/base/status_macros.h"

namespace muster {

ReplicaGroup::User::User(ReplicaGroup* group, std::function<void()> release)
    : registry_(group->users_) {
  absl::MutexLock lock(&registry_->mutex);
  entry_ =
      registry_->releases.insert(registry_->releases.end(), std::move(release));
}

ReplicaGroup::User::~User() {
  absl::MutexLock lock(&registry_->mutex);
  registry_->releases.erase(entry_);
}

absl::Status ReplicaGroup::Check(const Communicators& communicators,
                                 int worker_index, int worker_count) {
  const int local_count = static_cast<int>(communicators.size());
  if (local_count == 0 || worker_count < 1 || worker_index < 0 ||
      worker_index >= worker_count) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a group of replicas needs at least one on each worker: got ",
        local_count, " on worker ", worker_index, " of ", worker_count));
  }
  for (int i = 0; i < local_count; ++i) {
    const int rank = worker_index * local_count + i;
    const int size = worker_count * local_count;
    if (communicators[i]->rank() == rank && communicators[i]->size() == size) {
      continue;
    }
    return absl::InvalidArgumentError(absl::StrCat(
        "replica ", i, " of worker ", worker_index, " must be rank ", rank,
        " of ", size, "; its communicator is rank ", communicators[i]->rank(),
        " of ", communicators[i]->size()));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<ReplicaGroup>> ReplicaGroup::Create(
    Communicators communicators, Options options) {
  RETURN_IF_ERROR(
      Check(communicators, options.worker_index, options.worker_count));
  return absl::WrapUnique(
      new ReplicaGroup(std::move(communicators), std::move(options)));
}

absl::StatusOr<std::unique_ptr<ReplicaGroup>> ReplicaGroup::CreateJoining(
    int local_count, std::vector<std::string> results, Options options) {
  if (local_count < 1 || options.reform == nullptr) {
    return absl::InvalidArgumentError(
        "a process that joins needs a replica, and a group that changes");
  }
  options.worker_index = 1;
  options.worker_count = 2;
  auto group = absl::WrapUnique(
      new ReplicaGroup(Communicators(local_count), std::move(options)));
  group->is_joining_ = true;
  group->record_ = std::move(results);
  return group;
}

ReplicaGroup::ReplicaGroup(Communicators communicators, Options options)
    : options_(std::move(options)),
      threads_(static_cast<int>(communicators.size())),
      members_({.communicators = std::move(communicators),
                .worker_index = options_.worker_index,
                .worker_count = options_.worker_count}) {
  if (survives_losses()) record_.emplace();
}

int ReplicaGroup::worker_index() const {
  absl::MutexLock lock(&mutex_);
  return members_.worker_index;
}

int ReplicaGroup::worker_count() const {
  absl::MutexLock lock(&mutex_);
  return members_.worker_count;
}

int64_t ReplicaGroup::view() const {
  absl::MutexLock lock(&mutex_);
  return view_;
}

ReplicaGroup::Communicators ReplicaGroup::communicators() const {
  absl::MutexLock lock(&mutex_);
  return members_.communicators;
}

absl::Status ReplicaGroup::Run(
    absl::FunctionRef<absl::Status(int replica)> work) {
  if (communicators().front() == nullptr) {
    return absl::FailedPreconditionError(
        "this worker joins others that already train: before training the "
        "program uses all replicas in a way that a worker that joins cannot "
        "repeat");
  }
  absl::MutexLock lock(&run_mutex_);
  return threads_.Run(work,
                      [this](const absl::Status& status) { Abort(status); });
}

void ReplicaGroup::Abort(const absl::Status& status) {
  Communicators communicators;
  {
    absl::MutexLock lock(&mutex_);
    if (status_.ok()) status_ = status;
    communicators = members_.communicators;
  }
  for (const std::shared_ptr<Communicator>& communicator : communicators) {
    if (communicator != nullptr) communicator->Abort(status);
  }
}

absl::StatusOr<bool> ReplicaGroup::Renew() {
  absl::MutexLock lock(&mutex_);
  if (status_.ok()) return false;
  if (options_.renew == nullptr) return status_;
  ASSIGN_OR_RETURN(members_.communicators, options_.renew());
  status_ = absl::OkStatus();
  return true;
}

}  // namespace muster
