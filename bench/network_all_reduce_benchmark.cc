// All-reduce without shared memory: float32 sums over raw TCP, raw Unix and
// gRPC lanes, in plaintext and with TLS. There is one process per rank, pinned
// to the processors round robin. The buffer is rewritten before each call, as
// in a training step. The time of a call is that of its slowest rank. Prints
// the median.
//
//   network_all_reduce_benchmark [--lanes=tcp,tls,unix,grpc,grpc-tls]
//                                [--ranks=2,4]
//                                [--algorithm=direct|ring|...]
//
// With --folder, runs one rank of a group, for example in a network namespace.
// All ranks are started with the same folder, which must be empty at first:
//
//   ... --folder=DIR --rank=R --size=N --host=ADDRESS [--lanes=tcp]
//       [--interface=NAME] [--link_megabits=M]
//
// --interface counts the bytes that the interface sends, including headers.
// --link_megabits prints the fractions of the link that the payload and the
// frames use.
//
// --calibrate fits the cost model to this machine instead; see
// calibrate_costs.h.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "bench/calibrate_costs.h"
#include "bench/lane_ranks.h"
#include "common/core/base/check.h"
#include "common/net/collectives/communicator.h"
#include "common/net/collectives/message/message_communicator.h"
#include "common/net/collectives/schedule.h"

ABSL_FLAG(std::vector<std::string>, lanes,
          std::vector<std::string>({"tcp", "tls", "unix", "grpc", "grpc-tls"}),
          "Kinds of lane; with --calibrate also shm.");
ABSL_FLAG(std::vector<std::string>, ranks, std::vector<std::string>({"2", "4"}),
          "Numbers of ranks.");
ABSL_FLAG(std::vector<std::string>, sizes,
          std::vector<std::string>({"1024", "65536", "1048576", "16777216",
                                    "67108864"}),
          "Buffer sizes in bytes.");
ABSL_FLAG(std::string, algorithm, "", "Empty: chosen by the cost model.");
ABSL_FLAG(bool, calibrate, false, "Fits the cost model to this machine.");
ABSL_FLAG(std::string, folder, "",
          "Runs one rank of the group of this folder.");
ABSL_FLAG(int, rank, 0, "With --folder: the rank.");
ABSL_FLAG(int, size, 2, "With --folder: the number of ranks.");
ABSL_FLAG(std::string, host, "127.0.0.1",
          "With --folder: the address at which the rank listens.");
ABSL_FLAG(std::string, interface, "", "Counts the bytes that it sends.");
ABSL_FLAG(int, mtu, 1500, "MTU of the link.");
ABSL_FLAG(double, link_megabits, 0,
          "Bandwidth of the link per second; 0: unknown.");

