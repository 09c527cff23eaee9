#ifndef COORDINATOR_WORKER_LANE_H_
#define COORDINATOR_WORKER_LANE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "common/net/rpc/channel.h"
#include "common/net/rpc/message.h"
#include "common/net/rpc/service.h"
#include "coordinator/closure_queue.h"
#include "proto/worker.pb.h"

namespace muster {

// A step function as workers are told of it. Its id is its position.
struct FunctionRecord {
  uint64_t fingerprint = 0;
  std::string serialized_graph;
  std::string name;
};

// An input pipeline as workers are told of it: one definition for all, or one
// for each. Its id is its position.
struct IteratorRecord {
  std::vector<std::string> serialized_datasets;
  std::vector<proto::IteratorDefinition> contexts;  // By worker; no dataset.
};

// What the coordinator knows about its conversation with one worker. A session
// dies with its stream; the next one starts from nothing, so functions and
// iterators are told again, in the message that first needs them.
//
// Plain state: the dispatcher guards it and does what has to be done.
struct WorkerLane {
  enum class State {
    kClosed,   // To be opened at next_open_time.
    kOpening,  // The opening is on its way.
    kOpen,     // The worker takes closures.
    kEnded,    // The worker knows that the job is over.
  };

  int worker = 0;
  std::unique_ptr<Channel> channel;  // Thread-safe, constant.

  State state = State::kClosed;
  // Tells this session's messages from those of an earlier one.
  uint64_t session = 0;
  std::shared_ptr<Stream> stream;  // Null until the transport has given it.
  // Of the session before, until this one stands; null otherwise.
  std::shared_ptr<Stream> replaced_stream;
  bool accepted = false;  // The worker has said yes.
  absl::Time next_open_time = absl::InfinitePast();
  absl::Time opening_deadline;
  int failed_open_count = 0;
  int silent_ticks = 0;

  uint64_t incarnation = 0;  // 0 until first met.
  int sessions_open_count = 0;
  bool is_renewed = false;  // The last session did not end badly.
  std::string last_error;

  // What it cannot reach; empty while it succeeds. It is given nothing until
  // paused_until, longer with each trouble in a row.
  std::string trouble;
  int trouble_count = 0;
  absl::Time paused_until = absl::InfinitePast();
  absl::Time next_trouble_report = absl::InfinitePast();

  // Told in this session.
  size_t functions_told = 0;
  size_t iterators_told = 0;
  uint64_t mark_told = 0;
  absl::flat_hash_set<uint64_t> fingerprints_there;

  // Kept results to be let go of. Of this session.
  std::vector<uint64_t> released;

  // Another session, to be opened; its worker knows nothing.
  void BeginAnew();
};

// Adds the definitions that `lane` has not been told yet.
void AddDefinitions(absl::Span<const FunctionRecord> functions,
                    absl::Span<const IteratorRecord> iterators,
                    WorkerLane* lane, proto::WorkerCommand* command);

// Adds closures; those that differ only in their id travel as one. Tensors go
// to `tensors`.
void AddClosures(absl::Span<const ClosureQueue::Taken> closures, int worker,
                 proto::WorkerCommand* command, std::vector<Tensor>* tensors);

}  // namespace muster

#endif  // COORDINATOR_WORKER_LANE_H_
