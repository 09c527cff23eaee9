#include "common/net/collectives/conformance/rpc_lanes.h"

#include <memory>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "common/core/base/clock.h"
#include "common/core/base/status_macros.h"
#include "common/net/collectives/conformance/lane_decorator.h"
#include "common/net/collectives/message/rpc_lane.h"
#include "common/net/rpc/channel.h"
#include "common/net/rpc/identity.h"
#include "common/net/rpc/network.h"
#include "common/net/rpc/service.h"

namespace muster {
namespace {

struct Task {
  explicit Task(int rank)
      : identity{"worker", rank, static_cast<uint64_t>(1000 + rank)},
        admission_check(identity) {
    acceptor.AddTo(&service);
  }

  const TaskIdentity identity;
  AdmissionCheck admission_check;
  Service service;
  RpcLaneAcceptor acceptor;
  std::unique_ptr<Server> server;
  std::vector<std::unique_ptr<Channel>> channels;
};

using Tasks = std::vector<std::unique_ptr<Task>>;

// Bases are destroyed last to first.
struct TasksOwner {
  std::shared_ptr<Tasks> tasks;
};

class OwningLane final : private TasksOwner, public LaneDecorator {
 public:
  OwningLane(std::shared_ptr<Tasks> tasks, std::unique_ptr<Lane> lane)
      : TasksOwner{std::move(tasks)}, LaneDecorator(std::move(lane)) {}
};

}  // namespace

absl::StatusOr<LaneMesh> MakeRpcLanes(int size, uint64_t generation) {
  auto tasks = std::make_shared<Tasks>();
  for (int rank = 0; rank < size; ++rank) {
    Task& task = *tasks->emplace_back(std::make_unique<Task>(rank));
    ASSIGN_OR_RETURN(task.server, Network::Grpc()->Listen(
                                      {.address = "127.0.0.1:0"}, &task.service,
                                      &task.admission_check));
  }
  const absl::Time deadline = Clock::Real()->Now() + absl::Seconds(60);
  LaneMesh lanes(size);
  for (auto& row : lanes) row.resize(size);
  for (int rank = 0; rank < size; ++rank) {
    for (int peer = 0; peer < rank; ++peer) {
      ChannelOptions options;
      options.address = (*tasks)[peer]->server->address();
      options.peer_task_type = "worker";
      options.peer_task_index = peer;
      options.caller = (*tasks)[rank]->identity;
      Channel& channel = *(*tasks)[rank]->channels.emplace_back(
          Network::Grpc()->Connect(options));
      ASSIGN_OR_RETURN(std::unique_ptr<Lane> opened,
                       OpenRpcLane(&channel, rank, generation, deadline));
      ASSIGN_OR_RETURN(
          std::unique_ptr<Lane> accepted,
          (*tasks)[peer]->acceptor.Accept(rank, generation, deadline));
      lanes[rank][peer] =
          std::make_unique<OwningLane>(tasks, std::move(opened));
      lanes[peer][rank] =
          std::make_unique<OwningLane>(tasks, std::move(accepted));
    }
  }
  return lanes;
}

}  // namespace muster
