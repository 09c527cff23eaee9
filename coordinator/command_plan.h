#ifndef COORDINATOR_COMMAND_PLAN_H_
#define COORDINATOR_COMMAND_PLAN_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "common/net/rpc/tick_loop.h"
#include "coordinator/closure_queue.h"
#include "coordinator/definitions.h"
#include "coordinator/worker_record.h"
#include "proto/worker.pb.h"

namespace muster {

// If this many closures are queued, a message is sent even to a worker that is
// busy enough to wait for a fuller one.
inline constexpr int kClosuresWorthAMessage = 32;

// A message to a worker, without its closures, which are encoded later without
// a lock (AddClosures()).
struct PlannedCommand {
  int worker = 0;
  uint64_t session = 0;
  proto::WorkerCommand command;
  std::vector<ClosureQueue::Taken> closures;
  // True if closures were taken and more are queued, for this worker or for
  // another one.
  bool leaves_closures = false;
  // True if the message tells the worker that its part of the job has ended.
  bool is_last = false;
};

// The inputs of PlanCommand(). Borrowed.
struct CommandSources {
  const Definitions* definitions = nullptr;
  ClosureQueue* queue = nullptr;
  // False while no worker may start closures.
  bool hands_out_closures = true;
  // Null until the job ends.
  const proto::JobEnd* job_end = nullptr;
};

// Returns the next message to a worker whose session is open. Takes its
// contents from the queue and from `record`. Returns nullopt if there is
// nothing to send. At a tick there always is a message: it is the heartbeat and
// may be empty.
std::optional<PlannedCommand> PlanCommand(const CommandSources& sources,
                                          const TickLoop::Turn& turn,
                                          WorkerRecord* record);

}  // namespace muster

#endif  // COORDINATOR_COMMAND_PLAN_H_
