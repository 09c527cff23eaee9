#include "common/net/rpc/local_route.h"

#include "common/net/rpc/local_handshake.h"

namespace muster {
namespace {

bool IsUnreachable(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status) ||
         absl::IsCancelled(status);
}

}  // namespace

bool LocalRoute::BeginOpening() {
  if (state_ == State::kOpen && HasEnded(connection_->tether)) {
    connection_ = nullptr;
    state_ = State::kUnknown;
  }
  if (state_ != State::kUnknown) return false;
  state_ = State::kOpening;
  return true;
}

LocalRoute::Connection LocalRoute::Get() {
  {
    absl::MutexLock lock(&mutex_);
    if (!BeginOpening()) return connection_;
  }
  open_();
  return nullptr;
}

void LocalRoute::WhenKnown(Start start) {
  bool is_first = false;
  Connection connection;
  {
    absl::MutexLock lock(&mutex_);
    is_first = BeginOpening();
    connection = connection_;
    if (state_ == State::kOpening) waiting_.push_back(std::exchange(start, {}));
  }
  if (is_first) open_();
  if (start != nullptr) start(std::move(connection));
}

void LocalRoute::SetOutcome(absl::StatusOr<Connection> outcome) {
  std::vector<Start> waiting;
  Connection connection;
  {
    absl::MutexLock lock(&mutex_);
    if (outcome.ok()) {
      state_ = State::kOpen;
      connection_ = connection = *std::move(outcome);
    } else {
      state_ =
          IsUnreachable(outcome.status()) ? State::kUnknown : State::kRefused;
    }
    waiting.swap(waiting_);
  }
  for (Start& start : waiting) start(connection);
}

void LocalRoute::Forget(const Connection& failed) {
  absl::MutexLock lock(&mutex_);
  if (state_ == State::kRefused ||
      (state_ == State::kOpen && failed == connection_)) {
    connection_ = nullptr;
    state_ = State::kUnknown;
  }
}

}  // namespace muster
