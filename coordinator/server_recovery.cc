#include "coordinator/server_recovery.h"

#include <algorithm>
#include <any>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/core/base/random.h"
#include "common/core/base/status_macros.h"
#include "common/core/base/status_message.h"
#include "common/core/system/log.h"
#include "common/core/tensor/tensor.h"
#include "common/io/checkpoint/tensor_bundle_reader.h"
#include "common/io/storage/disk.h"
#include "common/learn/train/checkpoints/training_state.h"
#include "common/net/process/exit_code.h"
#include "common/net/rpc/channel.h"
#include "common/net/rpc/fault_point.h"
#include "common/net/rpc/identity.h"
#include "common/net/rpc/status_detail.h"
#include "coordinator/closure_dispatcher.h"
#include "proto/rpc.pb.h"
#include "ps/client/frozen_snapshot.h"
#include "ps/client/snapshot_id_name.h"

namespace muster {
namespace {

constexpr size_t kNamedClosuresMax = 8;
// Pause after an attempt that failed before the watch has detected the reason.
constexpr absl::Duration kPauseBetweenTries = absl::Milliseconds(200);
// Time within which the watch detects the loss of a server that another task
// could not reach.
constexpr absl::Duration kNoticeTime = absl::Seconds(10);
constexpr absl::Duration kSettleTimeout = absl::Minutes(30);
// Attempts at a call during which servers come back with their state.
constexpr int kAttemptsMax = 100;

// Returns 0 if the checkpoint contains no id.
absl::StatusOr<uint64_t> ReadSnapshotId(absl::string_view prefix) {
  ASSIGN_OR_RETURN(const std::unique_ptr<TensorBundleReader> reader,
                   TensorBundleReader::Open(Disk::Real(), prefix));
  if (reader->Find(kSnapshotIdName) == nullptr) return 0;
  ASSIGN_OR_RETURN(const Tensor id, reader->Read(kSnapshotIdName));
  if (id.dtype() != DType::kInt64 || id.element_count() != 1) return 0;
  return static_cast<uint64_t>(id.scalar<int64_t>());
}

std::string DescribePoint(const RollbackPoint& point) {
  return point.prefix.empty() ? "the initial values of all variables"
                              : absl::StrCat("checkpoint ", point.prefix);
}

// True if the error concerns only this checkpoint, so that another one may
// work.
bool IsCheckpointError(const absl::Status& status) {
  return absl::IsDataLoss(status) || absl::IsNotFound(status) ||
         absl::IsInvalidArgument(status) || absl::IsPermissionDenied(status) ||
         absl::IsUnimplemented(status);
}

// True if the error may be due to the loss of a server that the watch has not
// detected yet.
bool MayBeServerLoss(const absl::Status& status) {
  const auto failure = GetTaskFailure(status);
  if (!failure.has_value() || failure->task_type() != "ps") return false;
  return absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status) ||
         absl::IsAborted(status) || absl::IsCancelled(status) ||
         absl::IsFailedPrecondition(status);
}

// Names the first closures of those that are undone.
std::string DescribeUndone(const ClosureIds& undone,
                           const RollbackReport& report) {
  if (undone.empty()) return "";
  const bool names_all =
      undone.size() <= static_cast<int64_t>(kNamedClosuresMax);
  return absl::StrCat(", closures ", absl::StrJoin(report.undone_ids, ", "),
                      names_all ? "" : ", ...");
}

}  // namespace

// A snapshot that the servers hold. It becomes a rollback point when it is
// written.
class ServerRecovery::UnsavedSnapshot final : public VariableSnapshot {
 public:
  // Training can be rolled back to it only if it `is_exact`, which means that
  // it is one between two steps.
  UnsavedSnapshot(ServerRecovery* recovery, RollbackPoint point,
                  uint64_t generation, bool is_exact, FrozenSnapshot frozen)
      : recovery_(recovery),
        point_(std::move(point)),
        generation_(generation),
        is_exact_(is_exact),
        frozen_(std::move(frozen)) {}

