#ifndef COMMON_NET_COLLECTIVES_NCCL_NCCL_THREAD_H_
#define COMMON_NET_COLLECTIVES_NCCL_NCCL_THREAD_H_

#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/core/device/device.h"
#include "common/core/device/stream.h"
#include "common/core/tensor/buffer.h"
#include "common/net/collectives/nccl/nccl_api.h"

namespace muster {

// The thread that owns a communicator of NCCL. Only this thread connects the
// communicator, launches its collectives, queries its errors, and ends it. (A
// non-blocking communicator of NCCL is not safe to use from two threads, and
// its calls may block nevertheless.)
//
// While a collective is running, the thread polls its event,
// ncclCommGetAsyncError(), and its deadline. An error, an expired deadline, or
// Abort() ends the communicator by ncclCommAbort(). Every later call returns
// the first error. Collectives that ncclCommAbort() ends are never reported as
// done.
//
// Errors include NCCL's message. They do not name ranks, because NCCL does not
// report them.
//   kUnavailable       NCCL lost a rank or the network
//   kDeadlineExceeded  the collective has not finished in time
//   kInternal          NCCL was called incorrectly, or the device failed
//   any code           the status that was passed to Abort()
//
// Run() and Await() come from one thread at a time. Abort() and state() are
// thread-safe.
class NcclThread {
 public:
  struct Options {
    const nccl::Api* api = nullptr;  // Borrowed, lives as long as the process.
    Device* device = nullptr;        // Likewise.
    int rank = 0;
    int size = 1;
    nccl::UniqueId id;
    // The maximal number of multiprocessors that NCCL may use. 0: NCCL decides.
    int ctas_max = 0;
    // How long the destructor waits for the communicator to end. After that, it
    // logs an error and leaves the communicator, its thread and its stream
    // running.
    absl::Duration end_timeout = absl::Seconds(5);
  };

  // Connects to the other ranks, which call this function, too.
  //   kDeadlineExceeded  not all ranks have connected
  //   kUnavailable       NCCL could not connect; includes NCCL's message
  static absl::StatusOr<std::unique_ptr<NcclThread>> Connect(
      const Options& options, absl::Time deadline);

  ~NcclThread();
  NcclThread(const NcclThread&) = delete;
  NcclThread& operator=(const NcclThread&) = delete;

  // Enqueues collectives on the stream.
  using Launch = std::function<nccl::Result(nccl::Comm* comm,
                                            driver::StreamHandle* stream)>;

  // Calls `launch` on the communicator's thread. The collective runs after
  // `ready`, and `done` is recorded after it; either may be null. Returns when
  // the collective is enqueued. `function` is its name in errors.
  absl::Status Run(absl::string_view function, Launch launch,
                   const Event* ready, Event* done, absl::Time deadline);

  // Blocks until all enqueued collectives have finished or one has failed.
  absl::Status Await();

  // OK, or the error that ended the communicator.
  absl::Status state() const;

  // Ends the communicator with `status`, which is not OK. Does not wait.
  void Abort(const absl::Status& status);

  // As DeviceCommunicator::UseEndWord(). Thread-safe.
  void UseEndWord(std::shared_ptr<Buffer> word);

  // The stream of the collectives, for work between Run() calls.
  DeviceStream* stream();
  // Keeps `memory` alive until the stream has ended. Replaces memory of an
  // earlier call.
  void Keep(std::shared_ptr<void> memory);

 private:
  class State;
  explicit NcclThread(std::shared_ptr<State> state);

  // Shared with the thread, which may outlive this.
  const std::shared_ptr<State> state_;
  std::thread thread_;
};

}  // namespace muster

#endif  // COMMON_NET_COLLECTIVES_NCCL_NCCL_THREAD_H_
