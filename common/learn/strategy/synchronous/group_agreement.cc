#include "common/learn/strategy/synchronous/group_agreement.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/core/base/status_macros.h"
#include "common/core/tensor/dtype.h"
#include "common/learn/strategy/synchronous/broadcast_bytes.h"
#include "common/net/collectives/communicator.h"
#include "common/net/collectives/reduce_op.h"
#include "common/net/process/exit_code.h"

namespace muster {

namespace {

// Sends the bytes of one replica. If its worker is lost, nobody else knows what
// it would have sent.
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

// Finds out whether a worker wants to stop.
class StopOperation final : public GroupOperation {
 public:
  StopOperation(ReplicaGroup* group, absl::Duration timeout, bool wants_stop)
      : group_(*group), timeout_(timeout), wants_stop_(wants_stop) {}

  bool stops() const { return stops_; }

  absl::Status Run() override {
    const ReplicaGroup::Communicators communicators = group_.communicators();
    std::vector<int32_t> flags(communicators.size(), wants_stop_ ? 1 : 0);
    if (group_.worker_count() > 1) {
      RETURN_IF_ERROR(group_.Run([&](int replica) {
        return communicators[replica]->AllReduce(
            ReduceOp::kMax, {DType::kInt32, 1, &flags[replica]},
            {.name = "whether training stops", .timeout = timeout_});
      }));
    }
    stops_ = flags[0] != 0;
    return absl::OkStatus();
  }
  std::string Result() const override { return stops_ ? "1" : "0"; }
  absl::Status Adopt(absl::string_view result) override {
    stops_ = result == "1";
    return absl::OkStatus();
  }

 private:
  ReplicaGroup& group_;
  const absl::Duration timeout_;
  const bool wants_stop_;
  bool stops_ = false;
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
  StopOperation operation(group_, timeout_, wants_stop);
  RETURN_IF_ERROR(group_->Complete(operation));
  return operation.stops();
}

}  // namespace muster
