#include "common/net/collectives/views/joiner_watch.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/core/base/random.h"
#include "common/core/system/log.h"

namespace muster {

JoinerWatch::JoinerWatch(Options options, const JoinRequests* requests,
                         Clock* clock)
    : options_(std::move(options)),
      requests_(requests),
      clock_(clock),
      // A number that no earlier task of the group has written.
      pulse_(RandomIdentity() >> 1),
      thread_([this] { Run(); }) {}

JoinerWatch::~JoinerWatch() {
  {
    absl::MutexLock lock(&mutex_);
    ends_ = true;
  }
  thread_.join();
}

std::vector<GroupView::Member> JoinerWatch::TakeReady() {
  absl::MutexLock lock(&mutex_);
  has_ready_ = false;
  return std::exchange(ready_, {});
}

void JoinerWatch::SetReady(std::vector<GroupView::Member> ready) {
  absl::MutexLock lock(&mutex_);
  ready_ = std::move(ready);
  has_ready_ = !ready_.empty();
}

void JoinerWatch::Run() {
  absl::Time next = clock_->Now();
  while (true) {
    next = std::max(next + options_.interval, clock_->Now());
    {
      absl::MutexLock lock(&mutex_);
      if (clock_->AwaitWithDeadline(&mutex_, absl::Condition(&ends_), next)) {
        return;
      }
    }
    SetReady(options_.answers() ? Answer() : std::vector<GroupView::Member>());
  }
}

std::vector<GroupView::Member> JoinerWatch::Answer() {
  const absl::StatusOr<std::vector<JoinRequests::Request>> requests =
      requests_->List();
  if (!requests.ok()) {
    LOG(WARNING) << "requests to join the group cannot be read: "
                 << requests.status().message();
    return {};
  }
  RemoveOldRenewals(*requests);
  if (requests->empty()) return {};
  const absl::Status answered = requests_->WritePulse(++pulse_);
  if (!answered.ok()) {
    LOG(WARNING) << "requests to join the group cannot be answered: "
                 << answered.message();
  }
  std::vector<GroupView::Member> ready;
  for (const JoinRequests::Request& request : *requests) {
    if (IsReady(request) && options_.may_join(request.member)) {
      ready.push_back(request.member);
    }
  }
  return ready;
}

void JoinerWatch::RemoveOldRenewals(
    const std::vector<JoinRequests::Request>& requests) {
  std::map<uint64_t, Renewal> kept;
  for (const JoinRequests::Request& request : requests) {
    const auto found = renewals_.find(request.member.incarnation);
    if (found != renewals_.end()) kept.insert(*found);
  }
  renewals_ = std::move(kept);
}

bool JoinerWatch::IsReady(const JoinRequests::Request& request) {
  const absl::Time now = clock_->Now();
  const auto [found, is_new] = renewals_.try_emplace(
      request.member.incarnation, Renewal{.beat = request.beat, .time = now});
  Renewal& renewal = found->second;
  if (renewal.beat != request.beat) {
    renewal = {.beat = request.beat, .time = now, .was_seen = true};
  }
  const absl::Duration age = now - renewal.time;
  const absl::Duration age_max =
      request.is_ready ? 5 * options_.interval : options_.preparation_max;
  if (age > age_max) requests_->Remove(request.member).IgnoreError();
  return request.is_ready && renewal.was_seen && age < 2 * options_.interval;
}

}  // namespace muster
