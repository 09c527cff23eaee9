#include "common/learn/train/training_requests.h"

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "common/core/base/status_macros.h"
#include "common/core/system/log.h"
#include "common/io/checkpoint/checkpoint_manager.h"
#include "common/io/storage/disk.h"
#include "common/learn/train/checkpoints/training_checkpoint.h"
#include "common/learn/train/model.h"
#include "common/net/process/exit_code.h"
#include "common/net/process/job_control.h"
#include "common/net/process/preemption_notice.h"

namespace muster {
namespace {

// The chief's messages to the other workers for JobControl::Action.
constexpr char kCheckpointRequest[] = "checkpoint";
constexpr char kStopRequest[] = "stop";
// As well: processes join, and nothing is left to be done.
constexpr char kJoinRequest[] = "join";
constexpr char kNoRequest[] = "nothing";

std::string Where(TrainingRequests::Position position) {
  return absl::StrCat("in epoch ", position.epoch + 1, " after step ",
                      position.epoch_steps);
}

}  // namespace

TrainingRequests::TrainingRequests(Model* model, Strategy* strategy,
                                   TrainingControl* control,
                                   std::function<absl::Status()> save,
                                   std::function<absl::Status()> take_in)
    : model_(*model),
      strategy_(*strategy),
      control_(*control),
      save_(std::move(save)),
      take_in_(std::move(take_in)) {}

std::string TrainingRequests::OwnRequest(Position position) {
  const std::optional<JobControl::Action> action =
      JobControl::OfProcess().Next();
  if (action == JobControl::Action::kCheckpoint) return kCheckpointRequest;
  if (action == JobControl::Action::kStop) return kStopRequest;
  GroupMembership* const membership = strategy_.membership();
  const bool has_joiners = position.takes_joiners && membership != nullptr &&
                           membership->has_joiners();
  if (!has_joiners) return "";
  const absl::Status proposed = membership->Propose();
  if (proposed.ok()) return kJoinRequest;
  LOG(WARNING) << "processes that ask to join cannot be taken in: "
               << proposed.message();
  return kNoRequest;
}

absl::Status TrainingRequests::Serve(Position position) {
  JobControl& job_control = JobControl::OfProcess();
  std::string request;
  if (strategy_.is_chief()) request = OwnRequest(position);
  ASSIGN_OR_RETURN(request,
                   strategy_.agreement().FromChief("what is asked of training",
                                                   std::move(request)));
  if (request == kCheckpointRequest) return WriteCheckpoint(position);
  if (request == kJoinRequest) return take_in_();
  if (request == kNoRequest) return absl::OkStatus();
  if (request != kStopRequest) {
    // The chief that had asked for something else may be lost.
    ASSIGN_OR_RETURN(const bool is_preempted,
                     strategy_.agreement().AgreeToStop(
                         PreemptionNotice::OfProcess().was_received()));
    if (!is_preempted) return absl::OkStatus();
    ASSIGN_OR_RETURN(const bool may_leave, MayLeaveAlone());
    return may_leave ? Leave(position) : EndBeforePreemption(position);
  }
  control_.stops = true;
  control_.is_interrupted = true;
  if (strategy_.is_chief()) {
    LOG(INFO) << "training ends " << Where(position)
              << ", as an operator has asked";
    job_control.Answer(std::string());
  }
  return absl::OkStatus();
}

absl::Status TrainingRequests::WriteCheckpoint(Position position) {
  JobControl& job_control = JobControl::OfProcess();
  absl::StatusOr<std::unique_ptr<TrainingSnapshot>> snapshot =
      model_.TakeSnapshot();
  if (!strategy_.is_chief()) return snapshot.status();
  if (!snapshot.ok()) {
    job_control.Answer(snapshot.status());
    return snapshot.status();
  }
  const std::string folder = job_control.checkpoint_folder();
  if (folder.empty()) {
    job_control.Answer(absl::FailedPreconditionError(
        "there is no folder for the checkpoint: start the job with "
        "--run_dir"));
    return absl::OkStatus();
  }
  Disk* const disk = Disk::Real();
  const auto write = [&]() -> absl::StatusOr<std::string> {
    ASSIGN_OR_RETURN(
        const auto manager,
        CheckpointManager::Create({.folder = folder,
                                   .checkpoint_count_max = std::nullopt,
                                   .disk = disk}));
    return (*snapshot)->WriteTo(disk, manager.get());
  };
  absl::StatusOr<std::string> prefix = write();
  if (prefix.ok()) {
    LOG(INFO) << "wrote " << *prefix << " " << Where(position)
              << ", as an operator has asked";
  } else {
    LOG(WARNING) << "a checkpoint that an operator has asked for could not be "
                    "written: "
                 << prefix.status().message();
  }
  job_control.Answer(std::move(prefix));
  return absl::OkStatus();
}

absl::StatusOr<bool> TrainingRequests::MayLeaveAlone() {
  GroupMembership* const membership = strategy_.membership();
  if (membership == nullptr) return false;
  return membership->MayLeave(PreemptionNotice::OfProcess().was_received());
}

absl::Status TrainingRequests::Leave(Position position) {
  if (!PreemptionNotice::OfProcess().was_received()) return absl::OkStatus();
  return WithExitCode(absl::CancelledError(absl::StrCat(
                          "this worker was stopped by a signal ",
                          Where(position), "; the others continue")),
                      ExitCode::kTerminated);
}

absl::Status TrainingRequests::EndBeforePreemption(Position position) {
  const absl::Status saved = save_();
  // Waits for all workers, so that no task leaves while the chief still writes.
  RETURN_IF_ERROR(strategy_.agreement().AgreeToStop(true).status());
  RETURN_IF_ERROR(saved);
  PreemptionNotice::OfProcess().MarkHandled();
  return WithExitCode(
      absl::CancelledError(
          absl::StrCat("training was stopped by a signal ", Where(position))),
      ExitCode::kTerminated);
}

}  // namespace muster
