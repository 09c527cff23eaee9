// All-reduce between processes of one host: latency and bus bandwidth by size,
// for registered and plain memory. peers/all_reduce_peers.py compares it with
// OpenMPI and gloo.

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "bench/all_reduce_protocol.h"
#include "common/core/base/check.h"
#include "common/core/tensor/buffer.h"
#include "common/core/tensor/dtype.h"
#include "common/net/collectives/communicator.h"
#include "common/net/collectives/reduce_op.h"
#include "common/net/collectives/shm/group_options.h"
#include "common/net/collectives/shm/testing/ranks.h"

ABSL_FLAG(int, ranks, 2, "Number of processes.");
ABSL_FLAG(int64_t, min_bytes, 1024, "Size of the smallest buffer.");
ABSL_FLAG(int64_t, max_bytes, int64_t{256} << 20,
          "Size of the largest buffer.");
ABSL_FLAG(std::vector<std::string>, memory,
          std::vector<std::string>({"registered", "plain"}),
          "Kinds of memory: registered, plain, and staged (plain without "
          "process_vm_readv).");
ABSL_FLAG(std::vector<std::string>, dtypes,
          std::vector<std::string>({"float32", "bfloat16"}),
          "Element types: float32 and bfloat16.");
ABSL_FLAG(bool, pin, true, "Pins each rank to a processor.");
ABSL_FLAG(uint64_t, one_shot_bytes_max,
          muster::SharedMemoryTuning().one_shot_bytes_max,
          "See SharedMemoryTuning.");
ABSL_FLAG(uint64_t, staged_bytes_max,
          muster::SharedMemoryTuning().staged_bytes_max,
          "See SharedMemoryTuning.");

namespace muster {
namespace {

constexpr CollectiveCall kCall = {.name = "benchmark"};

void MeasureSizes(Communicator& communicator, const std::string& memory,
                  DType dtype) {
  const auto sizes = all_reduce::Sizes(absl::GetFlag(FLAGS_min_bytes),
                                       absl::GetFlag(FLAGS_max_bytes));
  if (sizes.empty()) return;
  const size_t bytes_max = static_cast<size_t>(sizes.back());
  const std::shared_ptr<Buffer> buffer =
      memory == "registered" ? *communicator.Allocate(bytes_max, kCall)
                             : Buffer::Allocate(bytes_max);
  const all_reduce::Rank rank = {
      .rank = communicator.rank(),
      .size = communicator.size(),
      .barrier = [&] { MUSTER_CHECK(communicator.Barrier(kCall).ok()); },
      .all_reduce =
          [&](void* data, int64_t count) {
            MUSTER_CHECK(
                communicator
                    .AllReduce(ReduceOp::kSum, {dtype, count, data}, kCall)
                    .ok());
          },
      .maximum =
          [&](double* values, int count) {
            MUSTER_CHECK(communicator
                             .AllReduce(ReduceOp::kMax,
                                        {DType::kFloat64, count, values}, kCall)
                             .ok());
          }};
  for (const int64_t bytes : sizes) {
    all_reduce::Measure(
        rank, absl::StrCat("muster.", memory, ".", DTypeName(dtype)),
        buffer->data(), bytes, static_cast<int64_t>(SizeOf(dtype)));
  }
}

void RunRank(Communicator& communicator) {
  if (absl::GetFlag(FLAGS_pin)) all_reduce::Pin(communicator.rank());
  for (const std::string& memory : absl::GetFlag(FLAGS_memory)) {
    for (const std::string& dtype : absl::GetFlag(FLAGS_dtypes)) {
      MeasureSizes(communicator, memory, *ParseDType(dtype));
    }
  }
}

int Main() {
  SharedMemoryTuning tuning;
  tuning.one_shot_bytes_max =
      static_cast<size_t>(absl::GetFlag(FLAGS_one_shot_bytes_max));
  tuning.staged_bytes_max =
      static_cast<size_t>(absl::GetFlag(FLAGS_staged_bytes_max));
  const int size = absl::GetFlag(FLAGS_ranks);
  ForkedRanks ranks(size, tuning, RunRank);
  for (int rank = 0; rank < size; ++rank) {
    MUSTER_CHECK(ranks.Wait(rank, absl::Minutes(30)) == 0);
  }
  return 0;
}

}  // namespace
}  // namespace muster

int main(int argc, char** argv) {
  absl::ParseCommandLine(argc, argv);
  return muster::Main();
}
