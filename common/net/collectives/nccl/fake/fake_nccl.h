#ifndef COMMON_NET_COLLECTIVES_NCCL_FAKE_FAKE_NCCL_H_
#define COMMON_NET_COLLECTIVES_NCCL_FAKE_FAKE_NCCL_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "absl/strings/string_view.h"
#include "common/net/collectives/nccl/nccl_api.h"

namespace muster {

// NCCL on simulated GPUs: the functions of the library, for ranks that are
// threads of this process or processes of this host. Values are actually
// reduced, over shared memory, in rank order.
//
// * Collectives are work of a stream: they begin after work that was enqueued
//   earlier, and use their memory until they end.
// * Communicators do not block. Calls return kInProgress, as NCCL's may, and
//   ncclCommGetAsyncError() must be called a few times to see the result.
// * Cases that NCCL leaves undefined return kInvalidUsage: a communicator is
//   used by a second thread, while another call is in progress, or after its
//   end.
// * A collective that fails never ends by itself; ncclCommAbort() ends it.
//
// Simulated GPUs must have simulated::Order::kThreads. Otherwise work that
// waits for other ranks would block the thread that polls it.
//
// At most one exists in a process at a time, because the library's functions
// have no argument that identifies the library. Thread-safe.
class FakeNccl {
 public:
  struct Options {
    int version = 22809;
    // True if communicators report a lost rank (kRemoteError), as when a
    // network connection breaks. If false, collectives wait for the lost rank.
    bool reports_lost_ranks = true;
  };

  FakeNccl() : FakeNccl(Options()) {}
  explicit FakeNccl(const Options& options);
  // Communicators must have ended.
  ~FakeNccl();
  FakeNccl(const FakeNccl&) = delete;
  FakeNccl& operator=(const FakeNccl&) = delete;

  const nccl::Api& api() const;

  // Makes one call of `function` ("ncclAllReduce"), after `after` more calls,
  // return `result` and do nothing.
  void Fail(absl::string_view function, nccl::Result result, int after = 0);

  // Makes one collective of this process, after `after` more launches, stay on
  // its stream until it is aborted. Its communicator reports `error`. With
  // kSuccess it reports no error, so that the collective hangs.
  void FailCollective(nccl::Result error, int after = 0);

  // While true, new communicators stay in progress.
  void set_stalls_init(bool stalls);

  // While true, ncclCommAbort() does not return.
  void set_stalls_aborts(bool stalls);

  // The number of calls so far by function.
  std::map<std::string, int64_t> counts() const;

  class State;

 private:
  const std::unique_ptr<State> state_;
};

}  // namespace muster

#endif  // COMMON_NET_COLLECTIVES_NCCL_FAKE_FAKE_NCCL_H_