  const RollbackPoint& point() const { return point_; }
  uint64_t generation() const { return generation_; }
  bool is_exact() const { return is_exact_; }
  const std::vector<Entry>& entries() const override {
    return frozen_.entries();
  }
  // The scalar slots are on the servers.
  std::optional<double> ScalarSlot(absl::string_view,
                                   absl::string_view) const override {
    return std::nullopt;
  }
  absl::Status WriteShards(Disk*, absl::string_view prefix,
                           int shard_count) override {
    RETURN_IF_ERROR(
        recovery_->parts_.variables->SaveFrozen(prefix, shard_count, frozen_));
    RETURN_IF_ERROR(FaultPoint("coordinator.after_save"));
    return recovery_->Written(*this, prefix);
  }

 private:
  ServerRecovery* const recovery_;
  const RollbackPoint point_;
  const uint64_t generation_;
  const bool is_exact_;
  const FrozenSnapshot frozen_;
};

ServerRecovery::ServerRecovery(const Options& options, Parts parts)
    : options_(options),
      parts_(std::move(parts)),
      saver_(
          {.checkpoint_dir = options.checkpoint_dir,
           .checkpoint_interval = options.checkpoint_interval},
          {.servers = parts_.servers,
           .clock = parts_.clock,
           .take_snapshot = [this] { return TakeSnapshot(); },
           .has_progressed =
               [this] {
                 return !rollback_points_.IncludesExactly(
                     parts_.dispatcher->succeeded());
               },
           .shard_count =
               [this] { return parts_.variables->checkpoint_shard_count(); }}) {
  for (const ServerWatch::State& state : parts_.servers->states()) {
    holders_.push_back(state.incarnation);
    serving_tasks_.push_back(state.task);
    state_ids_.push_back(state.state_id);
  }
  generation_ = options.generation;
  announced_generation_ = options.generation;
  if (parts_.journal->is_continuing()) rollback_points_.DropFirstValues();
  thread_ = std::thread([this] { RunLoop(); });
}

ServerRecovery::~ServerRecovery() {
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
  }
  thread_.join();
}

void ServerRecovery::OnServerChange() {
  absl::MutexLock lock(&mutex_);
  has_changed_ = true;
}

int64_t ServerRecovery::recovery_count() const {
  absl::MutexLock lock(&mutex_);
  return recovery_count_;
}

int64_t ServerRecovery::restored_count() const {
  absl::MutexLock lock(&mutex_);
  return restored_count_;
}

bool ServerRecovery::IsHolder(int server, uint64_t incarnation) const {
  absl::MutexLock lock(&mutex_);
  return server >= 0 && server < static_cast<int>(holders_.size()) &&
         holders_[server] == incarnation;
}

// ---- Snapshots.

void ServerRecovery::SaveIfDue(bool at_once) {
  has_postponed_save_ = has_postponed_save_ || at_once;
  if (parts_.journal->is_repeating()) return;
  saver_.SaveIfDue(std::exchange(has_postponed_save_, false));
}

absl::Status ServerRecovery::NoteAssigned() {
  rollback_points_.DropFirstValues();
  return parts_.journal->NoteObstacle("assignments to variables");
}

std::any ServerRecovery::TakeContinuedProgress() {
  std::optional<TrainingState> progress = parts_.journal->TakeProgress();
  return progress.has_value() ? std::any(*std::move(progress)) : std::any();
}

ServerRecovery::History ServerRecovery::history() const {
  absl::MutexLock lock(&mutex_);
  return {.generation = generation_, .restored_count = restored_count_};
}

