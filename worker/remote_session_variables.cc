#include "worker/remote_session_variables.h"

#include <algorithm>
#include <utility>

#include "absl/time/time.h"
#include "common/core/base/status_macros.h"
#include "common/net/cluster/task_id.h"

namespace muster {
namespace {

// Detects within two intervals that this worker cannot reach a server. The
// closure that uses the server then fails and is retried on another worker.
constexpr absl::Duration kKeepalive = absl::Seconds(3);

}  // namespace

absl::StatusOr<VariableStore*> RemoteSessionVariables::Store() {
  absl::MutexLock open_lock(&open_mutex_);
  {
    absl::MutexLock lock(&mutex_);
    if (store_ != nullptr) return store_.get();
  }
  RemoteVariableStore::Options options;
  options.shared_memory = shared_memory_;
  options.generation = job_.generation;
  options.copy_count = job_.server_copy_count;
  options.serving_tasks = job_.serving_tasks;
  options.update_gate = job_.update_gate;
  for (const TaskId task : cluster_.Tasks(TaskType::kPs)) {
    ChannelOptions& channel = options.tasks.emplace_back();
    ASSIGN_OR_RETURN(channel.address, cluster_.Address(task));
    channel.peer_task_type = std::string(TaskTypeName(task.type));
    channel.peer_task_index = task.index;
    channel.caller = self_;
    channel.job_id = job_.job_id;
    channel.coordinator_epoch = job_.coordinator_epoch;
    channel.keepalive = kKeepalive;
  }
  ASSIGN_OR_RETURN(std::unique_ptr<RemoteVariableStore> store,
                   RemoteVariableStore::Open(network_, std::move(options)));
  absl::MutexLock lock(&mutex_);
  store_ = std::move(store);
  store_->NoteScheduled(scheduled_);
  store_->SetLowWaterMark(low_water_mark_);
  return store_.get();
}

void RemoteSessionVariables::NoteScheduled(uint64_t closure_id) {
  absl::MutexLock lock(&mutex_);
  scheduled_ = std::max(scheduled_, closure_id);
  if (store_ != nullptr) store_->NoteScheduled(scheduled_);
}

void RemoteSessionVariables::SetLowWaterMark(uint64_t closure_id) {
  absl::MutexLock lock(&mutex_);
  low_water_mark_ = std::max(low_water_mark_, closure_id);
  if (store_ != nullptr) store_->SetLowWaterMark(low_water_mark_);
}

}  // namespace muster
