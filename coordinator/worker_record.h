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

// The coordinator's state of its sessions with one worker. A session ends with
// its stream. The next session begins without functions and iterators, so they
// are sent again, in the message that first needs them.
//
// Plain data; WorkerSessions has a record for each worker.
struct WorkerRecord {
  enum class State {
    kClosed,   // No session.
    kOpening,  // The worker has not accepted the session yet.
    kOpen,     // The worker takes closures.
    kEnded,    // The worker was told that the job has ended.
  };

  int worker = 0;
  State state = State::kClosed;
  absl::Time state_since;  // When a session was opened or lost.
  int64_t done_count = 0;  // Closures that the worker has finished.
  // The current session of the worker's stream; 0 for none.
  uint64_t session = 0;
  absl::Time opening_deadline;

  // True while the worker is being drained: it gets no more closures, and is
  // told that its part of the job has ended once it holds none. The callbacks
  // are called at the end of its session.
  bool is_leaving = false;
  std::vector<absl::AnyInvocable<void()>> on_left;

  uint64_t incarnation = 0;  // 0 before the first session.
  int sessions_open_count = 0;
  bool is_renewed = false;  // The last session was replaced on purpose.
  std::string last_error;
  // True if the worker has refused a session because its cluster configuration
  // differs. Such a worker exits by itself.
  bool has_refused = false;

  // The error of a worker that cannot reach a server; empty while its closures
  // succeed. The worker gets no closures until paused_until. The pause grows
  // with each consecutive error.
  std::string trouble;
  int trouble_count = 0;
  absl::Time trouble_since = absl::InfinitePast();
  absl::Time paused_until = absl::InfinitePast();
  absl::Time next_trouble_report = absl::InfinitePast();

  // Definitions and marks that were sent in this session.
  size_t sent_function_count = 0;
  size_t sent_iterator_count = 0;
  uint64_t sent_low_water_mark = 0;
  absl::flat_hash_set<uint64_t> known_fingerprints;

  // Kept results of this session that no caller can request any longer.
  std::vector<uint64_t> released;

  // Resets the session and everything that belongs to it.
  void ResetSession();
};

// Adds closures to `command`. Consecutive closures that differ only in their id
// are encoded as one run. Appends tensors to `tensors`, except tensors in
// `batches` if the worker has mapped that memory. `batches` may be null.
void AddClosures(absl::Span<const ClosureQueue::Taken> closures, int worker,
                 const SharedBatches* batches, proto::WorkerCommand* command,
                 std::vector<Tensor>* tensors);

}  // namespace muster

#endif  // COORDINATOR_WORKER_RECORD_H_
