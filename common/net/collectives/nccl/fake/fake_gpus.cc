#include "common/net/collectives/nccl/fake/fake_gpus.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/core/base/check.h"
#include "common/core/device/simulated/simulated_streams.h"
#include "common/core/system/clock.h"
#include "common/net/collectives/nccl/local_nccl_group.h"

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
  std::vector<Device*> devices;
  for (int rank = 0; rank < size; ++rank) devices.push_back(device(rank));
  return CreateLocalNcclGroup(&nccl_.api(), devices, kGeneration,
                              Clock::Real()->Now() + timeout);
}

}  // namespace muster