bool ServerRecovery::ShouldRepeat(const History& before,
                                  const absl::Status& failure) {
  if (!MayBeServerLoss(failure) && !absl::IsAborted(failure)) return false;
  if (std::this_thread::get_id() == thread_.get_id()) return false;
  absl::MutexLock lock(&mutex_);
  const auto has_begun = [&]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return is_recovering_ || stopping_ || generation_ != before.generation ||
           restored_count_ != before.restored_count;
  };
  const absl::Time now = parts_.clock->Now();
  return parts_.clock->AwaitWithDeadline(&mutex_, absl::Condition(&has_begun),
                                         now + kNoticeTime) &&
         parts_.clock->AwaitWithDeadline(
             &mutex_, absl::Condition(this, &ServerRecovery::IsSettled),
             now + kSettleTimeout) &&
         !stopping_ && generation_ == before.generation &&
         restored_count_ != before.restored_count;
}

absl::StatusOr<std::unique_ptr<VariableSnapshot>>
ServerRecovery::TakeSnapshot() {
  for (int attempt = 1;; ++attempt) {
    const History before = history();
    absl::StatusOr<std::unique_ptr<VariableSnapshot>> snapshot =
        TryToTakeSnapshot();
    if (snapshot.ok() || attempt == kAttemptsMax ||
        !ShouldRepeat(before, snapshot.status())) {
      return snapshot;
    }
  }
}

absl::StatusOr<std::unique_ptr<VariableSnapshot>>
ServerRecovery::TryToTakeSnapshot() {
  RollbackPoint point;
  point.id = RandomIdentity();
  // Otherwise some servers may have applied steps that others have not.
  const bool is_exact = !parts_.journal->is_repeating();
  RETURN_IF_ERROR(
      parts_.dispatcher->Drain(parts_.clock->Now() + options_.drain_timeout));
  std::function<std::any()> progress;
  std::map<uint64_t, SnapshotParticipant*> loops;
  uint64_t generation = 0;
  {
    absl::MutexLock lock(&mutex_);
    progress = progress_source_;
    loops = loops_;
    generation = generation_;
  }
  point.succeeded = parts_.dispatcher->succeeded();
  if (progress) point.progress = progress();
  for (const auto& [id, loop] : loops) point.loops[id] = loop->OnSnapshot();
  absl::StatusOr<FrozenSnapshot> frozen = parts_.variables->Freeze(point.id);
  parts_.dispatcher->Undrain();
  RETURN_IF_ERROR(frozen.status());
  absl::MutexLock lock(&mutex_);
  if (is_recovering_ || generation != generation_) {
    return absl::AbortedError(
        "training was rolled back while its state was frozen");
  }
  return std::make_unique<UnsavedSnapshot>(this, std::move(point), generation,
                                           is_exact, *std::move(frozen));
}

absl::Status ServerRecovery::Written(const UnsavedSnapshot& unsaved,
                                     absl::string_view prefix) {
  RollbackPoint point = unsaved.point();
  point.prefix = std::string(prefix);
  {
    // A rollback has undone this snapshot, or is about to.
    absl::MutexLock lock(&mutex_);
    if (is_recovering_ || unsaved.generation() != generation_) {
      return absl::AbortedError(absl::StrCat("training was rolled back while ",
                                             prefix, " was written"));
    }
    if (unsaved.is_exact()) rollback_points_.Add(std::move(point));
  }
  rollback_points_.DropDeleted(IsPublished);
  return absl::OkStatus();
}

absl::Status ServerRecovery::Restore(absl::string_view prefix,
                                     bool values_only) {
  RETURN_IF_ERROR(NoteAssigned());
  RETURN_IF_ERROR(parts_.variables->Restore(prefix, values_only));
  if (values_only) return absl::OkStatus();
  RollbackPoint point;
  ASSIGN_OR_RETURN(point.id, ReadSnapshotId(prefix));
  point.prefix = std::string(prefix);
  point.succeeded = parts_.dispatcher->succeeded();
  rollback_points_.Add(std::move(point));
  return absl::OkStatus();
}

