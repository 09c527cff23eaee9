// All-reduce of 64 MiB between two replicas on logical devices of one GPU: in
// the GPU's memory, and staged in host memory. Prints one JSON object per line.
//
//   bazel run -c opt //bench:gpu_all_reduce_benchmark [-- --simulated]
//
// Budgets: 0.80 of the speed of two copies on the device, which read and write
// the same number of bytes. Staged: 0.80 of the speed of the slowest part of an
// all-reduce, which consists of the copies from and to the GPU and the
// all-reduce of the host.

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "bench/measure.h"
#include "bench/or_die.h"
#include "common/core/device/device.h"
#include "common/core/device/device_set.h"
#include "common/core/device/stream.h"
#include "common/core/system/clock.h"
#include "common/core/tensor/buffer.h"
#include "common/core/tensor/dtype.h"
#include "common/net/collectives/communicator.h"
#include "common/net/collectives/device_communicator.h"
#include "common/net/collectives/on_device/local_device_group.h"
#include "common/net/collectives/on_device/staged_communicator.h"
#include "common/net/collectives/reduce_op.h"
#include "common/net/collectives/shm/shared_memory_group.h"

namespace muster {
namespace {

constexpr int kRanks = 2;
constexpr double kBudget = 0.8;
constexpr absl::Duration kTimeout = absl::Seconds(60);

struct Sizes {
  int64_t size_bytes = 64 << 20;
  int repetitions = 30;
};

// Runs `work` for both ranks, each on its own thread. Returns the median time
// of the slower rank: on one GPU, a rank's work may be done before the work of
// the other begins.
double MicrosOf(const Sizes& sizes, Communicator* barriers[kRanks],
                const std::function<void(int rank)>& work) {
  std::vector<double> micros[kRanks];
  const auto run = [&](int rank) {
    for (int i = 0; i < sizes.repetitions + 3; ++i) {
      OkOrDie(barriers[rank]->Barrier({"a benchmark", kTimeout}));
      const double one = MicrosecondsOf([&] { work(rank); });
      if (i >= 3) micros[rank].push_back(one);
    }
  };
  std::thread other(run, 1);
  run(0);
  other.join();
  std::vector<double> slower;
  for (int i = 0; i < sizes.repetitions; ++i) {
    slower.push_back(std::max(micros[0][i], micros[1][i]));
  }
  return Median(std::move(slower));
}

void Drain(DeviceStream* stream) {
  OkOrDie(stream->Drain(Clock::Real()->Now() + kTimeout, "a benchmark"));
}

// The objects of one rank.
struct Rank {
  Device* device = nullptr;
  std::unique_ptr<DeviceStream> stream;
  std::unique_ptr<Event> ready, done;
  std::shared_ptr<Buffer> buffer, other, pinned;
};

Rank MakeRank(const Sizes& sizes, Device* device) {
  Rank rank{.device = device};
  rank.stream = OrDie(device->CreateStream());
  rank.ready = OrDie(device->CreateEvent());
  rank.done = OrDie(device->CreateEvent());
  for (auto* const buffer : {&rank.buffer, &rank.other}) {
    *buffer =
        OrDie(device->memory().Allocate(sizes.size_bytes, {"pack", "bench"}));
    OkOrDie(rank.stream->Fill((*buffer)->data(), 0, sizes.size_bytes));
  }
  rank.pinned = OrDie(device->pinned_memory().Allocate(sizes.size_bytes));
  Drain(rank.stream.get());
  return rank;
}

TensorSpan SpanOf(const Sizes& sizes, void* data) {
  return {DType::kFloat32, static_cast<int64_t>(sizes.size_bytes / 4), data};
}

double MeasureAllReduce(const Sizes& sizes, std::vector<Rank>* ranks,
                        DeviceCommunicator* communicators[kRanks],
                        const std::vector<void*>& memory) {
  Communicator* barriers[kRanks];
  std::copy_n(communicators, kRanks, barriers);
  return MicrosOf(sizes, barriers, [&](int r) {
    Rank& rank = (*ranks)[r];
    OkOrDie(rank.stream->Record(rank.ready.get()));
    OkOrDie(communicators[r]->StartAllReduce(
        ReduceOp::kSum, SpanOf(sizes, memory[r]), *rank.ready, rank.done.get(),
        {"a pack", kTimeout}));
    OkOrDie(rank.stream->Wait(*rank.done));
    Drain(rank.stream.get());
    OkOrDie(communicators[r]->Await());
  });
}

// Measures copies by both ranks at the same time.
double MeasureCopies(const Sizes& sizes, std::vector<Rank>* ranks,
                     Communicator* barriers[kRanks],
                     std::shared_ptr<Buffer> Rank::*from,
                     std::shared_ptr<Buffer> Rank::*to) {
  return MicrosOf(sizes, barriers, [&](int r) {
    Rank& rank = (*ranks)[r];
    OkOrDie(rank.stream->Copy((rank.*from)->data(), (rank.*to)->data(),
                              sizes.size_bytes));
    Drain(rank.stream.get());
  });
}

void Report(const char* bench, double micros, double limit_micros) {
  std::printf(
      R"({"bench": "%s", "peer": "muster", "unit": "us", "median": %.4g, )"
      R"("limit_us": %.4g, "of_limit": %.3g, "budget": %.3g})"
      "\n",
      bench, micros, limit_micros, limit_micros / micros, kBudget);
  std::fflush(stdout);
}

int Main(bool is_simulated) {
  Sizes sizes;
  DeviceSet& devices = DeviceSet::OfProcess();
  if (is_simulated) {
    sizes = {.size_bytes = 1 << 16, .repetitions = 2};
    OkOrDie(devices.UseSimulatedDevices(1));
  }
  const size_t share_bytes =
      std::max<size_t>(8 * sizes.size_bytes, size_t{64} << 20);
  OkOrDie(devices.SetLogicalDevices(
      0, std::vector<LogicalDeviceOptions>(kRanks, {share_bytes})));
  std::vector<Rank> ranks;
  std::vector<Device*> places;
  for (int r = 0; r < kRanks; ++r) {
    places.push_back(OrDie(devices.FindDevice(r)));
    ranks.push_back(MakeRank(sizes, places.back()));
  }

  const auto local = OrDie(CreateLocalDeviceGroup(
      places, OrDie(CreateLocalGroup(kRanks)), DeviceReduction::kByParts));
  DeviceCommunicator* on_device[kRanks] = {local[0].get(), local[1].get()};
  Communicator* barriers[kRanks] = {local[0].get(), local[1].get()};
  const double copies =
      MeasureCopies(sizes, &ranks, barriers, &Rank::buffer, &Rank::other);
  Report("gpu.all_reduce.one_gpu.64_mib",
         MeasureAllReduce(sizes, &ranks, on_device,
                          {ranks[0].buffer->data(), ranks[1].buffer->data()}),
         copies);

  auto hosts = OrDie(CreateLocalGroup(kRanks));
  Communicator* host_barriers[kRanks] = {hosts[0].get(), hosts[1].get()};
  std::vector<std::shared_ptr<Buffer>> host_memory(kRanks);
  std::vector<std::unique_ptr<DeviceCommunicator>> staged;
  std::vector<std::shared_ptr<Buffer>> packs(kRanks);
  for (int r = 0; r < kRanks; ++r) {
    staged.push_back(
        OrDie(StageOverHost(hosts[r].get(), places[r], HostCalls::kInChunks)));
  }
  // All ranks must call Allocate() at the same time.
  const auto allocate = [&](int r) {
    host_memory[r] =
        OrDie(hosts[r]->Allocate(sizes.size_bytes, {"a pack", kTimeout}));
    packs[r] = OrDie(
        staged[r]->AllocateOnDevice(sizes.size_bytes, {"a pack", kTimeout}));
  };
  std::thread other(allocate, 1);
  allocate(0);
  other.join();
  const double on_host = MicrosOf(sizes, host_barriers, [&](int r) {
    OkOrDie(hosts[r]->AllReduce(ReduceOp::kSum,
                                SpanOf(sizes, host_memory[r]->data()),
                                {"a pack", kTimeout}));
  });
  const double slowest =
      std::max({on_host,
                MeasureCopies(sizes, &ranks, host_barriers, &Rank::buffer,
                              &Rank::pinned),
                MeasureCopies(sizes, &ranks, host_barriers, &Rank::pinned,
                              &Rank::buffer)});
  DeviceCommunicator* over_host[kRanks] = {staged[0].get(), staged[1].get()};
  Report("gpu.all_reduce.staged.64_mib",
         MeasureAllReduce(sizes, &ranks, over_host,
                          {packs[0]->data(), packs[1]->data()}),
         slowest);
  return 0;
}

}  // namespace
}  // namespace muster

int main(int argc, char** argv) {
  return muster::Main(argc > 1 && std::strcmp(argv[1], "--simulated") == 0);
}
