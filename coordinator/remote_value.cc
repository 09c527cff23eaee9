#include "coordinator/remote_value.h"

#include "common/core/system/clock.h"

namespace muster {

RemoteValueState::~RemoteValueState() {
  if (kept_ != nullptr) kept_->release();
}

void RemoteValueState::SetResults(std::vector<Tensor> results) {
  absl::MutexLock lock(&mutex_);
  if (done_) return;
  results_ = std::move(results);
  done_ = true;
}

void RemoteValueState::SetKept(Kept kept) {
  absl::MutexLock lock(&mutex_);
  if (done_) return;
  kept_ = std::make_unique<Kept>(std::move(kept));
  done_ = true;
}

void RemoteValueState::SetError(absl::Status status) {
  absl::MutexLock lock(&mutex_);
  if (done_) return;
  status_ = std::move(status);
  done_ = true;
}

void RemoteValueState::SetFetched(std::vector<Tensor> results) {
  std::unique_ptr<Kept> kept;
  {
    absl::MutexLock lock(&mutex_);
    if (kept_ == nullptr) return;
    results_ = std::move(results);
    kept = std::move(kept_);
  }
  kept->release();
}

bool RemoteValueState::done() const {
  absl::MutexLock lock(&mutex_);
  return done_;
}

bool RemoteValueState::AwaitDone(absl::Time deadline) const {
  absl::MutexLock lock(&mutex_);
  return Clock::Real()->AwaitWithDeadline(
      &mutex_, absl::Condition(this, &RemoteValueState::IsDone), deadline);
}

absl::Status RemoteValueState::status() const {
  absl::MutexLock lock(&mutex_);
  return status_;
}

std::optional<RemoteValueState::Keeper> RemoteValueState::keeper() const {
  absl::MutexLock lock(&mutex_);
  if (kept_ == nullptr) return std::nullopt;
  return kept_->keeper;
}

std::vector<Tensor> RemoteValueState::results() const {
  absl::MutexLock lock(&mutex_);
  return results_;
}

}  // namespace muster
