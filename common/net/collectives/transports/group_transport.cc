#include "common/net/collectives/transports/group_transport.h"

#include <numeric>
#include <thread>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/core/base/status_macros.h"
#include "common/net/collectives/communication_implementation.h"
#include "common/net/collectives/shm/shared_memory_group.h"
#include "common/net/rpc/fault_point.h"
#include "proto/peer_group.pb.h"

namespace muster {
namespace {

// True if the replicas are threads of one process, which need no transport on
// CPUs.
bool IsWithinProcess(const GroupPlan& plan) {
  return plan.members.size() == 1 &&
         plan.transport->implementation() == CommunicationImplementation::kRing;
}

}  // namespace

GroupTransport::GroupTransport(TaskIdentity self, Network* network,
                               TransportSettings settings)
    : context_{std::move(self), network, &rpc_lanes_, std::move(settings)} {}

GroupTransport::~GroupTransport() = default;

void GroupTransport::AddTo(Service* service) { rpc_lanes_.AddTo(service); }

absl::StatusOr<std::vector<proto::ReplicaEndpoint>> GroupTransport::Prepare(
    const GroupPlan& plan) {
  RETURN_IF_ERROR(FaultPoint("peers.prepare"));
  endpoints_.clear();
  plan_ = plan;
  rpc_lanes_.StartGeneration(plan.generation);
  std::vector<proto::ReplicaEndpoint> described(plan.replicas_per_task);
  if (IsWithinProcess(plan)) return described;
  std::vector<int> all_ranks(plan.rank_count());
  std::iota(all_ranks.begin(), all_ranks.end(), 0);
  for (int i = 0; i < plan.replicas_per_task; ++i) {
    ASSIGN_OR_RETURN(endpoints_.emplace_back(),
                     plan_.transport->Prepare(
                         context_, plan_,
                         {.self = plan.self * plan.replicas_per_task + i,
                          .ranks = all_ranks},
                         &described[i]));
  }
  return described;
}

absl::StatusOr<std::vector<std::unique_ptr<Communicator>>>
GroupTransport::Connect(absl::Span<const proto::ReplicaEndpoint> endpoints,
                        absl::Time deadline) {
  if (static_cast<int>(endpoints.size()) != plan_.rank_count()) {
    return absl::InvalidArgumentError(
        absl::StrCat("a group of ", plan_.rank_count(), " ranks was given ",
                     endpoints.size(), " endpoints"));
  }
  RETURN_IF_ERROR(FaultPoint("peers.connect"));
  if (IsWithinProcess(plan_)) {
    return CreateLocalGroup(plan_.replicas_per_task,
                            {.generation = plan_.generation});
  }
  // Replicas of one process wait for each other, too.
  std::vector<absl::StatusOr<std::unique_ptr<Communicator>>> results(
      endpoints_.size());
  std::vector<std::thread> threads;
  for (size_t i = 0; i < endpoints_.size(); ++i) {
    threads.emplace_back(
        [&, i] { results[i] = endpoints_[i]->Connect(endpoints, deadline); });
  }
  for (std::thread& thread : threads) thread.join();
  std::vector<std::unique_ptr<Communicator>> communicators;
  for (auto& result : results) {
    RETURN_IF_ERROR(result.status());
    communicators.push_back(*std::move(result));
  }
  return communicators;
}

}  // namespace muster
