#include "common/learn/strategy/synchronous/group_agreement.h"

#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/core/base/status_macros.h"
#include "common/core/tensor/dtype.h"
#include "common/learn/strategy/synchronous/broadcast_bytes.h"
#include "common/net/collectives/communicator.h"
#include "common/net/collectives/reduce_op.h"
#include "common/net/process/exit_code.h"

namespace muster {

namespace {

// Sends the bytes of one replica. If its worker is lost, no other worker knows
// what it would have sent.
class FromRankOperation final : public GroupOperation {
 public:
  FromRankOperation(ReplicaGroup* group, int root, const CollectiveCall& call,
                    std::string bytes)
      : group_(*group),
        root_(root),
        call_(call),
        view_(group->view()),
        was_root_(IsRoot()),
        bytes_(std::move(bytes)) {}

  std::string TakeBytes() { return std::move(bytes_); }

  absl::Status Run() override {
    if (IsRoot() != was_root_ || (root_ != 0 && group_.view() != view_)) {
      return WithExitCode(absl::UnavailableError(absl::StrCat(
                              "the worker that was to tell the others \"",
                              call_.name, "\" is lost, or does so no more")),
                          ExitCode::kRestartMe);
    }
    ASSIGN_OR_RETURN(bytes_, BroadcastBytes(&group_, call_, bytes_, root_));
    return absl::OkStatus();
  }
  std::string Result() const override { return bytes_; }
  absl::Status Adopt(absl::string_view result) override {
    bytes_ = std::string(result);
    return absl::OkStatus();
  }

 private:
  bool IsRoot() const {
    return group_.worker_index() == root_ / group_.local_count();
  }

  ReplicaGroup& group_;
  const int root_;
  const CollectiveCall call_;
  const int64_t view_;
  const bool was_root_;
  std::string bytes_;
};

// Counts the workers with a flag.
class CountOperation final : public GroupOperation {
 public:
  CountOperation(ReplicaGroup* group, const CollectiveCall& call, bool flag)
      : group_(*group), call_(call), flag_(flag) {}

  int count() const { return count_; }

  absl::Status Run() override {
    const ReplicaGroup::Communicators communicators = group_.communicators();
    std::vector<int32_t> counts(communicators.size());
    // The first replica of a worker counts it.
    counts[0] = flag_ ? 1 : 0;
    if (group_.worker_count() > 1) {
      RETURN_IF_ERROR(group_.Run([&](int replica) {
        return communicators[replica]->AllReduce(
            ReduceOp::kSum, {DType::kInt32, 1, &counts[replica]}, call_);
      }));
    }
    count_ = counts[0];
    return absl::OkStatus();
  }
  std::string Result() const override { return absl::StrCat(count_); }
  absl::Status Adopt(absl::string_view result) override {
    return absl::SimpleAtoi(result, &count_)
               ? absl::OkStatus()
               : absl::InternalError(absl::StrCat(call_.name, ": the result \"",
                                                  result, "\" is no number"));
  }

 private:
  ReplicaGroup& group_;
  const CollectiveCall call_;
  const bool flag_;
  int count_ = 0;
};

}  // namespace

absl::StatusOr<std::string> GroupAgreement::FromChief(absl::string_view what,
                                                      std::string bytes) const {
  return FromRank(/*root=*/0, what, std::move(bytes));
}

absl::StatusOr<std::string> GroupAgreement::FromRank(int root,
                                                     absl::string_view what,
                                                     std::string bytes) const {
  FromRankOperation operation(group_, root, {.name = what, .timeout = timeout_},
                              std::move(bytes));
  RETURN_IF_ERROR(group_->Complete(operation));
  return operation.TakeBytes();
}

absl::StatusOr<bool> GroupAgreement::AgreeToStop(bool wants_stop) const {
  ASSIGN_OR_RETURN(const int count,
                   Count("whether training stops", wants_stop));
  return count > 0;
}

absl::StatusOr<int> GroupAgreement::Count(absl::string_view what,
                                          bool flag) const {
  CountOperation operation(group_, {.name = what, .timeout = timeout_}, flag);
  RETURN_IF_ERROR(group_->Complete(operation));
  return operation.count();
}

}  // namespace muster
