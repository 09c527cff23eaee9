// Runs the suite over every transport. Ranks connect as tasks do: each rank is
// a task with its own server. All tasks are in this process.
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/core/base/status_macros.h"
#include "common/core/system/clock.h"
#include "common/net/collectives/conformance/backend.h"
#include "common/net/collectives/nccl/fake/fake_gpus.h"
#include "common/net/collectives/peers/group_communicator.h"
#include "common/net/collectives/transports/group_plan.h"
#include "common/net/collectives/transports/group_transport.h"
#include "common/net/collectives/transports/transport.h"
#include "common/net/collectives/transports/transports.h"
#include "common/net/collectives/transports/two_level_transport.h"
#include "common/net/rpc/identity.h"
#include "common/net/rpc/network.h"
#include "common/net/rpc/service.h"
#include "gtest/gtest.h"
#include "proto/peer_group.pb.h"

namespace muster {
namespace {

// Groups are small because each rank has a server with its own threads.
constexpr int kSizeMax = 5;

// How the ranks are placed on made-up hosts.
struct Placement {
  const char* name;  // Ends the name of the backend.
  int ranks_per_host;
};
constexpr Placement kPlacements[] = {
    {"OnOneHost", kSizeMax}, {"OnHostsOfTwo", 2}, {"OnHostsOfOne", 1}};

struct TransportCase {
  const Transport* transport;
  Placement placement;
};

std::string HostOf(const TransportCase& tried, int rank) {
  return absl::StrCat("host", rank / tried.placement.ranks_per_host);
}

// Each rank has a simulated GPU.
TransportSettings SettingsOf(const TransportCase& tried, int rank) {
  static auto* const gpus = new FakeGpus(kSizeMax);
  return {.host = HostOf(tried, rank),
          .devices = {gpus->device(rank)},
          .nccl = &gpus->nccl().api()};
}

struct Task {
  Task(const TransportCase& tried, int rank)
      : identity{"worker", rank, static_cast<uint64_t>(1000 + rank)},
        admission_check(identity),
        transport(identity, Network::Grpc(), SettingsOf(tried, rank)) {
    transport.AddTo(&service);
  }
  // Shuts down as tasks do: streams that their peers have closed may finish.
  ~Task() {
    if (server != nullptr) server->Shutdown(absl::Milliseconds(500));
  }

  const TaskIdentity identity;
  AdmissionCheck admission_check;
  Service service;
  GroupTransport transport;
  std::unique_ptr<Server> server;
};

using Tasks = std::vector<std::unique_ptr<Task>>;

absl::StatusOr<std::shared_ptr<Tasks>> StartTasks(const TransportCase& tried,
                                                  int size) {
  auto tasks = std::make_shared<Tasks>();
  for (int rank = 0; rank < size; ++rank) {
    Task& task = *tasks->emplace_back(std::make_unique<Task>(tried, rank));
    ASSIGN_OR_RETURN(task.server, Network::Grpc()->Listen(
                                      {.address = "127.0.0.1:0"}, &task.service,
                                      &task.admission_check));
  }
  return tasks;
}

GroupPlan PlanOf(const TransportCase& tried, const Tasks& tasks) {
  GroupPlan plan;
  plan.generation = 5;
  plan.token = 0x7465737473;
  plan.transport = tried.transport;
  for (size_t rank = 0; rank < tasks.size(); ++rank) {
    plan.members.push_back({.identity = tasks[rank]->identity,
                            .address = tasks[rank]->server->address(),
                            .host = HostOf(tried, static_cast<int>(rank))});
  }
  return plan;
}

absl::StatusOr<RankGroup> MakeGroup(const TransportCase& tried, int size) {
  ASSIGN_OR_RETURN(const std::shared_ptr<Tasks> tasks, StartTasks(tried, size));
  GroupPlan plan = PlanOf(tried, *tasks);
  std::vector<proto::ReplicaEndpoint> endpoints;
  for (int rank = 0; rank < size; ++rank) {
    plan.self = rank;
    ASSIGN_OR_RETURN(const auto own, (*tasks)[rank]->transport.Prepare(plan));
    endpoints.insert(endpoints.end(), own.begin(), own.end());
  }
  const absl::Time deadline = Clock::Real()->Now() + absl::Seconds(60);
  return MakeRanks(
      size, [&](int rank) -> absl::StatusOr<std::unique_ptr<Communicator>> {
        ASSIGN_OR_RETURN(auto communicators, (*tasks)[rank]->transport.Connect(
                                                 endpoints, deadline));
        // Keeps the tasks alive, because communicators need the servers of all
        // tasks.
        return std::make_unique<GroupCommunicator>(
            std::move(communicators[0]),
            [tasks](absl::string_view, const CollectiveProgress&,
                    const absl::Status& status) { return status; });
      });
}

bool Fits(const TransportCase& tried) {
  std::vector<proto::TransportOffer> offers(kSizeMax);
  std::vector<RankOffer> by_rank;
  for (int rank = 0; rank < kSizeMax; ++rank) {
    offers[rank] = OfferTransports(SettingsOf(tried, rank));
    by_rank.push_back({rank, &offers[rank]});
  }
  return tried.transport->Fit(by_rank).fits;
}

// A transport is tried on every placement that it fits.
std::vector<TransportCase> CasesOf(const Transport& transport) {
  std::vector<TransportCase> cases;
  for (const Placement& placement : kPlacements) {
    const TransportCase tried = {&transport, placement};
    if (Fits(tried)) cases.push_back(tried);
  }
  return cases;
}

// "raw sockets" on one host is "RawSocketsOnOneHost".
std::string BackendName(const TransportCase& tried) {
  std::string name;
  bool begins_word = true;
  for (const char c : tried.transport->name()) {
    if (absl::ascii_isalnum(c)) {
      name += begins_word ? absl::ascii_toupper(c) : c;
    }
    begins_word = !absl::ascii_isalnum(c);
  }
  return name + tried.placement.name;
}

std::vector<BackendRegistration> RegisterAll() {
  std::vector<BackendRegistration> registrations;
  for (const Transport* const transport : kTransports) {
    const bool is_composed =
        dynamic_cast<const TwoLevelTransport*>(transport) != nullptr;
    for (const TransportCase& tried : CasesOf(*transport)) {
      registrations.emplace_back(CommunicatorBackend{
          .name = BackendName(tried),
          .make = [tried](int size) { return MakeGroup(tried, size); },
          .size_max = kSizeMax,
          .learns_of_all_failures = !is_composed,
          .numbers_ranks_of_group = !is_composed});
    }
  }
  return registrations;
}

const std::vector<BackendRegistration> kRegistrations = RegisterAll();

TEST(TransportConformanceTest, EveryTransportIsTried) {
  for (const Transport* const transport : kTransports) {
    EXPECT_FALSE(CasesOf(*transport).empty())
        << "\"" << transport->name()
        << "\" is in kTransports, but fits no placement of kPlacements in "
        << __FILE__;
  }
}

}  // namespace
}  // namespace muster
