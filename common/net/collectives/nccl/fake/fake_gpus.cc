#include "common/net/collectives/nccl/fake/fake_gpus.h"

#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/core/base/check.h"
#include "common/core/base/clock.h"
#include "common/core/base/status_macros.h"
#include "common/core/device/simulated/simulated_streams.h"
#include "common/net/collectives/message/memory_lane.h"
#include "common/net/collectives/message/message_communicator.h"
#include "common/net/collectives/nccl/nccl_communicator.h"

namespace muster {
namespace {

constexpr uint64_t kGeneration = 5;
constexpr size_t kMemoryBytes = 64 << 20;

}  // namespace

FakeGpus::FakeGpus(int device_count, const FakeNccl::Options& options)
    : machine_({.device_count = device_count,
                .memory_bytes = kMemoryBytes,
                .order = simulated::Order::kThreads}),
      nccl_(options) {
  for (int i = 0; i < device_count; ++i) {
    absl::StatusOr<std::unique_ptr<Device>> device = Device::Create(
        &machine_.driver(),
        {.name = absl::StrCat("gpu:", i),
         .ordinal = i,
         .memory = {.limit_bytes = kMemoryBytes, .piece_bytes = 1 << 20}});
    MUSTER_CHECK(device.ok());
    devices_.push_back(*std::move(device));
  }
}

absl::StatusOr<std::vector<std::unique_ptr<DeviceCommunicator>>>
FakeGpus::MakeGroup(int size, absl::Duration timeout) {
  nccl::UniqueId id;
  if (nccl_.api().ncclGetUniqueId(&id) != nccl::kSuccess) {
    return absl::InternalError("the fake NCCL has no id");
  }
  const absl::Time deadline = Clock::Real()->Now() + timeout;
  auto lanes = MakeMemoryLanes(size);
  std::vector<absl::StatusOr<std::unique_ptr<DeviceCommunicator>>> made(size);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank] {
      auto control = MakeMessageCommunicator(
          {rank, kGeneration, std::move(lanes[rank]), {}});
      made[rank] = control.ok() ? ConnectNccl(&nccl_.api(),
                                              {.id = id,
                                               .device = device(rank),
                                               .control = *std::move(control)},
                                              deadline)
                                : control.status();
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::vector<std::unique_ptr<DeviceCommunicator>> group;
  for (auto& communicator : made) {
    RETURN_IF_ERROR(communicator.status());
    group.push_back(*std::move(communicator));
  }
  return group;
}

}  // namespace muster
