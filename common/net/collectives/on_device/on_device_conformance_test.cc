// Runs the suite in memory of simulated GPUs: with one GPU per rank, with GPUs
// that ranks share, and staged over the host.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "common/core/base/status_macros.h"
#include "common/core/device/device.h"
#include "common/core/device/simulated/simulated_driver.h"
#include "common/net/collectives/communicator.h"
#include "common/net/collectives/conformance/backend.h"
#include "common/net/collectives/conformance/run_on_device.h"
#include "common/net/collectives/device_communicator.h"
#include "common/net/collectives/on_device/local_device_group.h"
#include "common/net/collectives/on_device/staged_communicator.h"
#include "common/net/collectives/shm/shared_memory_group.h"

namespace muster {
namespace {

constexpr int kGpus = 5;

// Makes two logical devices for each GPU: GPU i has devices 2 i and 2 i + 1.
std::vector<std::unique_ptr<Device>> MakeDevices() {
  static auto* const machine = new SimulatedMachine({.device_count = kGpus});
  std::vector<std::unique_ptr<Device>> devices;
  for (int i = 0; i < 2 * kGpus; ++i) {
    devices.push_back(
        Device::Create(&machine->driver(), {.name = absl::StrCat("gpu:", i),
                                            .ordinal = i / 2,
                                            .memory = {.limit_bytes = 64 << 20,
                                                       .piece_bytes = 1 << 20}})
            .value());
  }
  return devices;
}

Device* DeviceOf(int index) {
  static auto* const devices =
      new std::vector<std::unique_ptr<Device>>(MakeDevices());
  return (*devices)[index].get();
}

// `step` 2: one GPU per rank. `step` 1: two ranks share a GPU.
absl::StatusOr<RankGroup> MakeLocal(int size, int step,
                                    DeviceReduction reduction) {
  std::vector<Device*> devices;
  for (int i = 0; i < size; ++i) devices.push_back(DeviceOf(i * step));
  ASSIGN_OR_RETURN(auto host, CreateLocalGroup(size));
  ASSIGN_OR_RETURN(auto made,
                   CreateLocalDeviceGroup(devices, std::move(host), reduction));
  RankGroup group;
  for (auto& communicator : made) {
    ASSIGN_OR_RETURN(group.emplace_back(),
                     RunOnDevice(std::move(communicator)));
  }
  return group;
}

// `step` 1: all ranks are staged. `step` 2: every other rank is staged, and the
// rest are on CPUs.
absl::StatusOr<RankGroup> MakeStaged(int size, int step, HostCalls host_calls) {
  ASSIGN_OR_RETURN(auto hosts, CreateLocalGroup(size));
  RankGroup group;
  for (int i = 0; i < size; ++i) {
    if (i % step != 0) {
      group.push_back(std::move(hosts[i]));
      continue;
    }
    ASSIGN_OR_RETURN(auto staged, StageOverHost(hosts[i].get(), DeviceOf(2 * i),
                                                host_calls));
    ASSIGN_OR_RETURN(
        group.emplace_back(),
        RunOnDevice(std::move(staged), /*borrowed=*/std::move(hosts[i])));
  }
  return group;
}

// Some have a `size_max` of 3, because the suite is slow on simulated GPUs.
const BackendRegistration kRegistrations[] = {
    BackendRegistration(
        {"GpuByParts",
         [](int size) { return MakeLocal(size, 2, DeviceReduction::kByParts); },
         kGpus}),
    BackendRegistration(
        {"SharedGpus",
         [](int size) { return MakeLocal(size, 1, DeviceReduction::kByParts); },
         3}),
    BackendRegistration({"ToOneGpu",
                         [](int size) {
                           return MakeLocal(size, 2,
                                            DeviceReduction::kToOneDevice);
                         },
                         3}),
    BackendRegistration({.name = "HierarchyOfGpus",
                         .make =
                             [](int size) {
                               return MakeLocal(size, 2,
                                                DeviceReduction::kHierarchical);
                             },
                         .size_max = kGpus,
                         .scatters_same_bits = false}),
    BackendRegistration(
        {"Staged",
         [](int size) { return MakeStaged(size, 1, HostCalls::kInChunks); },
         3}),
    BackendRegistration(
        {"StagedBesideCpus",
         [](int size) { return MakeStaged(size, 2, HostCalls::kWhole); }, 3}),
};

}  // namespace
}  // namespace muster
