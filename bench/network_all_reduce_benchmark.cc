// All-reduce with shared memory off: float32 sums over raw TCP, raw Unix and
// gRPC lanes, one process a rank, each pinned to a processor in turn. The
// buffer is rewritten by its owner before each call, as a step would. Reports
// what the slowest rank of a call took, in the median.
//
//   network_all_reduce_benchmark [--lanes=tcp,unix,grpc] [--ranks=2,4]
//                                [--algorithm=direct|ring|...]
#include <sched.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "absl/time/time.h"
#include "bench/measure.h"
#include "common/base/check.h"
#include "common/base/clock.h"
#include "common/collectives/communicator.h"
#include "common/collectives/message/lane_listener.h"
#include "common/collectives/message/message_communicator.h"
#include "common/collectives/message/rpc_lane.h"
#include "common/collectives/message/schedule.h"
#include "common/rpc/channel.h"
#include "common/rpc/identity.h"
#include "common/rpc/network.h"
#include "common/rpc/service.h"

namespace muster {
namespace {

constexpr int kRankCountMax = 16;
constexpr int kTextBytes = 128;

// What the ranks tell each other while they meet, in memory that they share.
struct Board {
  char addresses[kRankCountMax][kTextBytes];
  char tokens[kRankCountMax][kTextBytes];
  std::atomic<int> written_count;
  double microseconds[kRankCountMax];
};

absl::Time Deadline() { return Clock::Real()->Now() + absl::Seconds(60); }

void Publish(Board* board, int rank, int size, const std::string& address,
             const std::string& token) {
  std::snprintf(board->addresses[rank], kTextBytes, "%s", address.c_str());
  std::snprintf(board->tokens[rank], kTextBytes, "%s", token.c_str());
  board->written_count.fetch_add(1);
  while (board->written_count.load() < size) sched_yield();
}

// What a rank of each kind keeps while it runs.
struct Wires {
  std::unique_ptr<LaneListener> listener;
  TaskIdentity identity;
  std::unique_ptr<Door> door;
  Service service;
  RpcLaneAcceptor acceptor;
  std::unique_ptr<Server> server;
  std::vector<std::unique_ptr<Channel>> channels;
};

std::vector<std::unique_ptr<Lane>> MeetRaw(Wires* wires, Board* board,
                                           absl::string_view kind, int rank,
                                           int size) {
  wires->listener = kind == "tcp" ? *LaneListener::ListenTcp("127.0.0.1")
                                  : *LaneListener::ListenUnix();
  Publish(board, rank, size, wires->listener->address(),
          wires->listener->token());
  std::vector<std::unique_ptr<Lane>> lanes(size);
  for (int peer = 0; peer < rank; ++peer) {
    lanes[peer] = *ConnectLane(board->addresses[peer], board->tokens[peer],
                               rank, 1, Deadline());
  }
  std::vector<int> higher;
  for (int peer = rank + 1; peer < size; ++peer) higher.push_back(peer);
  auto accepted = *wires->listener->Accept(higher, 1, Deadline());
  for (auto& [peer, lane] : accepted) lanes[peer] = std::move(lane);
  return lanes;
}

std::vector<std::unique_ptr<Lane>> MeetRpc(Wires* wires, Board* board, int rank,
                                           int size) {
  wires->identity = {"worker", rank, 1};
  wires->door = std::make_unique<Door>(wires->identity);
  wires->acceptor.AddTo(&wires->service);
  wires->server = *Network::Grpc()->Listen({.address = "127.0.0.1:0"},
                                           &wires->service, wires->door.get());
  Publish(board, rank, size, wires->server->address(), "");
  std::vector<std::unique_ptr<Lane>> lanes(size);
  for (int peer = 0; peer < rank; ++peer) {
    ChannelOptions options;
    options.address = board->addresses[peer];
    options.caller = wires->identity;
    wires->channels.push_back(Network::Grpc()->Connect(options));
    lanes[peer] =
        *OpenRpcLane(wires->channels.back().get(), rank, 1, Deadline());
  }
  for (int peer = rank + 1; peer < size; ++peer) {
    lanes[peer] = *wires->acceptor.Accept(peer, 1, Deadline());
  }
  return lanes;
}

struct Setting {
  std::string lanes;
  int size = 2;
  std::string algorithm;
  std::vector<size_t> sizes_bytes;
};

AlgorithmChoice Choice(const std::string& name) {
  for (const Algorithm algorithm :
       {Algorithm::kOneShot, Algorithm::kDirect, Algorithm::kRing,
        Algorithm::kHalvingDoubling}) {
    if (AlgorithmName(algorithm) == name) {
      return [algorithm](int, size_t) { return algorithm; };
    }
  }
  return ChooseAlgorithm;
}

void MeasureSize(Communicator& communicator, Board* board, size_t size_bytes,
                 const Setting& setting) {
  const CollectiveCall call{"bench", absl::Seconds(60)};
  const auto memory = *communicator.Allocate(size_bytes, call);
  const TensorSpan buffer{DType::kFloat32,
                          static_cast<int64_t>(size_bytes / sizeof(float)),
                          memory->data()};
  const int repetitions = static_cast<int>(
      std::clamp<size_t>((size_t{256} << 20) / size_bytes, 7, 400));
  std::vector<double> slowest;
  for (int i = 0; i < repetitions + 3; ++i) {
    std::memset(memory->data(), 0, size_bytes);
    MUSTER_CHECK(communicator.Barrier(call).ok());
    const double own = MicrosecondsOf([&] {
      MUSTER_CHECK(communicator.AllReduce(ReduceOp::kSum, buffer, call).ok());
    });
    board->microseconds[communicator.rank()] = own;
    MUSTER_CHECK(communicator.Barrier(call).ok());
    const double* const times = board->microseconds;
    if (i >= 3)
      slowest.push_back(*std::max_element(times, times + setting.size));
  }
  if (communicator.rank() != 0) return;
  const double median = Median(slowest);
  std::printf("%-5s %d ranks %10zu bytes %12.1f us %8.2f GB/s\n",
              setting.lanes.c_str(), setting.size, size_bytes, median,
              size_bytes / median / 1e3);
  std::fflush(stdout);
}

void RunRank(Board* board, int rank, const Setting& setting) {
  cpu_set_t processors;
  CPU_ZERO(&processors);
  CPU_SET(rank % sysconf(_SC_NPROCESSORS_ONLN), &processors);
  // gRPC's threads may go where they like.
  if (setting.lanes != "grpc") {
    sched_setaffinity(0, sizeof(processors), &processors);
  }
  Wires wires;
  auto lanes = setting.lanes == "grpc"
                   ? MeetRpc(&wires, board, rank, setting.size)
                   : MeetRaw(&wires, board, setting.lanes, rank, setting.size);
  sched_setaffinity(0, sizeof(processors), &processors);
  auto communicator = *MakeMessageCommunicator({rank, 1, std::move(lanes), {}},
                                               Choice(setting.algorithm));
  for (const size_t size_bytes : setting.sizes_bytes) {
    MeasureSize(*communicator, board, size_bytes, setting);
  }
}

void RunSetting(const Setting& setting) {
  auto* const board =
      static_cast<Board*>(mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE,
                               MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  MUSTER_CHECK(board != MAP_FAILED);
  for (int rank = 0; rank < setting.size; ++rank) {
    if (fork() == 0) {
      RunRank(board, rank, setting);
      _exit(0);
    }
  }
  for (int rank = 0; rank < setting.size; ++rank) wait(nullptr);
  munmap(board, sizeof(Board));
}

std::string FlagOf(int argc, char** argv, absl::string_view name,
                   absl::string_view otherwise) {
  for (int i = 1; i < argc; ++i) {
    absl::string_view argument = argv[i];
    if (absl::ConsumePrefix(&argument, name)) return std::string(argument);
  }
  return std::string(otherwise);
}

int Main(int argc, char** argv) {
  const std::string lanes = FlagOf(argc, argv, "--lanes=", "tcp,unix,grpc");
  const std::string ranks = FlagOf(argc, argv, "--ranks=", "2,4");
  const std::string sizes =
      FlagOf(argc, argv, "--sizes=", "1024,65536,1048576,16777216,67108864");
  for (const absl::string_view size_text : absl::StrSplit(ranks, ',')) {
    for (const absl::string_view kind : absl::StrSplit(lanes, ',')) {
      Setting setting;
      setting.lanes = std::string(kind);
      setting.algorithm = FlagOf(argc, argv, "--algorithm=", "");
      MUSTER_CHECK(absl::SimpleAtoi(size_text, &setting.size));
      for (const absl::string_view text : absl::StrSplit(sizes, ',')) {
        MUSTER_CHECK(
            absl::SimpleAtoi(text, &setting.sizes_bytes.emplace_back()));
      }
      RunSetting(setting);
    }
  }
  return 0;
}

}  // namespace
}  // namespace muster

int main(int argc, char** argv) { return muster::Main(argc, argv); }
