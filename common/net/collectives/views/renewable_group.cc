#include "common/net/collectives/views/renewable_group.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/core/base/random.h"
#include "common/core/base/status_macros.h"
#include "common/core/system/log.h"
#include "common/net/collectives/peers/admission.h"
#include "common/net/collectives/peers/group_error.h"
#include "common/net/process/exit_code.h"
#include "common/net/rpc/identity.h"
#include "common/net/rpc/status_detail.h"
#include "proto/group_view.pb.h"
#include "proto/rpc.pb.h"

namespace muster {
namespace {

constexpr absl::Duration kPollInterval = absl::Milliseconds(20);

// How long tasks of a view may take to connect. A task that has not noticed the
// loss yet does so within this time.
absl::Duration FormTimeout(const PeerGroup::Options& options) {
  return options.heartbeat_timeout + absl::Seconds(1);
}

// Returns a number that processes of another group do not have.
uint64_t IdOf(const GroupPlan& plan) {
  uint64_t id = plan.generation;
  for (const GroupPlan::Member& member : plan.members) {
    id = FoldIn(id, member.identity.incarnation);
  }
  return id;
}

// Returns the tasks of the cluster, without their incarnations.
GroupView FirstView(const ClusterSpec& cluster) {
  GroupView view;
  for (const TaskId task : GroupTasks(cluster)) {
    view.members.push_back(
        {.task = task, .address = cluster.Address(task).value_or("")});
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

// How long a process that asks to join waits for an answer.
absl::Duration AnswerTimeout(const RenewableGroup::Options& options) {
  return absl::Seconds(5) + 5 * options.request_interval +
         options.group.heartbeat_timeout;
}

void Pause(Clock* clock, absl::Time deadline) {
  absl::Mutex mutex;
  absl::MutexLock lock(&mutex);
  const bool never = false;
  clock->AwaitWithDeadline(&mutex, absl::Condition(&never),
                           std::min(deadline, clock->Now() + kPollInterval));
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
  RETURN_IF_ERROR(renewable->Start());
  return renewable;
}

RenewableGroup::RenewableGroup(const Options& options, Network* network,
                               Clock* clock)
    : options_(options),
      network_(network),
      clock_(clock),
      first_view_(FirstView(options.group.config.cluster)),
      timeline_(clock) {}

RenewableGroup::~RenewableGroup() {
  watch_ = nullptr;
  if (is_joining()) requests_->Remove(self()).IgnoreError();
}

absl::Status RenewableGroup::Start() {
  PeerGroup::Options options = options_.group;
  options.ends_when_closed = is_renewable();
  const absl::Time deadline = clock_->Now() + options.startup_timeout;
  while (true) {
    options.startup_timeout = deadline - clock_->Now();
    absl::StatusOr<std::unique_ptr<PeerGroup>> group =
        PeerGroup::Join(options, network_, clock_);
    if (group.ok()) {
      if (is_renewable()) {
        UseFolder(JoinPath(JoinPath(options_.run_dir, "views"),
                           IncarnationString(IdOf((*group)->plan()))));
      }
      const bool is_first = (*group)->task_rank() == 0;
      GroupView view = first_view_;
      for (size_t i = 0; i < view.members.size(); ++i) {
        view.members[i].incarnation =
            (*group)->plan().members[i].identity.incarnation;
      }
      Adopt(std::move(view), *std::move(group));
      if (!is_renewable()) return absl::OkStatus();
      if (is_first) {
        RETURN_IF_ERROR(JoinRequests::SetCurrentFolder(
            options_.disk, options_.run_dir, claims_->folder()));
      }
      WatchJoiners();
      return absl::OkStatus();
    }
    const bool may_join = is_renewable() && GroupErrorKindOf(group.status()) ==
                                                GroupErrorKind::kLeftBehind;
    if (!may_join || clock_->Now() >= deadline) return group.status();
    ASSIGN_OR_RETURN(const bool joins, AskToJoin());
    if (joins) return absl::OkStatus();
  }
}

void RenewableGroup::UseFolder(std::string folder) {
  claims_ = std::make_unique<ViewClaims>(options_.disk, folder);
  requests_ = std::make_unique<JoinRequests>(options_.disk, std::move(folder));
}

GroupView::Member RenewableGroup::self() const {
  const ClusterConfig& config = options_.group.config;
  return {.task = config.task,
          .incarnation = options_.group.identity.incarnation,
          .address = config.cluster.Address(config.task).value_or("")};
}

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
  return FormNext(std::move(gone), is_certain, FormTimeout(options_.group),
                  start);
}

absl::Status RenewableGroup::Advance() {
  absl::MutexLock renew_lock(&renew_mutex_);
  const absl::Time start = clock_->Now();
  // After an error a task is lost, and FormNext() finds out which.
  Leave(absl::OkStatus(), options_.group.heartbeat_timeout).IgnoreError();
  absl::Status cause;
  std::set<TaskId> gone;
  for (const PeerGroup::Absence& absence : End(&cause)) {
    gone.insert(absence.task);
  }
  // All tasks have left together, and wait only for those that join.
  return FormNext(std::move(gone), /*is_certain=*/false,
                  options_.group.heartbeat_timeout, start);
}

absl::Status RenewableGroup::FormNext(std::set<TaskId> gone, bool is_certain,
                                      absl::Duration form_timeout,
                                      absl::Time start) {
  const absl::Time deadline = start + options_.renew_timeout;
  GroupView view = this->view();
  while (true) {
    ASSIGN_OR_RETURN(GroupView next,
                     NextView(view, gone, is_certain, deadline));
    std::vector<TaskId> missing;
    absl::StatusOr<std::unique_ptr<PeerGroup>> group =
        Form(next, std::min(form_timeout, deadline - clock_->Now()), &missing);
    if (group.ok()) {
      NoteChange(this->view(), next, clock_->Now() - start);
      Adopt(std::move(next), *std::move(group));
      return absl::OkStatus();
    }
    const std::optional<GroupErrorKind> kind = GroupErrorKindOf(group.status());
    if (kind == GroupErrorKind::kDisagreement ||
        kind == GroupErrorKind::kDuplicateTask) {
      return group.status();
    }
    if (clock_->Now() >= deadline) {
      return WithGroupErrorKind(group.status(), GroupErrorKind::kPeerLost);
    }
    LOG(WARNING) << "view " << next.number << " of the group was not formed: "
                 << group.status().message();
    Pause(clock_, deadline);
    gone.insert(missing.begin(), missing.end());
    form_timeout = FormTimeout(options_.group);
    is_certain = false;
    view = std::move(next);
  }
}

void RenewableGroup::NoteChange(const GroupView& before, const GroupView& view,
                                absl::Duration pause) {
  RunTimeline::Effect effect = {.pause = pause};
  for (const GroupView::Member& member : before.members) {
    if (!view.Has(member.task)) effect.lost.push_back(member.task.ToString());
  }
  for (const GroupView::Member& member : view.members) {
    effect.returned.push_back(member.task.ToString());
  }
  timeline_.Note(
      LogSeverity::kInfo,
      absl::StrCat(
          "training continues ", DescribeChange(before, view), ", after ",
          absl::FormatDuration(absl::Trunc(pause, absl::Milliseconds(1)))),
      effect);
}

void RenewableGroup::NoteEarlierChanges() {
  const absl::StatusOr<std::vector<GroupView>> views = claims_->All();
  if (!views.ok()) {
    LOG(WARNING) << "the earlier views of the group cannot be read: "
                 << views.status().message();
    return;
  }
  std::vector<RunEvent> events;
  GroupView before = first_view_;
  for (const GroupView& view : *views) {
    if (view.Has(self().task)) break;
    events.push_back({.time = view.claimed_at,
                      .text = absl::StrCat("training continues ",
                                           DescribeChange(before, view))});
    before = view;
  }
  timeline_.AddEarlier(std::move(events));
}

absl::StatusOr<bool> RenewableGroup::AskToJoin() {
  absl::StatusOr<std::string> folder =
      JoinRequests::CurrentFolder(options_.disk, options_.run_dir);
  if (absl::IsNotFound(folder.status())) return false;
  RETURN_IF_ERROR(folder.status());
  UseFolder(*std::move(folder));
  ASSIGN_OR_RETURN(const uint64_t pulse, requests_->ReadPulse());
  RETURN_IF_ERROR(requests_->RemoveOthers(self()));
  RETURN_IF_ERROR(requests_->Write({.member = self()}));
  const absl::Time deadline = clock_->Now() + AnswerTimeout(options_);
  while (clock_->Now() < deadline) {
    ASSIGN_OR_RETURN(const uint64_t answer, requests_->ReadPulse());
    if (answer != pulse) {
      LOG(INFO) << "the group trains without this task, which will join it";
      absl::MutexLock lock(&mutex_);
      is_joining_ = true;
      return true;
    }
    Pause(clock_, deadline);
  }
  RETURN_IF_ERROR(requests_->Remove(self()));
  return false;
}

absl::Status RenewableGroup::AwaitWhileGroupRuns(
    absl::string_view what, absl::FunctionRef<absl::StatusOr<bool>()> is_done) {
  const absl::Time start = clock_->Now();
  const absl::Time deadline = start + options_.group.startup_timeout;
  uint64_t pulse = 0;
  absl::Time last_pulse = start;
  absl::Time next_report = start + options_.group.report_interval;
  while (true) {
    ASSIGN_OR_RETURN(const bool done, is_done());
    if (done) return absl::OkStatus();
    ASSIGN_OR_RETURN(const uint64_t answer, requests_->ReadPulse());
    const absl::Time now = clock_->Now();
    if (answer != pulse) last_pulse = now;
    pulse = answer;
    if (now - last_pulse > AnswerTimeout(options_)) {
      return WithGroupErrorKind(
          absl::UnavailableError(absl::StrCat(
              "the group that this task has asked to join has not answered "
              "for ",
              absl::FormatDuration(AnswerTimeout(options_)))),
          GroupErrorKind::kLeftBehind);
    }
    if (now >= deadline) {
      return WithGroupErrorKind(
          absl::DeadlineExceededError(absl::StrCat(
              "gave up waiting for the group ", what, " after ",
              absl::FormatDuration(options_.group.startup_timeout))),
          GroupErrorKind::kLeftBehind);
    }
    if (now >= next_report) {
      next_report = now + options_.group.report_interval;
      LOG(INFO) << "waiting for the group " << what << ", "
                << absl::ToInt64Seconds(now - start) << " s";
    }
    Pause(clock_, deadline);
  }
}

absl::StatusOr<proto::GroupStart> RenewableGroup::AwaitStart() {
  proto::GroupStart start;
  RETURN_IF_ERROR(
      AwaitWhileGroupRuns("to begin training", [&]() -> absl::StatusOr<bool> {
        absl::StatusOr<proto::GroupStart> read = requests_->ReadStart();
        if (absl::IsNotFound(read.status())) return false;
        RETURN_IF_ERROR(read.status());
        start = *std::move(read);
        return true;
      }));
  if (start.obstacle().empty()) return start;
  return WithGroupErrorKind(
      absl::FailedPreconditionError(absl::StrCat(
          "this task cannot join the group, which trains without it: ",
          start.obstacle())),
      GroupErrorKind::kLeftBehind);
}

absl::Status RenewableGroup::WriteStart(const proto::GroupStart& start) {
  return requests_->WriteStart(start);
}

absl::Status RenewableGroup::AwaitAdmission() {
  absl::MutexLock renew_lock(&renew_mutex_);
  JoinRequests::Request request = {.member = self(), .is_ready = true};
  absl::Time next_beat = clock_->Now();
  GroupView before;
  RETURN_IF_ERROR(AwaitWhileGroupRuns(
      "to take this task in", [&]() -> absl::StatusOr<bool> {
        if (clock_->Now() >= next_beat) {
          ++request.beat;
          RETURN_IF_ERROR(requests_->Write(request));
          next_beat = clock_->Now() + options_.request_interval / 2;
        }
        ASSIGN_OR_RETURN(const std::optional<GroupView> newest,
                         claims_->NewestAfter(before.number));
        if (newest.has_value()) before = *newest;
        const GroupView::Member own = self();
        return std::find(before.members.begin(), before.members.end(), own) !=
               before.members.end();
      }));
  requests_->Remove(self()).IgnoreError();
  NoteEarlierChanges();
  // FormNext() begins with the view after this one.
  --before.number;
  {
    absl::MutexLock lock(&mutex_);
    view_ = std::move(before);
  }
  RETURN_IF_ERROR(FormNext({}, /*is_certain=*/false,
                           FormTimeout(options_.group), clock_->Now()));
  WatchJoiners();
  absl::MutexLock lock(&mutex_);
  is_joining_ = false;
  return absl::OkStatus();
}

bool RenewableGroup::is_joining() const {
  absl::MutexLock lock(&mutex_);
  return is_joining_;
}

absl::Status RenewableGroup::ClaimWithJoiners() {
  GroupView next = view();
  ++next.number;
  next.claimed_by = options_.group.config.task;
  next.claimed_at = absl::Now();
  for (const GroupView::Member& member : watch_->TakeReady()) {
    if (!next.Has(member.task)) next.members.push_back(member);
  }
  std::sort(next.members.begin(), next.members.end(),
            [](const GroupView::Member& a, const GroupView::Member& b) {
              return a.task < b.task;
            });
  return claims_->Claim(next).status();
}

void RenewableGroup::WatchJoiners() {
  watch_ = std::make_unique<JoinerWatch>(
      JoinerWatch::Options{.interval = options_.request_interval,
                           .preparation_max = options_.group.startup_timeout,
                           .answers =
                               [this] {
                                 absl::MutexLock lock(&mutex_);
                                 return view_.members.front().task ==
                                        options_.group.config.task;
                               },
                           .may_join =
                               [this](const GroupView::Member& member) {
                                 return !view().Has(member.task);
                               }},
      requests_.get(), clock_);
}

absl::StatusOr<GroupView> RenewableGroup::NextView(const GroupView& before,
                                                   const std::set<TaskId>& gone,
                                                   bool is_certain,
                                                   absl::Time deadline) {
  GroupView next{.number = before.number + 1,
                 .claimed_by = options_.group.config.task,
                 .claimed_at = absl::Now()};
  for (const GroupView::Member& member : before.members) {
    if (gone.count(member.task) == 0) next.members.push_back(member);
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
    if (clock_->Now() >= deadline) return false;
    Pause(clock_, deadline);
  }
}

absl::StatusOr<std::unique_ptr<PeerGroup>> RenewableGroup::Form(
    const GroupView& view, absl::Duration timeout,
    std::vector<TaskId>* missing) {
  PeerGroup::Options options = options_.group;
  ASSIGN_OR_RETURN(options.config.cluster, view.Cluster());
  options.view = view.number;
  options.last_generation = generation_;
  options.startup_timeout = timeout;
  return PeerGroup::Join(options, network_, clock_, missing);
}

void RenewableGroup::Adopt(GroupView view, std::shared_ptr<PeerGroup> group) {
  timeline_.Begin(static_cast<int>(view.members.size()));
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
  if (group == nullptr) return status;
  const absl::Status end = group->Leave(status, timeout);
  // The first task writes the results of all, and has written them.
  const bool is_done =
      status.ok() && is_renewable() && group->task_rank() == 0 && IsLoss(end);
  if (!is_done) return end;
  LOG(WARNING) << "the work was done when a task was lost: " << end.message();
  return absl::OkStatus();
}

void RenewableGroup::NoteActivity(const char* activity, uint64_t step) {
  absl::MutexLock lock(&mutex_);
  if (current_ != nullptr) current_->NoteActivity(activity, step);
}

}  // namespace muster
