#ifndef COORDINATOR_WORKER_RECORD_H_
#define COORDINATOR_WORKER_RECORD_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/functional/any_invocable.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "common/core/tensor/tensor.h"
#include "coordinator/closure_queue.h"
#include "coordinator/shared_batches.h"

namespace muster {

namespace proto {
class WorkerCommand;
}  // namespace proto

// The coordinator's state of its sessions with one worker. A session ends
// with its stream; the next one starts from nothing, so functions and iterators
// are sent again, in the message that first needs them.
//
// Plain state, of which WorkerSessions has that of all workers.
struct WorkerRecord {
  enum class State {
    kClosed,   // No session.
    kOpening,  // The worker has not accepted the session yet.
    kOpen,     // The worker takes closures.
    kEnded,    // The worker was told that the job is over.
  };

  int worker = 0;
  State state = State::kClosed;
  absl::Time state_since;  // Of whether a session is open.
  int64_t done_count = 0;  // Closures that the worker has finished.
  // The current session of the worker's stream; 0 for none.
  uint64_t session = 0;
  absl::Time opening_deadline;

  // The worker is being drained: it gets no more closures, and is told that the
  // job is over once it holds none. The callbacks wait for the end of its
  // session.
  bool is_leaving = false;
  std::vector<absl::AnyInvocable<void()>> on_left;

  uint64_t incarnation = 0;  // 0 until first met.
  int sessions_open_count = 0;
  bool is_renewed = false;  // The last session did not end badly.
  std::string last_error;
  // It has refused a session, because the tasks disagree about the cluster, and
  // ends by itself.
  bool has_refused = false;

  // The server that the worker cannot reach; empty while it succeeds. It gets
  // nothing until paused_until, which is further away after each trouble in a
  // row.
  std::string trouble;
  int trouble_count = 0;
  absl::Time trouble_since = absl::InfinitePast();
  absl::Time paused_until = absl::InfinitePast();
  absl::Time next_trouble_report = absl::InfinitePast();

  // Sent in this session.
  size_t functions_told = 0;
  size_t iterators_told = 0;
  uint64_t mark_told = 0;
  absl::flat_hash_set<uint64_t> fingerprints_there;

  // Kept results that can no longer be asked for. Of this session.
  std::vector<uint64_t> released;

  // Forgets the session and what belongs to it.
  void BeginAnew();
};

// Adds closures; those that differ only in their id travel as one. Tensors go
// to `tensors`, except for those in `batches` if the worker has that memory.
// `batches` may be null.
void AddClosures(absl::Span<const ClosureQueue::Taken> closures, int worker,
                 const SharedBatches* batches, proto::WorkerCommand* command,
                 std::vector<Tensor>* tensors);

}  // namespace muster

#endif  // COORDINATOR_WORKER_RECORD_H_
