#include "common/net/rpc/grpc_shutdown.h"

#include <grpc/grpc.h>
#include <grpc/support/time.h>

#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "common/core/system/clock.h"

namespace muster {
namespace {

// Shuts a server down, and waits on a separate thread until all of its calls
// have ended.
class EndOfCalls {
 public:
  // From now on the server accepts no more calls.
  explicit EndOfCalls(grpc_server* server) {
    grpc_server_shutdown_and_notify(server, queue_, this);
    thread_ = std::thread([this] { Wait(); });
  }
  // Blocks until all calls have ended.
  ~EndOfCalls() {
    thread_.join();
    grpc_completion_queue_shutdown(queue_);
    grpc_completion_queue_destroy(queue_);
  }

  // Returns true if all calls ended within `timeout`.
  bool AwaitFor(absl::Duration timeout) {
    Clock* const clock = Clock::Real();
    absl::MutexLock lock(&mutex_);
    return clock->AwaitWithDeadline(&mutex_, absl::Condition(&has_ended_),
                                    clock->Now() + timeout);
  }

 private:
  void Wait() {
    grpc_completion_queue_next(queue_, gpr_inf_future(GPR_CLOCK_MONOTONIC),
                               /*reserved=*/nullptr);
    absl::MutexLock lock(&mutex_);
    has_ended_ = true;
  }

  grpc_completion_queue* const queue_ =
      grpc_completion_queue_create_for_next(/*reserved=*/nullptr);
  absl::Mutex mutex_;
  bool has_ended_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace

void ShutDownGrpcServer(grpc::Server& server, absl::Duration grace) {
  {
    EndOfCalls end(server.c_server());
    if (!end.AwaitFor(grace)) grpc_server_cancel_all_calls(server.c_server());
  }
  // These return at once, because all calls have ended.
  server.Shutdown();
  server.Wait();
}

}  // namespace muster
