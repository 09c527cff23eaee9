#ifndef COMMON_NET_COLLECTIVES_NCCL_FAKE_FAKE_GPUS_H_
#define COMMON_NET_COLLECTIVES_NCCL_FAKE_FAKE_GPUS_H_

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "common/core/device/device.h"
#include "common/core/device/simulated/simulated_driver.h"
#include "common/net/collectives/communicator.h"
#include "common/net/collectives/device_communicator.h"
#include "common/net/collectives/nccl/fake/fake_nccl.h"

namespace muster {

// A process with GPUs and NCCL, both of them simulated. At most one exists at a
// time.
class FakeGpus {
 public:
  explicit FakeGpus(int device_count,
                    const FakeNccl::Options& options = FakeNccl::Options());

  Device* device(int index) { return devices_[index].get(); }
  FakeNccl& nccl() { return nccl_; }

  // As CreateLocalNcclGroup(), on the first `size` devices.
  absl::StatusOr<std::vector<std::unique_ptr<DeviceCommunicator>>> MakeGroup(
      int size, absl::Duration timeout = absl::Seconds(60));

 private:
  SimulatedMachine machine_;
  std::vector<std::unique_ptr<Device>> devices_;
  FakeNccl nccl_;
};

}  // namespace muster

#endif  // COMMON_NET_COLLECTIVES_NCCL_FAKE_FAKE_GPUS_H_
