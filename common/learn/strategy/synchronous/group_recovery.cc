// How a group of replicas completes an operation after the loss of workers.

#include <algorithm>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
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
#include "common/net/process/exit_code.h"

namespace muster {
namespace {

constexpr char kChangedVariables = 'v';
constexpr char kChangedNothing = 'n';
// A program that never trains by Fit() makes any number of operations.
constexpr int64_t kRecordBytesMax = int64_t{64} << 20;
// In place of the number of completed operations.
constexpr int64_t kJoins = -1;

}  // namespace

absl::Status ReplicaGroup::Complete(GroupOperation& operation) {
  if (!survives_losses()) return operation.Run();
  if (is_joining_) {
    if (completed_count_ == static_cast<int64_t>(record_->size())) {
      return absl::FailedPreconditionError(
          "this worker joins others that already train: before training it has "
          "done something that they had not");
    }
    return operation.Adopt((*record_)[completed_count_++]);
  }
  absl::Status status = operation.Run();
  while (!status.ok()) {
    ASSIGN_OR_RETURN(const std::optional<std::string> missed,
                     Recover(operation, status));
    if (missed.has_value()) {
      RETURN_IF_ERROR(operation.Adopt(*missed));
      NoteCompleted(operation, *missed);
      return absl::OkStatus();
    }
    status = operation.Run();
  }
  NoteCompleted(operation, operation.Result());
  return absl::OkStatus();
}

void ReplicaGroup::NoteCompleted(const GroupOperation& operation,
                                 std::string result) {
  record_bytes_ += static_cast<int64_t>(sizeof(result) + result.size());
  if (!operation.can_be_repeated() || record_bytes_ > kRecordBytesMax) {
    record_.reset();
  }
  if (record_.has_value()) record_->push_back(result);
  last_result_ = std::move(result);
  last_changed_variables_ = operation.changes_variables();
  ++completed_count_;
}

std::optional<std::vector<std::string>> ReplicaGroup::TakeRecord() {
  return std::exchange(record_, std::nullopt);
}

absl::StatusOr<std::optional<std::string>> ReplicaGroup::Recover(
    const GroupOperation& operation, const absl::Status& failure) {
  absl::Status status = failure;
  while (true) {
    {
      absl::MutexLock lock(&mutex_);
      // The operation failed for a reason of its own.
      if (status_.ok()) return status;
    }
    RETURN_IF_ERROR(Reform(options_.reform));
    absl::StatusOr<std::optional<std::string>> missed =
        Equalize(/*is_change=*/false, operation.may_end_halfway());
    if (missed.ok()) return missed;
    // Another worker may have been lost meanwhile.
    status = missed.status();
  }
}

absl::Status ReplicaGroup::Change(
    absl::FunctionRef<absl::StatusOr<Membership>()> form) {
  RETURN_IF_ERROR(Reform(form));
  absl::Status status =
      Equalize(/*is_change=*/true, /*ended_halfway=*/false).status();
  while (!status.ok()) {
    {
      absl::MutexLock lock(&mutex_);
      if (status_.ok()) return status;
    }
    RETURN_IF_ERROR(Reform(options_.reform));
    status = Equalize(/*is_change=*/true, /*ended_halfway=*/false).status();
  }
  if (is_joining_) record_.reset();
  is_joining_ = false;
  return absl::OkStatus();
}

absl::Status ReplicaGroup::Reform(
    absl::FunctionRef<absl::StatusOr<Membership>()> form) {
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
  absl::StatusOr<Membership> formed = form();
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
    bool is_change, bool ended_halfway) {
  const int64_t own =
      is_joining_ ? kJoins : 2 * completed_count_ + (is_change ? 1 : 0);
  ASSIGN_OR_RETURN(const std::vector<int64_t> reports,
                   GatherNumbers("completed operations", own));
  int64_t newest = 0;
  int64_t oldest = std::numeric_limits<int64_t>::max();
  bool has_joiners = false;
  bool all_change = true;
  for (const int64_t report : reports) {
    has_joiners |= report == kJoins;
    if (report == kJoins) continue;
    newest = std::max(newest, report / 2);
    oldest = std::min(oldest, report / 2);
    all_change &= report % 2 == 1;
  }
  if (newest - oldest > 1) {
    return absl::InternalError(absl::StrCat(
        "after a loss, a worker has completed ", oldest,
        " operations and another one ", newest, "; expected at most one more"));
  }
  // The workers that are left complete an operation first, and do not know the
  // one that joins.
  if (is_joining_ && !all_change) {
    return WithExitCode(
        absl::AbortedError(
            "the group has lost a worker while this one was joining"),
        ExitCode::kRestartMe);
  }
  const auto root =
      std::find_if(reports.begin(), reports.end(), [newest](int64_t report) {
        return report != kJoins && report / 2 == newest;
      });
  newest_rank_ = static_cast<int>(root - reports.begin());
  std::optional<std::string> missed;
  if (newest != oldest || has_joiners) {
    ASSIGN_OR_RETURN(std::string result, CopyFrom(newest_rank_, has_joiners));
    const bool has_missed = !is_joining_ && completed_count_ < newest;
    if (is_joining_) completed_count_ = newest;
    last_result_ = result;
    if (has_missed) missed = std::move(result);
  }
  RETURN_IF_ERROR(CheckStatesAreEqual(ended_halfway && !missed.has_value()));
  return missed;
}

absl::StatusOr<std::string> ReplicaGroup::CopyFrom(int root,
                                                   bool copies_variables) {
  std::string last =
      absl::StrCat(std::string(1, last_changed_variables_ ? kChangedVariables
                                                          : kChangedNothing),
                   last_result_);
  ASSIGN_OR_RETURN(last, BroadcastBytes(this,
                                        {.name = "result of the last operation",
                                         .timeout = options_.timeout},
                                        std::move(last), root));
  if (last.empty()) {
    return absl::InternalError("the result of the last operation is empty");
  }
  last_changed_variables_ = last[0] == kChangedVariables;
  const bool has_changed = copies_variables || last_changed_variables_;
  if (has_changed && state_ != nullptr) {
    RETURN_IF_ERROR(state_->CopyFrom(root));
  }
  return last.substr(1);
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