absl::Status ServerRecovery::CheckCanSave(absl::string_view prefix) {
  const absl::Status status = parts_.variables->CheckCanSave(prefix);
  const bool is_permanent =
      absl::IsPermissionDenied(status) || absl::IsInvalidArgument(status);
  return is_permanent ? status : absl::OkStatus();
}

absl::Status ServerRecovery::CheckCheckpointDir() {
  if (options_.checkpoint_dir.empty()) return absl::OkStatus();
  const absl::Status status =
      CheckCanSave(JoinPath(options_.checkpoint_dir, "ckpt-1"));
  if (status.ok()) return status;
  return absl::Status(
      status.code(),
      absl::StrCat("checkpoints for recovery cannot be written to ",
                   options_.checkpoint_dir, ": ", status.message()));
}

void ServerRecovery::SetProgressSource(std::function<std::any()> source) {
  parts_.journal->SetProgressSource(source);
  absl::MutexLock lock(&mutex_);
  progress_source_ = std::move(source);
}

uint64_t ServerRecovery::AddLoop(SnapshotParticipant* loop) {
  absl::MutexLock lock(&mutex_);
  loops_[next_loop_id_] = loop;
  return next_loop_id_++;
}

void ServerRecovery::RemoveLoop(uint64_t id) {
  // The servers may be told to exit once no loop is left.
  saver_.AwaitWrite();
  absl::MutexLock lock(&mutex_);
  loops_.erase(id);
  // A server may be waiting for the loop to save its variables.
  has_changed_ = true;
}

// ---- Rollbacks.

void ServerRecovery::SetHandler(Handler handler) {
  absl::MutexLock lock(&mutex_);
  handler_ = std::move(handler);
  // The wait has no deadline. It ends with the handler.
  mutex_.Await(absl::Condition(this, &ServerRecovery::CallsNoHandler));
}

absl::StatusOr<uint64_t> ServerRecovery::AwaitAnnouncement() {
  absl::MutexLock lock(&mutex_);
  const bool is_handler = std::this_thread::get_id() == thread_.get_id();
  if (!is_handler &&
      !parts_.clock->AwaitWithDeadline(
          &mutex_, absl::Condition(this, &ServerRecovery::IsAnnounced),
          parts_.clock->Now() + kSettleTimeout)) {
    return absl::DeadlineExceededError(
        "the recovery of parameter servers does not end");
  }
  return generation_;
}

absl::StatusOr<std::optional<Rollback>> ServerRecovery::AwaitRollback(
    const absl::Status& status) {
  Pending pending;
  std::map<uint64_t, SnapshotParticipant*> loops;
  RETURN_IF_ERROR(parts_.dispatcher->why_aborted());
  {
    absl::MutexLock lock(&mutex_);
    if (MayBeServerLoss(status)) {
      parts_.clock->AwaitWithDeadline(
          &mutex_, absl::Condition(this, &ServerRecovery::HasBegunToRecover),
          parts_.clock->Now() + kNoticeTime);
    }
    if (!parts_.clock->AwaitWithDeadline(
            &mutex_, absl::Condition(this, &ServerRecovery::IsSettled),
            parts_.clock->Now() + kSettleTimeout)) {
      return absl::DeadlineExceededError(
          absl::StrCat("the recovery of parameter servers does not end: ",
                       status.message()));
    }
    if (!pending_.has_value()) {
      RETURN_IF_ERROR(parts_.dispatcher->why_aborted());
      return std::optional<Rollback>();
    }
    pending = *std::exchange(pending_, std::nullopt);
    loops = loops_;
  }
  // A caller has received the failure by now, so the one in the queue is
  // dropped.
  parts_.dispatcher->Join(parts_.clock->Now() + options_.drain_timeout)
      .IgnoreError();
  for (const auto& [id, loop] : loops) {
    const auto state = pending.point.loops.find(id);
    loop->OnRollback(state == pending.point.loops.end() ? nullptr
                                                        : state->second.get());
  }
  return Rollback{.checkpoint = pending.report.checkpoint,
                  .undone_step_count = pending.report.undone_count,
                  .progress = pending.point.progress};
}

