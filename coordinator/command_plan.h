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

// With so many closures in the queue, a message is worth sending that would
// otherwise wait until it is fuller.
inline constexpr int kClosuresWorthAMessage = 32;

// A message to a worker, without the closures that it is to run: these are
// encoded without a lock (AddClosures()).
struct PlannedCommand {
  int worker = 0;
  uint64_t session = 0;
  proto::WorkerCommand command;
  std::vector<ClosureQueue::Taken> closures;
  // Closures were taken, and more are queued: for this worker, or for another.
  bool leaves_closures = false;
  // Tells the worker that its part of the job is over.
  bool is_last = false;
};

// What commands are made of. Borrowed.
struct CommandSources {
  const Definitions* definitions = nullptr;
  ClosureQueue* queue = nullptr;
  // False while no worker may start anything.
  bool hands_out_closures = true;
  // Null while the job is not over.
  const proto::JobEnd* job_end = nullptr;
};

// Takes what there is to send to the worker, whose session is open, from the
// queue and from its record. nullopt when there is nothing to send. At a tick
// there always is: the command is the heartbeat, which may be empty.
std::optional<PlannedCommand> PlanCommand(const CommandSources& sources,
                                          const TickLoop::Turn& turn,
                                          WorkerRecord* record);

}  // namespace muster

#endif  // COORDINATOR_COMMAND_PLAN_H_
