#include "common/net/process/job_control.h"

#include "absl/strings/str_cat.h"

namespace muster {

std::string RequestedCheckpointFolder(const std::string& run_dir) {
  return absl::StrCat(run_dir, "/requested_checkpoints");
}

JobControl& JobControl::OfProcess() {
  static JobControl* const control = new JobControl;
  return *control;
}

void JobControl::Ask(Action action, Done done) {
  {
    absl::MutexLock lock(&mutex_);
    if (training_count_ > 0) {
      is_stopped_ = is_stopped_ || action == Action::kStop;
      requests_.push_back({action, std::move(done)});
      NoteRequests();
      return;
    }
  }
  done(absl::FailedPreconditionError(
      "nothing is being trained now: the job starts or ends, or the program "
      "trains without Model::Fit(). Ask again while steps are counted "
      "(musterctl status)"));
}

void JobControl::RequestDrain(TaskId task, Done done) {
  absl::MutexLock lock(&drainer_mutex_);
  if (drainer_ != nullptr) {
    drainer_(task, std::move(done));
    return;
  }
  done(absl::FailedPreconditionError(absl::StrCat(
      "cannot drain ", task.ToString(),
      ": only workers of parameter servers can leave a running job, and here "
      "every task has a part in each step. Stop the job (musterctl stop) and "
      "start it with fewer tasks")));
}

JobControl::Training::Training(JobControl* control) : control_(control) {
  absl::MutexLock lock(&control_->mutex_);
  ++control_->training_count_;
}

JobControl::Training::~Training() { control_->EndTraining(); }

void JobControl::EndTraining() {
  std::deque<Request> unanswered;
  {
    absl::MutexLock lock(&mutex_);
    if (--training_count_ > 0) return;
    unanswered.swap(requests_);
    NoteRequests();
  }
  for (Request& request : unanswered) {
    if (request.action == Action::kStop) {
      request.done(std::string());
    } else {
      request.done(absl::FailedPreconditionError(
          "training has ended before the checkpoint could be written; its "
          "weights are where the job saves them at its end"));
    }
  }
}

std::optional<JobControl::Action> JobControl::Next() const {
  absl::MutexLock lock(&mutex_);
  if (!requests_.empty()) return requests_.front().action;
  if (is_stopped_) return Action::kStop;
  return std::nullopt;
}

void JobControl::Answer(absl::StatusOr<std::string> outcome) {
  Done done;
  {
    absl::MutexLock lock(&mutex_);
    if (requests_.empty()) return;
    done = std::move(requests_.front().done);
    requests_.pop_front();
    NoteRequests();
  }
  done(std::move(outcome));
}

void JobControl::SetCheckpointFolder(std::string folder) {
  absl::MutexLock lock(&mutex_);
  checkpoint_folder_ = std::move(folder);
}

std::string JobControl::checkpoint_folder() const {
  absl::MutexLock lock(&mutex_);
  return checkpoint_folder_;
}

void JobControl::SetDrainer(Drainer drainer) {
  absl::MutexLock lock(&drainer_mutex_);
  drainer_ = std::move(drainer);
}

}  // namespace muster
