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

// The thread that owns a communicator of NCCL: it alone connects it, launches
// its collectives, asks it for errors, and ends it. (A communicator that does
// not block misbehaves when two threads use it, and its calls may still block.)
//
// While a collective is under way, the thread polls its event,
// ncclCommGetAsyncError(), and its deadline. The first error, an expired
// deadline, or Abort() ends the communicator by ncclCommAbort(); every later
// call returns that error. Collectives that ncclCommAbort() ends are never
// reported as done.
//
// Errors say what NCCL says. They do not name ranks, which NCCL does not know.
//   kUnavailable       NCCL lost a rank or the network; its own words
//   kDeadlineExceeded  the collective has not finished in time
//   kInternal          NCCL was used wrongly, or the device failed
//   as given to Abort()
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
    // The multiprocessors that NCCL may occupy; 0: as it likes.
    int ctas_max = 0;
    // How long the end may take. A communicator that does not end by then is
    // left to itself with its thread and stream, and a line in the log.
    absl::Duration end_timeout = absl::Seconds(5);
  };

  // Connects with the other ranks, which do the same.
  //   kDeadlineExceeded  not all have come
  //   kUnavailable       NCCL could not connect; its own words
  static absl::StatusOr<std::unique_ptr<NcclThread>> Connect(
      const Options& options, absl::Time deadline);

  ~NcclThread();
  NcclThread(const NcclThread&) = delete;
  NcclThread& operator=(const NcclThread&) = delete;

  // Enqueues collectives on the stream.
  using Launch = std::function<nccl::Result(nccl::Comm* comm,
                                            driver::StreamHandle* stream)>;

  // Calls `launch` on the thread of the communicator, behind `ready`, and
  // records `done` behind it; either may be null. Returns when it is enqueued.
  // `function` is for errors.
  absl::Status Run(absl::string_view function, Launch launch,
                   const Event* ready, Event* done, absl::Time deadline);

  // Blocks until everything that was enqueued is done, or has failed.
  absl::Status Await();

  // OK, or why the communicator has ended.
  absl::Status state() const;

  // Ends the communicator with `status`, which is not OK. Does not wait.
  void Abort(const absl::Status& status);

  // As DeviceCommunicator::UseEndWord(). Thread-safe.
  void UseEndWord(std::shared_ptr<Buffer> word);

  // The stream, for work between Run() calls.
  DeviceStream* stream();
  // Keeps `memory`, in place of what was kept, until the stream has ended.
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