namespace muster {
namespace {

AlgorithmChoice Choice() {
  const std::string name = absl::GetFlag(FLAGS_algorithm);
  if (name.empty()) return ChooseAlgorithm;
  for (const Algorithm algorithm :
       {Algorithm::kOneShot, Algorithm::kDirect, Algorithm::kRing,
        Algorithm::kHalvingDoubling}) {
    if (AlgorithmName(algorithm) == name) {
      return [algorithm](int, size_t) { return algorithm; };
    }
  }
  MUSTER_CHECK(false && "unknown algorithm");
  return ChooseAlgorithm;
}

std::vector<size_t> Sizes() {
  std::vector<size_t> sizes_bytes;
  for (const std::string& text : absl::GetFlag(FLAGS_sizes)) {
    MUSTER_CHECK(absl::SimpleAtoi(text, &sizes_bytes.emplace_back()));
  }
  return sizes_bytes;
}

int CallCount(size_t size_bytes) {
  return static_cast<int>(
      std::clamp<size_t>((size_t{256} << 20) / size_bytes, 7, 400));
}

// Returns the number of bytes sent by `interface`, as counted by the kernel; 0
// for "".
uint64_t BytesSentBy(absl::string_view interface) {
  if (interface.empty()) return 0;
  std::ifstream file("/proc/self/net/dev");
  for (std::string line; std::getline(file, line);) {
    const std::vector<absl::string_view> words =
        absl::StrSplit(line, absl::ByAnyChar(" :"), absl::SkipEmpty());
    uint64_t sent_bytes = 0;
    if (words.size() > 9 && words[0] == interface &&
        absl::SimpleAtoi(words[9], &sent_bytes)) {
      return sent_bytes;
    }
  }
  MUSTER_CHECK(false && "unknown interface");
  return 0;
}

// The ratio of full Ethernet frames, with headers of IPv4 and of TCP with time
// stamps, to their payload.
double SentPerPayload() {
  const double mtu = absl::GetFlag(FLAGS_mtu);
  return (mtu + 14) / (mtu - 20 - 32);
}

void MeasureHere(Communicator& communicator, absl::string_view lanes) {
  for (const size_t size_bytes : Sizes()) {
    const AllReduceTiming timing =
        TimeAllReduce(communicator, size_bytes, CallCount(size_bytes));
    if (communicator.rank() != 0) continue;
    std::printf("%-5s %d ranks %10zu bytes %12.1f us %8.2f GB/s\n",
                std::string(lanes).c_str(), communicator.size(), size_bytes,
                timing.median_microseconds,
                size_bytes / timing.median_microseconds / 1e3);
    std::fflush(stdout);
  }
}

// Bus bandwidth assumes the bytes that each rank sends in a ring: 2 (N-1)/N of
// the buffer.
void MeasureLink(Communicator& communicator) {
  const std::string interface = absl::GetFlag(FLAGS_interface);
  const double link_megabits = absl::GetFlag(FLAGS_link_megabits);
  const double size = communicator.size();
  if (communicator.rank() == 0) {
    std::printf("%10s %5s %12s %12s %12s %10s %8s %8s\n", "bytes", "calls",
                "median us", "quartiles us", "bus MB/s", "sent/bus", "payload",
                "on wire");
  }
  for (const size_t size_bytes : Sizes()) {
    // A call takes seconds on a slow link, so there are fewer calls.
    const int call_count = std::max(CallCount(size_bytes) / 4, 7);
    const uint64_t before = BytesSentBy(interface);
    const AllReduceTiming timing =
        TimeAllReduce(communicator, size_bytes, call_count);
    const double sent_bytes = BytesSentBy(interface) - before;
    if (communicator.rank() != 0) continue;
    const double bus_bytes = 2 * (size - 1) / size * size_bytes;
    const double bus_megabytes = bus_bytes / timing.median_microseconds;
    // Includes three warm-up calls.
    const double sent_ratio = sent_bytes / (bus_bytes * (call_count + 3));
    std::printf("%10zu %5d %12.1f %5.0f-%-6.0f %12.1f", size_bytes, call_count,
                timing.median_microseconds, timing.lower_quartile_microseconds,
                timing.upper_quartile_microseconds, bus_megabytes);
    if (!interface.empty()) std::printf(" %10.3f", sent_ratio);
    if (link_megabits > 0) {
      const double payload = bus_megabytes * 8 / link_megabits;
      std::printf(" %8.3f %8.3f", payload, payload * SentPerPayload());
    }
    std::printf("\n");
    std::fflush(stdout);
  }
}

int Main() {
  if (absl::GetFlag(FLAGS_calibrate)) {
    CalibrateCosts(absl::GetFlag(FLAGS_lanes), Sizes());
    return 0;
  }
  const std::string folder = absl::GetFlag(FLAGS_folder);
  if (!folder.empty()) {
    RunLaneRank({.lanes = absl::GetFlag(FLAGS_lanes).front(),
                 .rank = absl::GetFlag(FLAGS_rank),
                 .size = absl::GetFlag(FLAGS_size),
                 .host = absl::GetFlag(FLAGS_host),
                 .folder = folder},
                Choice(), MeasureLink);
    return 0;
  }
  for (const std::string& text : absl::GetFlag(FLAGS_ranks)) {
    int size = 0;
    MUSTER_CHECK(absl::SimpleAtoi(text, &size));
    for (const std::string& lanes : absl::GetFlag(FLAGS_lanes)) {
      ForkLaneRanks(lanes, size, Choice(), [&](Communicator& communicator) {
        MeasureHere(communicator, lanes);
      });
    }
  }
  return 0;
}

}  // namespace
}  // namespace muster

int main(int argc, char** argv) {
  absl::ParseCommandLine(argc, argv);
  return muster::Main();
}
