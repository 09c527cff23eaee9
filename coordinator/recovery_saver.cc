#include "coordinator/recovery_saver.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/core/base/status_macros.h"
#include "common/core/system/log.h"
#include "common/io/storage/disk.h"

namespace muster {

RecoverySaver::RecoverySaver(const Options& options, Parts parts)
    : options_(options),
      parts_(std::move(parts)),
      last_save_(parts_.clock->Now()) {}

void RecoverySaver::SetPreemptionSaver(std::function<absl::Status()> save) {
  absl::MutexLock lock(&mutex_);
  preemption_saver_ = std::move(save);
}

void RecoverySaver::AwaitWrite() {
  writer_.Await().IgnoreError();  // The writer has logged it.
}

void RecoverySaver::SaveIfDue(bool at_once) {
  const bool has_ending_server = has_ending_server_.exchange(false);
  if (!options_.checkpoint_dir.empty()) {
    SaveToCheckpointDir(/*is_awaited=*/at_once || has_ending_server);
  } else if (has_ending_server) {
    CallPreemptionSaver();
  }
  if (has_ending_server) AllowEndingServersToExit();
}

void RecoverySaver::SaveToCheckpointDir(bool is_awaited) {
  if (is_awaited) AwaitWrite();
  const absl::Time now = parts_.clock->Now();
  const bool is_due = is_awaited
                          ? parts_.has_progressed()
                          : now >= last_save_ + options_.checkpoint_interval &&
                                !writer_.is_busy();
  if (!is_due) return;
  last_save_ = now;
  if (const absl::Status status = Save(is_awaited); !status.ok()) {
    LOG(WARNING) << "no checkpoint to recover from was written: "
                 << status.message();
  }
}

void RecoverySaver::CallPreemptionSaver() {
  std::function<absl::Status()> save;
  {
    absl::MutexLock lock(&mutex_);
    save = preemption_saver_;
  }
  const absl::Status status = save ? save() : absl::OkStatus();
  if (!status.ok()) {
    LOG(WARNING) << "the save before a parameter server exits failed: "
                 << status.message();
  }
}

absl::Status RecoverySaver::Save(bool is_awaited) {
  if (manager_ == nullptr) {
    ASSIGN_OR_RETURN(
        manager_, CheckpointManager::Create({.folder = options_.checkpoint_dir,
                                             .checkpoint_count_max = 2}));
  }
  ASSIGN_OR_RETURN(const std::string prefix, manager_->NextPrefix());
  ASSIGN_OR_RETURN(const std::shared_ptr<VariableSnapshot> snapshot,
                   parts_.take_snapshot());
  auto write = [this, prefix, snapshot]() -> absl::Status {
    const int shard_count = parts_.shard_count();
    const absl::Status written =
        snapshot->WriteShards(Disk::Real(), prefix, shard_count);
    if (written.ok()) return manager_->Publish(prefix, shard_count);
    manager_->Abandon(prefix, shard_count);
    return written;
  };
  const std::string what = absl::StrCat("checkpoint ", prefix);
  if (is_awaited) {
    writer_.Run(what, std::move(write)).IgnoreError();  // Logged by writer_.
  } else {
    writer_.Start(what, std::move(write));
  }
  return absl::OkStatus();
}

void RecoverySaver::NoteEnding(bool has_loop) {
  bool may_save = false;
  {
    absl::MutexLock lock(&mutex_);
    // A loop saves between two steps.
    may_save =
        has_loop && (!options_.checkpoint_dir.empty() || preemption_saver_);
  }
  if (!may_save) return AllowEndingServersToExit();
  const std::vector<ServerWatch::State> states = parts_.servers->states();
  if (std::any_of(states.begin(), states.end(),
                  [](const ServerWatch::State& s) { return s.is_ending; })) {
    has_ending_server_.store(true);
  }
}

void RecoverySaver::AllowEndingServersToExit() {
  const std::vector<ServerWatch::State> states = parts_.servers->states();
  for (size_t i = 0; i < states.size(); ++i) {
    if (states[i].is_ending) parts_.servers->AllowExit(static_cast<int>(i));
  }
}

}  // namespace muster
