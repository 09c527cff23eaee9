#include "common/net/collectives/views/renewable_group.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "common/core/base/random.h"
#include "common/core/base/status_macros.h"
#include "common/core/system/log.h"
#include "common/net/collectives/peers/admission.h"
#include "common/net/collectives/peers/group_error.h"
#include "common/net/process/exit_code.h"
#include "common/net/rpc/identity.h"
#include "common/net/rpc/status_detail.h"
#include "proto/rpc.pb.h"

namespace muster {
namespace {

// Derives the name of the folder of views from the group's token, which is
// secret.
constexpr uint64_t kFolderTag = 0x7669657773;
constexpr absl::Duration kPollInterval = absl::Milliseconds(20);

// How long tasks of a view may take to connect. A task that has not noticed the
// loss yet does so within this time.
absl::Duration FormTimeout(const PeerGroup::Options& options) {
  return 2 * options.heartbeat_timeout + absl::Seconds(2);
}

GroupView FirstView(const PeerGroup& group) {
  GroupView view;
  for (const GroupPlan::Member& member : group.plan().members) {
    const absl::StatusOr<TaskType> type =
        ParseTaskType(member.identity.task_type);
    if (!type.ok()) continue;
    view.members.push_back({.task = {*type, member.identity.task_index},
                            .incarnation = member.identity.incarnation,
                            .address = member.address});
  }
  return view;
}

// Returns the task that `cause` names.
std::optional<TaskId> NamedTask(const absl::Status& cause) {
  const std::optional<proto::TaskFailure> failure = GetTaskFailure(cause);
  if (!failure.has_value()) return std::nullopt;
  const absl::StatusOr<TaskType> type = ParseTaskType(failure->task_type());
  if (!type.ok()) return std::nullopt;
  return TaskId{*type, failure->task_index()};
}

absl::Status LeftBehind(const GroupView& view) {
  return WithGroupErrorKind(absl::AbortedError(absl::StrCat(
                                "the other tasks continue without this one: ",
                                view.claimed_by.ToString(), " has formed view ",
                                view.number, " of the group without it")),
                            GroupErrorKind::kLeftBehind);
}

absl::Status TooFew(const GroupView& view, const std::set<TaskId>& gone,
                    size_t left, int least) {
  return WithGroupErrorKind(
      absl::UnavailableError(
          absl::StrCat(TaskNames({gone.begin(), gone.end()}), " of view ",
                       view.number, " of the group cannot be reached, ", left,
                       " tasks are left, and the group needs ", least)),
      GroupErrorKind::kPeerLost);
}

}  // namespace

absl::StatusOr<std::unique_ptr<RenewableGroup>> RenewableGroup::Join(
    const Options& options, Network* network, Clock* clock) {
  if (options.task_count_min > 0 && options.run_dir.empty()) {
    return absl::InvalidArgumentError(
        "a group that continues after a loss needs a folder that all its tasks "
        "share: start every task with the same --run_dir");
  }
  const size_t task_count = GroupTasks(options.group.config.cluster).size();
  if (options.task_count_min > static_cast<int>(task_count)) {
    return absl::InvalidArgumentError(
        absl::StrCat("a group of ", task_count, " tasks cannot keep ",
                     options.task_count_min, " of them"));
  }
  auto renewable =
      absl::WrapUnique(new RenewableGroup(options, network, clock));
  ASSIGN_OR_RETURN(std::unique_ptr<PeerGroup> group,
                   PeerGroup::Join(options.group, network, clock));
  if (options.task_count_min > 0) {
    renewable->claims_ = std::make_unique<ViewClaims>(
        options.disk,
        JoinPath(JoinPath(options.run_dir, "views"),
                 IncarnationString(FoldIn(group->plan().token, kFolderTag))));
  }
  GroupView view = FirstView(*group);
  renewable->Adopt(std::move(view), std::move(group));
  return renewable;
}

RenewableGroup::RenewableGroup(const Options& options, Network* network,
                               Clock* clock)
    : options_(options), network_(network), clock_(clock) {}

std::shared_ptr<PeerGroup> RenewableGroup::current() const {
  absl::MutexLock lock(&mutex_);
  return current_;
}

GroupView RenewableGroup::view() const {
  absl::MutexLock lock(&mutex_);
  return view_;
}

bool RenewableGroup::IsLoss(const absl::Status& cause) {
  const std::optional<GroupErrorKind> kind = GroupErrorKindOf(cause);
  if (kind == GroupErrorKind::kPeerLost) return true;
  if (kind != GroupErrorKind::kPeerFailed) return false;
  const ExitCode code = ExitCodeOf(cause);
  return code == ExitCode::kRestartMe || code == ExitCode::kInterrupted ||
         code == ExitCode::kTerminated;
}

std::vector<PeerGroup::Absence> RenewableGroup::End(absl::Status* cause) {
  std::shared_ptr<PeerGroup> ended;
  {
    absl::MutexLock lock(&mutex_);
    ended = std::move(current_);
    current_ = nullptr;
  }
  *cause = ended->cause();
  std::vector<PeerGroup::Absence> absences = ended->Absences();
  generation_ = std::max(generation_, ended->generation());
  // Destroying the group is faster than closing it.
  if (ended.use_count() > 1) ended->Close();
  return absences;
}

absl::Status RenewableGroup::Renew() {
  absl::MutexLock renew_lock(&renew_mutex_);
  const absl::Time start = clock_->Now();
  const absl::Time deadline = start + options_.renew_timeout;
  {
    const std::shared_ptr<PeerGroup> ended = current();
    if (ended == nullptr) {
      return absl::FailedPreconditionError("the group has ended");
    }
    if (!is_renewable() || !IsLoss(ended->cause())) return ended->cause();
  }
  absl::Status cause;
  std::set<TaskId> gone;
  bool is_certain = true;
  for (const PeerGroup::Absence& absence : End(&cause)) {
    gone.insert(absence.task);
    is_certain &= !absence.is_silent;
  }
  if (const std::optional<TaskId> named = NamedTask(cause)) {
    gone.insert(*named);
  }
  GroupView view = this->view();
  while (true) {
    ASSIGN_OR_RETURN(GroupView next,
                     NextView(view, gone, is_certain, deadline));
    std::vector<TaskId> missing;
    absl::StatusOr<std::unique_ptr<PeerGroup>> group =
        Form(next, deadline, &missing);
    if (group.ok()) {
      LOG(INFO) << "training continues without " << TaskNames(next.lost)
                << ": view " << next.number << " of the group has "
                << next.members.size() << " tasks and was formed after "
                << absl::FormatDuration(absl::Trunc(clock_->Now() - start,
                                                    absl::Milliseconds(1)));
      Adopt(std::move(next), *std::move(group));
      return absl::OkStatus();
    }
    const std::optional<GroupErrorKind> kind = GroupErrorKindOf(group.status());
    if (clock_->Now() >= deadline || !kind.has_value() ||
        kind == GroupErrorKind::kDisagreement ||
        kind == GroupErrorKind::kDuplicateTask) {
      return group.status();
    }
    LOG(WARNING) << "view " << next.number << " of the group was not formed: "
                 << group.status().message();
    gone.insert(missing.begin(), missing.end());
    is_certain = false;
    view = std::move(next);
  }
}

absl::StatusOr<GroupView> RenewableGroup::NextView(const GroupView& before,
                                                   const std::set<TaskId>& gone,
                                                   bool is_certain,
                                                   absl::Time deadline) {
  GroupView next{.number = before.number + 1,
                 .claimed_by = options_.group.config.task};
  for (const GroupView::Member& member : before.members) {
    if (gone.count(member.task) == 0) {
      next.members.push_back(member);
    } else {
      next.lost.push_back(member.task);
    }
  }
  const bool is_majority = 2 * next.members.size() > before.members.size();
  const absl::Duration patience =
      is_majority || is_certain ? absl::ZeroDuration()
                                : options_.group.heartbeat_timeout +
                                      2 * options_.group.heartbeat_interval;
  ASSIGN_OR_RETURN(
      const bool exists,
      AwaitView(before.number, std::min(deadline, clock_->Now() + patience)));
  if (exists) {
    ASSIGN_OR_RETURN(const std::optional<GroupView> newest,
                     claims_->NewestAfter(before.number));
    next = *newest;
  } else {
    if (static_cast<int>(next.members.size()) < options_.task_count_min) {
      return TooFew(before, gone, next.members.size(), options_.task_count_min);
    }
    ASSIGN_OR_RETURN(next, claims_->Claim(next));
  }
  const bool has_self = std::any_of(
      next.members.begin(), next.members.end(),
      [this](const GroupView::Member& member) {
        return member.task == options_.group.config.task &&
               member.incarnation == options_.group.identity.incarnation;
      });
  if (!has_self) return LeftBehind(next);
  return next;
}

absl::StatusOr<bool> RenewableGroup::AwaitView(uint64_t number,
                                               absl::Time deadline) {
  while (true) {
    ASSIGN_OR_RETURN(const std::optional<GroupView> newest,
                     claims_->NewestAfter(number));
    if (newest.has_value()) return true;
    const absl::Time now = clock_->Now();
    if (now >= deadline) return false;
    absl::Mutex mutex;
    absl::MutexLock lock(&mutex);
    const bool never = false;
    clock_->AwaitWithDeadline(&mutex, absl::Condition(&never),
                              std::min(deadline, now + kPollInterval));
  }
}

absl::StatusOr<std::unique_ptr<PeerGroup>> RenewableGroup::Form(
    const GroupView& view, absl::Time deadline, std::vector<TaskId>* missing) {
  PeerGroup::Options options = options_.group;
  ASSIGN_OR_RETURN(options.config.cluster, view.Cluster());
  options.view = view.number;
  options.last_generation = generation_;
  options.startup_timeout =
      std::min(FormTimeout(options_.group), deadline - clock_->Now());
  return PeerGroup::Join(options, network_, clock_, missing);
}

void RenewableGroup::Adopt(GroupView view, std::shared_ptr<PeerGroup> group) {
  absl::MutexLock lock(&mutex_);
  view_ = std::move(view);
  current_ = std::move(group);
  if (!failure_.ok()) current_->Fail(failure_);
}

void RenewableGroup::Fail(const absl::Status& status) {
  std::shared_ptr<PeerGroup> group;
  {
    absl::MutexLock lock(&mutex_);
    group = current_;
    if (group == nullptr) failure_.Update(status);
  }
  if (group != nullptr) group->Fail(status);
}

absl::Status RenewableGroup::Leave(const absl::Status& status,
                                   absl::Duration timeout) {
  const std::shared_ptr<PeerGroup> group = current();
  return group == nullptr ? status : group->Leave(status, timeout);
}

void RenewableGroup::NoteActivity(const char* activity, uint64_t step) {
  absl::MutexLock lock(&mutex_);
  if (current_ != nullptr) current_->NoteActivity(activity, step);
}

}  // namespace muster
