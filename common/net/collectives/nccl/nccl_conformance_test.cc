// Runs the suite over NCCL: with memory of the host, by the functions of
// Communicator, and with memory of the devices, by those of DeviceCommunicator.
#include <memory>
#include <utility>

#include "common/core/base/status_macros.h"
#include "common/net/collectives/conformance/backend.h"
#include "common/net/collectives/conformance/run_on_device.h"
#include "common/net/collectives/nccl/fake/fake_gpus.h"

namespace muster {
namespace {

constexpr int kSizeMax = 5;

FakeGpus& Gpus() {
  static auto* const gpus = new FakeGpus(kSizeMax);
  return *gpus;
}

absl::StatusOr<RankGroup> MakeOnHost(int size) {
  ASSIGN_OR_RETURN(auto made, Gpus().MakeGroup(size));
  RankGroup group;
  for (auto& communicator : made) group.push_back(std::move(communicator));
  return group;
}

absl::StatusOr<RankGroup> MakeOnDevice(int size) {
  ASSIGN_OR_RETURN(auto made, Gpus().MakeGroup(size));
  RankGroup group;
  for (auto& communicator : made) {
    ASSIGN_OR_RETURN(group.emplace_back(),
                     RunOnDevice(std::move(communicator)));
  }
  return group;
}

const BackendRegistration kRegistrations[] = {
    BackendRegistration({.name = "Nccl",
                         .make = MakeOnHost,
                         .size_max = kSizeMax,
                         .scatters_same_bits = false}),
    BackendRegistration({.name = "NcclOnDevice",
                         .make = MakeOnDevice,
                         .size_max = kSizeMax,
                         .scatters_same_bits = false}),
};

}  // namespace
}  // namespace muster
