// What ClosureDispatcher does about workers that refuse, fail or are lost.
#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/core/base/log.h"
#include "common/net/cluster/task_id.h"
#include "common/net/process/exit_code.h"
#include "common/net/rpc/identity.h"
#include "coordinator/closure_dispatcher.h"
#include "coordinator/peer_reason.h"

namespace muster {

void ClosureDispatcher::NoteRefusal(const WorkerLane& lane,
                                    const absl::Status& why) {
  missing_->MarkMissing(options_.cluster.Tasks(TaskType::kWorker)[lane.worker],
                        lane.last_error);
  switch (why.code()) {
    case absl::StatusCode::kInvalidArgument:
      missing_->Fail(WithExitCode(absl::FailedPreconditionError(why.message()),
                                  ExitCode::kUsage));
      break;
    case absl::StatusCode::kUnimplemented:
      missing_->Fail(WithExitCode(
          absl::FailedPreconditionError(absl::StrCat(
              lane.channel->peer(), " is no worker: ", lane.last_error,
              "; its address stands under the wrong role. Give all tasks the ",
              "same \"cluster\" in TF_CONFIG")),
          ExitCode::kUsage));
      break;
    case absl::StatusCode::kPermissionDenied:
      // Of two coordinators the one that has the first worker goes on, and the
      // other leaves it the rest.
      if (lane.worker != 0) break;
      missing_->Fail(absl::AlreadyExistsError(absl::StrCat(
          "another coordinator has this cluster: ", why.message(),
          "; end that one first, or give this one a cluster of its own")));
      break;
    default:
      // All else may pass: the worker may not have noticed yet that the
      // coordinator before this one is gone.
      break;
  }
}

void ClosureDispatcher::NoteTrouble(WorkerLane* lane,
                                    const absl::Status& trouble) {
  const absl::Time now = clock_->Now();
  // What it held failed together.
  if (now < lane->paused_until) return;
  lane->paused_until = now + BackoffDelay(options_.retry_pause,
                                          ++lane->trouble_count, lane->session);
  lane->trouble = std::string(trouble.message());
  queue_.SetPaused(lane->worker, true);
  queue_.RecallUnstarted(lane->worker);
  if (now < lane->next_trouble_report || is_suspended_) return;
  lane->next_trouble_report = now + options_.trouble_report_interval;
  LOG(WARNING) << lane->channel->peer() << " cannot go on: " << lane->trouble
               << "; its closures go to other workers, and it is tried again";
}

void ClosureDispatcher::Lose(WorkerLane* lane, const absl::Status& why) {
  const bool was_open = lane->state == WorkerLane::State::kOpen;
  lane->last_error = PeerReason(*lane->channel, why);
  if (was_open) {
    const int64_t requeued_before = queue_.requeued_count();
    const absl::Status lost = absl::UnavailableError(absl::StrCat(
        lane->channel->peer(), ", incarnation ",
        IncarnationString(lane->incarnation), ", is lost: ", lane->last_error));
    queue_.WorkerLost(lane->worker, lost);
    ++lost_count_;
    const bool others_are_open =
        std::any_of(lanes_.begin(), lanes_.end(), [lane](const auto& other) {
          return &other != lane && other.state == WorkerLane::State::kOpen;
        });
    LOG(WARNING) << lost.message() << "; "
                 << queue_.requeued_count() - requeued_before
                 << (others_are_open ? " closures go to other workers"
                                     : " closures wait for a worker: no other "
                                       "is left");
  } else {
    ++lane->failed_open_count;
    NoteRefusal(*lane, why);
  }
  for (auto* const stream : {&lane->stream, &lane->replaced_stream}) {
    if (*stream != nullptr) doomed_.push_back(std::move(*stream));
  }
  lane->BeginAnew();
  lane->next_open_time =
      clock_->Now() +
      (was_open ? absl::ZeroDuration()
                : BackoffDelay(options_.reconnect, lane->failed_open_count,
                               lane->session));
  wake_ = true;
}

}  // namespace muster
