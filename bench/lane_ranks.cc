#include "bench/lane_ranks.h"

#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "bench/measure.h"
#include "common/core/base/check.h"
#include "common/core/system/clock.h"
#include "common/core/tensor/dtype.h"
#include "common/net/collectives/message/lane.h"
#include "common/net/collectives/message/lane_listener.h"
#include "common/net/collectives/message/rpc_lane.h"
#include "common/net/collectives/reduce_op.h"
#include "common/net/collectives/tensor_span.h"
#include "common/net/rpc/certificate_authority.h"
#include "common/net/rpc/channel.h"
#include "common/net/rpc/identity.h"
#include "common/net/rpc/network.h"
#include "common/net/rpc/service.h"
#include "common/net/rpc/tls_context.h"
#include "common/net/rpc/tls_network.h"

namespace muster {
namespace {

constexpr absl::Duration kTimeout = absl::Minutes(1);
constexpr int kWarmUpCount = 3;

absl::Time Deadline() { return Clock::Real()->Now() + kTimeout; }

// The address of a rank.
struct RankAddress {
  std::string address;
  std::string token;
};

std::string FileOf(const LaneRank& rank, int peer) {
  return absl::StrCat(rank.folder, "/rank-", peer);
}

void Publish(const LaneRank& rank, const RankAddress& published) {
  const std::string path = FileOf(rank, rank.rank);
  const std::string unfinished = absl::StrCat(path, ".unfinished");
  std::ofstream(unfinished) << published.address << '\n'
                            << published.token << '\n';
  std::filesystem::rename(unfinished, path);
}

RankAddress Find(const LaneRank& rank, int peer) {
  const absl::Time deadline = Deadline();
  while (!std::filesystem::exists(FileOf(rank, peer))) {
    MUSTER_CHECK(Clock::Real()->Now() < deadline);
    absl::SleepFor(absl::Milliseconds(1));
  }
  std::ifstream file(FileOf(rank, peer));
  RankAddress published;
  std::getline(file, published.address);
  std::getline(file, published.token);
  return published;
}

// The objects that a rank needs while it runs.
struct RankResources {
  std::unique_ptr<LaneListener> listener;
  TaskIdentity identity;
  std::unique_ptr<AdmissionCheck> admission_check;
  std::unique_ptr<Network> tls_network;
  Service service;
  RpcLaneAcceptor acceptor;
  std::unique_ptr<Server> server;
  std::vector<std::unique_ptr<Channel>> channels;
};

std::vector<std::unique_ptr<Lane>> ConnectRaw(const LaneRank& rank,
                                              RankResources* resources) {
  resources->listener = rank.lanes == "unix"
                            ? *LaneListener::ListenUnix()
                            : *LaneListener::ListenTcp(
                                  rank.host, {.encrypts = rank.lanes == "tls"});
  Publish(rank, {resources->listener->address(), resources->listener->token()});
  std::vector<std::unique_ptr<Lane>> lanes(rank.size);
  for (int peer = 0; peer < rank.rank; ++peer) {
    const RankAddress published = Find(rank, peer);
    lanes[peer] = *ConnectLane(published.address, published.token, rank.rank, 1,
                               Deadline());
  }
  std::vector<int> higher;
  for (int peer = rank.rank + 1; peer < rank.size; ++peer) {
    higher.push_back(peer);
  }
  auto accepted = *resources->listener->Accept(higher, 1, Deadline());
  for (auto& [peer, lane] : accepted) lanes[peer] = std::move(lane);
  return lanes;
}

std::vector<std::unique_ptr<Lane>> ConnectRpc(const LaneRank& rank,
                                              RankResources* resources) {
  Network* network = Network::Grpc();
  if (rank.lanes == "grpc-tls") {
    resources->tls_network = MakeTlsNetwork(
        *TlsContext::Load(TlsFilesIn(rank.folder, "worker", rank.rank)));
    network = resources->tls_network.get();
  }
  resources->identity = {"worker", rank.rank, 1};
  resources->admission_check =
      std::make_unique<AdmissionCheck>(resources->identity);
  resources->acceptor.AddTo(&resources->service);
  resources->server =
      *network->Listen({.address = absl::StrCat(rank.host, ":0")},
                       &resources->service, resources->admission_check.get());
  Publish(rank, {resources->server->address(), ""});
  std::vector<std::unique_ptr<Lane>> lanes(rank.size);
  for (int peer = 0; peer < rank.rank; ++peer) {
    ChannelOptions options;
    options.address = Find(rank, peer).address;
    options.peer_task_type = "worker";
    options.peer_task_index = peer;
    options.caller = resources->identity;
    resources->channels.push_back(network->Connect(options));
    lanes[peer] = *OpenRpcLane(resources->channels.back().get(), rank.rank, 1,
                               Deadline());
  }
  for (int peer = rank.rank + 1; peer < rank.size; ++peer) {
    lanes[peer] = *resources->acceptor.Accept(peer, 1, Deadline());
  }
  return lanes;
}

}  // namespace

void PinToProcessor(int rank) {
  cpu_set_t processors;
  CPU_ZERO(&processors);
  CPU_SET(rank % sysconf(_SC_NPROCESSORS_ONLN), &processors);
  MUSTER_CHECK(sched_setaffinity(0, sizeof(processors), &processors) == 0);
}

void RunLaneRank(const LaneRank& rank, AlgorithmChoice choose,
                 const std::function<void(Communicator&)>& body) {
  const bool is_rpc = absl::StartsWith(rank.lanes, "grpc");
  if (!is_rpc) PinToProcessor(rank.rank);
  RankResources resources;
  auto lanes =
      is_rpc ? ConnectRpc(rank, &resources) : ConnectRaw(rank, &resources);
  PinToProcessor(rank.rank);
  const auto communicator = *MakeMessageCommunicator(
      {rank.rank, 1, std::move(lanes), {}}, std::move(choose));
  body(*communicator);
  // No rank may exit while another waits for its message.
  MUSTER_CHECK(communicator->Barrier({"end", kTimeout}).ok());
}

void ForkLaneRanks(absl::string_view lanes, int size, AlgorithmChoice choose,
                   const std::function<void(Communicator&)>& body) {
  std::string folder =
      (std::filesystem::temp_directory_path() / "lane-ranks-XXXXXX").string();
  MUSTER_CHECK(mkdtemp(folder.data()) != nullptr);
  if (lanes == "grpc-tls") {
    const auto authority = *CertificateAuthority::Create(absl::Hours(1));
    for (int rank = 0; rank < size; ++rank) {
      MUSTER_CHECK(
          WriteTaskFiles(*authority, {"bench", "worker", rank}, folder).ok());
    }
  }
  for (int rank = 0; rank < size; ++rank) {
    if (fork() == 0) {
      RunLaneRank({.lanes = std::string(lanes),
                   .rank = rank,
                   .size = size,
                   .folder = folder},
                  choose, body);
      _exit(0);
    }
  }
  bool all_succeeded = true;
  for (int rank = 0; rank < size; ++rank) {
    int status = 0;
    all_succeeded &= wait(&status) > 0 && status == 0;
  }
  std::filesystem::remove_all(folder);
  MUSTER_CHECK(all_succeeded);
}

AllReduceTiming TimeAllReduce(Communicator& communicator, size_t size_bytes,
                              int call_count) {
  const CollectiveCall call{"bench", absl::Minutes(1)};
  const auto memory = *communicator.Allocate(size_bytes, call);
  const TensorSpan buffer{DType::kFloat32,
                          static_cast<int64_t>(size_bytes / sizeof(float)),
                          memory->data()};
  std::vector<double> slowest;
  for (int i = 0; i < call_count + kWarmUpCount; ++i) {
    std::memset(memory->data(), 0, size_bytes);
    MUSTER_CHECK(communicator.Barrier(call).ok());
    const double own = MicrosecondsOf([&] {
      MUSTER_CHECK(communicator.AllReduce(ReduceOp::kSum, buffer, call).ok());
    });
    if (i >= kWarmUpCount) slowest.push_back(own);
  }
  MUSTER_CHECK(communicator
                   .AllReduce(ReduceOp::kMax,
                              {DType::kFloat64, call_count, slowest.data()},
                              call)
                   .ok());
  std::sort(slowest.begin(), slowest.end());
  return {slowest[call_count / 2], slowest[call_count / 4],
          slowest[call_count * 3 / 4], call_count};
}

}  // namespace muster
