#include "worker/update_permissions.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace muster {

void UpdatePermissions::SetAsk(std::function<void(uint64_t closure_id)> ask) {
  absl::MutexLock lock(&mutex_);
  ask_ = std::move(ask);
}

absl::Status UpdatePermissions::AwaitPermission(uint64_t closure_id) {
  std::function<void(uint64_t)> ask;
  {
    absl::MutexLock lock(&mutex_);
    if (ask_ == nullptr && !is_stopped_) return absl::OkStatus();
    closures_[closure_id] = State::kWaiting;
    if (!is_stopped_) ask = ask_;
  }
  if (ask != nullptr) ask(closure_id);  // The answer may arrive at once.
  absl::MutexLock lock(&mutex_);
  const auto is_decided = [&]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return is_stopped_ || closures_.at(closure_id) != State::kWaiting;
  };
  mutex_.Await(absl::Condition(&is_decided));
  if (is_stopped_) {
    return absl::CancelledError(
        absl::StrCat("the session ended while closure ", closure_id,
                     " waited for permission to update variables"));
  }
  if (closures_.at(closure_id) == State::kDenied) {
    return absl::AbortedError(absl::StrCat(
        "the gradients of closure ", closure_id,
        " are dropped, because they were computed after those of others"));
  }
  closures_.erase(closure_id);
  return absl::OkStatus();
}

void UpdatePermissions::Answer(uint64_t closure_id, bool is_permitted) {
  absl::MutexLock lock(&mutex_);
  const auto closure = closures_.find(closure_id);
  if (closure == closures_.end()) return;
  closure->second = is_permitted ? State::kPermitted : State::kDenied;
}

bool UpdatePermissions::TakeDenied(uint64_t closure_id) {
  absl::MutexLock lock(&mutex_);
  const auto closure = closures_.find(closure_id);
  if (closure == closures_.end()) return false;
  const bool is_denied = closure->second == State::kDenied;
  closures_.erase(closure);
  return is_denied;
}

void UpdatePermissions::Stop() {
  absl::MutexLock lock(&mutex_);
  is_stopped_ = true;
}

}  // namespace muster
