// How a group of replicas completes an operation after the loss of workers.

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "common/core/base/status_macros.h"
#include "common/core/tensor/dtype.h"
#include "common/learn/strategy/synchronous/broadcast_bytes.h"
#include "common/learn/strategy/synchronous/group_operation.h"
#include "common/learn/strategy/synchronous/replica_group.h"

namespace muster {
namespace {

constexpr char kChangedVariables = 'v';
constexpr char kChangedNothing = 'n';

}  // namespace

absl::Status ReplicaGroup::Complete(GroupOperation& operation) {
  if (!survives_losses()) return operation.Run();
  absl::Status status = operation.Run();
  while (!status.ok()) {
    ASSIGN_OR_RETURN(const std::optional<std::string> missed,
                     Recover(operation, status));
    if (missed.has_value()) {
      RETURN_IF_ERROR(operation.Adopt(*missed));
      last_result_ = *missed;
      last_changed_variables_ = operation.changes_variables();
      ++completed_count_;
      return absl::OkStatus();
    }
    status = operation.Run();
  }
  last_result_ = operation.Result();
  last_changed_variables_ = operation.changes_variables();
  ++completed_count_;
  return absl::OkStatus();
}

absl::StatusOr<std::optional<std::string>> ReplicaGroup::Recover(
    const GroupOperation& operation, const absl::Status& failure) {
  absl::Status status = failure;
  while (true) {
    RETURN_IF_ERROR(Reform(status));
    absl::StatusOr<std::optional<std::string>> missed =
        Equalize(operation.may_end_halfway());
    if (missed.ok()) return missed;
    // Another worker may have been lost meanwhile.
    status = missed.status();
  }
}

absl::Status ReplicaGroup::Reform(const absl::Status& failure) {
  {
    absl::MutexLock lock(&mutex_);
    // The operation failed for a reason of its own.
    if (status_.ok()) return failure;
  }
  std::vector<std::function<void()>> releases;
  {
    absl::MutexLock lock(&users_->mutex);
    releases.assign(users_->releases.begin(), users_->releases.end());
  }
  for (const std::function<void()>& release : releases) release();
  {
    absl::MutexLock lock(&mutex_);
    members_.communicators.clear();
  }
  absl::StatusOr<Membership> formed = options_.reform();
  if (!formed.ok()) return formed.status();
  RETURN_IF_ERROR(
      Check(formed->communicators, formed->worker_index, formed->worker_count));
  absl::MutexLock lock(&mutex_);
  members_ = *std::move(formed);
  ++view_;
  status_ = absl::OkStatus();
  return absl::OkStatus();
}

absl::StatusOr<std::vector<int64_t>> ReplicaGroup::GatherNumbers(
    absl::string_view what, int64_t own) {
  const Communicators communicators = this->communicators();
  const std::vector<int64_t> counts(size(), 1);
  std::vector<std::vector<int64_t>> gathered(
      communicators.size(), std::vector<int64_t>(counts.size()));
  std::vector<int64_t> inputs(communicators.size(), own);
  RETURN_IF_ERROR(Run([&](int replica) {
    return communicators[replica]->AllGather(
        {DType::kInt64, 1, &inputs[replica]}, counts,
        {DType::kInt64, static_cast<int64_t>(counts.size()),
         gathered[replica].data()},
        {.name = what, .timeout = options_.timeout});
  }));
  return std::move(gathered.front());
}

absl::StatusOr<std::optional<std::string>> ReplicaGroup::Equalize(
    bool ended_halfway) {
  ASSIGN_OR_RETURN(const std::vector<int64_t> counts,
                   GatherNumbers("completed operations", completed_count_));
  const auto newest = std::max_element(counts.begin(), counts.end());
  const auto oldest = std::min_element(counts.begin(), counts.end());
  if (*newest - *oldest > 1) {
    return absl::InternalError(
        absl::StrCat("after a loss, a worker has completed ", *oldest,
                     " operations and another one ", *newest,
                     "; expected at most one more"));
  }
  std::optional<std::string> missed;
  if (*newest != *oldest) {
    const int root = static_cast<int>(newest - counts.begin());
    std::string last;
    if (completed_count_ == *newest) {
      last = absl::StrCat(
          std::string(
              1, last_changed_variables_ ? kChangedVariables : kChangedNothing),
          last_result_);
    }
    ASSIGN_OR_RETURN(last,
                     BroadcastBytes(this,
                                    {.name = "result of the last operation",
                                     .timeout = options_.timeout},
                                    std::move(last), root));
    if (last.empty()) {
      return absl::InternalError("the result of the last operation is empty");
    }
    if (last[0] == kChangedVariables && state_ != nullptr) {
      RETURN_IF_ERROR(state_->CopyFrom(root));
    }
    if (completed_count_ < *newest) missed = last.substr(1);
  }
  RETURN_IF_ERROR(CheckStatesAreEqual(ended_halfway && !missed.has_value()));
  return missed;
}

absl::Status ReplicaGroup::CheckStatesAreEqual(bool ended_halfway) {
  if (state_ == nullptr) return absl::OkStatus();
  uint64_t own = 0;
  if (!ended_halfway) {
    ASSIGN_OR_RETURN(own, state_->Fingerprint());
  }
  ASSIGN_OR_RETURN(
      const std::vector<int64_t> fingerprints,
      GatherNumbers("fingerprints of variables", static_cast<int64_t>(own)));
  std::optional<size_t> known;  // A rank with a known fingerprint.
  for (size_t rank = 0; rank < fingerprints.size(); ++rank) {
    if (fingerprints[rank] == 0) continue;
    if (!known.has_value()) known = rank;
    if (fingerprints[rank] == fingerprints[*known]) continue;
    return absl::DataLossError(
        absl::StrCat("after a loss, the variables of rank ", rank,
                     " differ from those of rank ", *known,
                     "; training cannot continue from them"));
  }
  return absl::OkStatus();
}

}  // namespace muster
