#ifndef PS_CLIENT_SERVER_CHANNEL_H_
#define PS_CLIENT_SERVER_CHANNEL_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "common/net/rpc/channel.h"

namespace muster {

// A channel to the task that serves a parameter server. If other tasks hold
// copies of the server's state, one of them may serve later: calls and streams
// that begin after SetServing() go there. Each task has its own target
// incarnation.
//
// Thread-safe.
class ServerChannel final : public Channel {
 public:
  // One channel for each task that has the state of the server or a copy.
  explicit ServerChannel(std::vector<std::unique_ptr<Channel>> tasks,
                         int serving = 0)
      : tasks_(std::move(tasks)), serving_(serving) {}

  int task_count() const { return static_cast<int>(tasks_.size()); }
  Channel& task(int index) { return *tasks_[index]; }
  int serving() const { return serving_.load(std::memory_order_acquire); }
  void SetServing(int index) {
    serving_.store(index, std::memory_order_release);
  }

  std::string peer() const override { return current().peer(); }
  void SetTargetIncarnation(uint64_t incarnation) override {
    current().SetTargetIncarnation(incarnation);
  }
  uint64_t target_incarnation() const override {
    return current().target_incarnation();
  }
  void SetJobId(absl::string_view job_id) override {
    for (const auto& task : tasks_) task->SetJobId(job_id);
  }
  void StartCall(absl::string_view method, const Message& request,
                 const CallOptions& options, Done done) override {
    current().StartCall(method, request, options, std::move(done));
  }
  std::shared_ptr<Stream> OpenStream(
      absl::string_view method,
      std::shared_ptr<StreamObserver> observer) override {
    return current().OpenStream(method, std::move(observer));
  }

 private:
  Channel& current() const { return *tasks_[serving()]; }

  const std::vector<std::unique_ptr<Channel>> tasks_;
  std::atomic<int> serving_;
};

}  // namespace muster

#endif  // PS_CLIENT_SERVER_CHANNEL_H_
