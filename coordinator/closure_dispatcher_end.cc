// How a ClosureDispatcher ends its sessions with workers.
#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/net/rpc/reconnecting_stream.h"
#include "coordinator/closure_dispatcher.h"
#include "coordinator/worker_record.h"
#include "proto/worker.pb.h"

namespace muster {
namespace {

// For a lost worker to return, when the job ends with an error.
constexpr absl::Duration kAbsentWorkerGrace = absl::Milliseconds(300);

}  // namespace

absl::Status ClosureDispatcher::EndJob(const proto::JobEnd& end,
                                       absl::Time deadline) {
  std::string names;
  std::vector<ReconnectingStream*> told;
  {
    absl::MutexLock lock(&mutex_);
    job_end_ = end;
    loop_.Wake();
    Await(&ClosureDispatcher::AllPresentLanesEnded, deadline);
    // A worker that returns too late waits for the next coordinator: one that
    // has failed, or was stopped, may be followed by another.
    const absl::Time absent_deadline =
        end.exit_code() == 0
            ? deadline
            : std::min(deadline, clock_->Now() + kAbsentWorkerGrace);
    Await(&ClosureDispatcher::AllWorkersEnded, absent_deadline);
    for (const WorkerRecord& record : records_) {
      if (record.state == WorkerRecord::State::kEnded) {
        told.push_back(streams_[record.worker].get());
        continue;
      }
      absl::StrAppend(&names, names.empty() ? "" : ", ",
                      channel(record.worker).peer(),
                      record.last_error.empty() ? "" : ": ", record.last_error);
    }
  }
  // A worker closes its session when it has read everything.
  for (ReconnectingStream* const stream : told) stream->AwaitClosed(deadline);
  if (names.empty()) return absl::OkStatus();
  return absl::DeadlineExceededError(
      absl::StrCat("these were not told that the job is over: ", names));
}

void ClosureDispatcher::Withdraw(absl::string_view reason,
                                 absl::Time deadline) {
  {
    absl::MutexLock lock(&mutex_);
    job_end_.emplace();
    job_end_->set_is_withdrawal(true);
    job_end_->set_reason(std::string(reason));
  }
  for (const auto& stream : streams_) stream->StopDialling();
  loop_.Wake();
  // A worker that was dialled either refuses, or accepts and is told.
  for (const auto& stream : streams_) stream->AwaitClosed(deadline);
}

}  // namespace muster