void ServerRecovery::RunLoop() {
  while (true) {
    bool has_loop = false;
    {
      absl::MutexLock lock(&mutex_);
      // The wait has no deadline. It ends at the latest with this object.
      mutex_.Await(absl::Condition(this, &ServerRecovery::MayWake));
      if (stopping_) return;
      has_changed_ = false;
      has_loop = !loops_.empty();
    }
    saver_.NoteEnding(has_loop);
    if (EndsBecauseReplaced() || !HasTrouble()) continue;
    {
      absl::MutexLock lock(&mutex_);
      is_recovering_ = true;
    }
    recovering_.store(true);
    suspended_at_ = parts_.clock->Now();
    parts_.dispatcher->Suspend();
    Recover();
    recovering_.store(false);
    absl::MutexLock lock(&mutex_);
    is_recovering_ = false;
    announced_generation_ = generation_;
  }
}

void ServerRecovery::Recover() {
  absl::Status last_try;
  while (AwaitServers()) {
    const std::vector<RemoteVariableStore::ReplacedServer> returned =
        Returned();
    TakeRestored();
    LogNotRestored(returned);
    if (returned.empty()) {
      LOG(INFO) << "all parameter servers still have their variables; training "
                   "continues";
      parts_.dispatcher->Resume();
      return;
    }
    int64_t recovery_count = 0;
    {
      absl::MutexLock lock(&mutex_);
      recovery_count = ++recovery_count_;
    }
    if (recovery_count > options_.recovery_count_max) {
      return GiveUp(absl::AbortedError(absl::StrCat(
          absl::StrJoin(NamesOf(returned), ", "),
          " restarted without variables, and training was rolled back ",
          options_.recovery_count_max,
          " times already, as often as --max_recoveries allows",
          last_try.ok() ? std::string()
                        : absl::StrCat("; the last try ended with: ",
                                       last_try.message()))));
    }
    const absl::StatusOr<RollbackPoint> point = RollServersBack(returned);
    if (point.ok()) {
      Announce(*point, returned);
      return;
    }
    if (IsCheckpointError(point.status())) return GiveUp(point.status());
    last_try = point.status();
    LOG(WARNING) << "restarting the recovery: " << last_try.message();
    absl::MutexLock lock(&mutex_);
    parts_.clock->AwaitWithDeadline(
        &mutex_, absl::Condition(this, &ServerRecovery::MayWake),
        parts_.clock->Now() + kPauseBetweenTries);
    if (stopping_) return;
  }
}

absl::StatusOr<RollbackPoint> ServerRecovery::RollServersBack(
    const std::vector<RemoteVariableStore::ReplacedServer>& returned) {
  absl::Status first;
  for (const RollbackPoint& point : rollback_points_.List()) {
    absl::Status status;
    if (!point.prefix.empty()) {
      const absl::StatusOr<uint64_t> id = ReadSnapshotId(point.prefix);
      status = id.status();
      if (status.ok() && point.id != 0 && *id != point.id) {
        status = absl::NotFoundError(absl::StrCat(
            point.prefix, " has not been published, or was replaced since"));
      }
    }
    if (status.ok()) status = RollServersBackTo(point, returned);
    if (status.ok()) return point;
    if (!IsCheckpointError(status)) return status;
    LOG(WARNING) << "training cannot be rolled back to " << DescribePoint(point)
                 << ": " << status.message();
    if (first.ok()) first = status;
  }
  const absl::Status status = absl::NotFoundError(absl::StrCat(
      absl::StrJoin(NamesOf(returned), ", "),
      " restarted without variables, and there is no checkpoint to resume from",
      first.ok() ? std::string() : absl::StrCat(": ", first.message())));
  // A new coordinator can resume from a backup, or begin from the start.
  return first.ok() ? WithExitCode(status, ExitCode::kRestartMe) : status;
}

