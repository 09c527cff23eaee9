#ifndef COMMON_NET_COLLECTIVES_NCCL_FAKE_FAKE_NCCL_H_
#define COMMON_NET_COLLECTIVES_NCCL_FAKE_FAKE_NCCL_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "absl/strings/string_view.h"
#include "common/net/collectives/nccl/nccl_api.h"

namespace muster {

// NCCL on simulated GPUs: the functions of the library, between threads of this
// process and processes of this host. Values are really reduced, over shared
// memory, in the order of ranks.
//
// * Collectives are work of a stream: they begin after what was enqueued
//   before, and memory is used until they end.
// * Communicators do not block. Calls answer kInProgress, as NCCL's may, until
//   ncclCommGetAsyncError() was asked a few times.
// * What NCCL leaves undefined is kInvalidUsage: a communicator that is used by
//   a second thread, by a call while another is in progress, or after its end.
// * A collective that fails never ends by itself; ncclCommAbort() ends it.
//
// Simulated GPUs must have simulated::Order::kThreads: work that waits for
// other ranks would otherwise block the thread that polls it.
//
// At most one exists in a process at a time, because the library's functions
// have no argument that tells libraries apart. Thread-safe.
class FakeNccl {
 public:
  struct Options {
    int version = 22809;
    // True if communicators learn that a rank is gone, as over a network whose
    // connection breaks (kRemoteError). Otherwise collectives wait for it.
    bool reports_lost_ranks = true;
  };

  FakeNccl() : FakeNccl(Options()) {}
  explicit FakeNccl(const Options& options);
  // Communicators must have ended.
  ~FakeNccl();
  FakeNccl(const FakeNccl&) = delete;
  FakeNccl& operator=(const FakeNccl&) = delete;

  const nccl::Api& api() const;

  // Makes the `after`-th call of `function` ("ncclAllReduce") from now on
  // return `result` and do nothing.
  void Fail(absl::string_view function, nccl::Result result, int after = 0);

  // Makes the `after`-th collective that is launched from now on in this
  // process stay on its stream until it is aborted. Its communicator reports
  // `error`, or no error for kSuccess: a collective that hangs.
  void FailCollective(nccl::Result error, int after = 0);

  // While it is true, communicators that are made stay in progress.
  void set_stalls_init(bool stalls);

  // While it is true, ncclCommAbort() does not return.
  void set_stalls_aborts(bool stalls);

  // The number of calls so far by function.
  std::map<std::string, int64_t> counts() const;

  class State;

 private:
  const std::unique_ptr<State> state_;
};

}  // namespace muster

#endif  // COMMON_NET_COLLECTIVES_NCCL_FAKE_FAKE_NCCL_H_