absl::Status ServerRecovery::RollServersBackTo(
    const RollbackPoint& point,
    const std::vector<RemoteVariableStore::ReplacedServer>& returned) {
  uint64_t generation = 0;
  {
    absl::MutexLock lock(&mutex_);
#ifndef MUSTER_PLANT_NO_GENERATION
    ++generation_;
#endif
    generation = generation_;
  }
  RETURN_IF_ERROR(parts_.variables->RecoverServers(
      returned, generation, parts_.dispatcher->low_water_mark(),
      /*starts_over=*/point.prefix.empty()));
  if (point.prefix.empty()) return absl::OkStatus();
  return parts_.variables->Restore(point.prefix, /*values_only=*/false);
}

absl::Status ServerRecovery::NoteHolders(
    const std::vector<RemoteVariableStore::ReplacedServer>& returned) {
  std::vector<uint64_t> state_ids;
  uint64_t generation = 0;
  {
    absl::MutexLock lock(&mutex_);
    for (const auto& server : returned) {
      holders_[server.server] = server.incarnation;
      serving_tasks_[server.server] = server.task;
      state_ids_[server.server] = server.state_id;
    }
    state_ids = state_ids_;
    generation = generation_;
  }
  parts_.servers->SetStates(state_ids);
  return parts_.journal->NoteServers(state_ids, generation);
}

absl::Duration ServerRecovery::TimeOfClosures(int64_t count) const {
  const ClosureDispatcher::Counters counters = parts_.dispatcher->counters();
  if (counters.finished_count == 0) return absl::ZeroDuration();
  return counters.busy / counters.finished_count /
         parts_.dispatcher->worker_count() * count;
}

void ServerRecovery::Announce(
    const RollbackPoint& point,
    const std::vector<RemoteVariableStore::ReplacedServer>& returned) {
  parts_.variables->ForgetValues();
  rollback_points_.DropAfter(point);
  RollbackReport report{.checkpoint = point.prefix,
                        .servers = NamesOf(returned)};
  const std::string what = absl::StrCat(
      "training was rolled back to ", DescribePoint(point), " after ",
      absl::StrJoin(report.servers, ", "), " restarted without variables");
  if (const absl::Status noted = NoteHolders(returned); !noted.ok()) {
    return GiveUp(noted);
  }
  ClosureDispatcher::RollbackWork work{.kept = point.succeeded};
  Handler handler;
  {
    absl::MutexLock lock(&mutex_);
    handler = handler_;
    is_calling_handler_ = static_cast<bool>(handler);
    work.generation = generation_;
  }
  if (!handler) work.failure = absl::AbortedError(what);
  const ClosureIds undone = parts_.dispatcher->RollBack(work);
  report.undone_count = undone.size();
  report.undone_ids = undone.First(kNamedClosuresMax);
  parts_.dispatcher->timeline().Note(
      LogSeverity::kWarning,
      absl::StrCat(what, "; the results of ", report.undone_count,
                   " steps are undone", DescribeUndone(undone, report)),
      {.pause = parts_.clock->Now() - suspended_at_ +
                TimeOfClosures(report.undone_count)});
  if (handler) handler(report);
  {
    absl::MutexLock lock(&mutex_);
    if (!handler) pending_ = Pending{point, std::move(report)};
    is_calling_handler_ = false;
    announced_generation_ = generation_;
  }
  parts_.dispatcher->Resume();
}

bool ServerRecovery::EndsBecauseReplaced() {
  const absl::Status replaced = parts_.servers->replaced();
  if (!replaced.ok()) GiveUp(replaced);
  return !replaced.ok();
}

void ServerRecovery::GiveUp(const absl::Status& why) {
  parts_.dispatcher->Abort(why);
}

}  // namespace muster
