#include "common/net/collectives/on_device/staged_communicator.h"

#include <cstdint>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/core/base/status_macros.h"
#include "common/core/base/status_matchers.h"
#include "common/core/device/device.h"
#include "common/core/device/driver_api.h"
#include "common/core/device/simulated/simulated_driver.h"
#include "common/core/device/stream.h"
#include "common/core/tensor/dtype.h"
#include "common/net/collectives/communicator.h"
#include "common/net/collectives/device_communicator.h"
#include "common/net/collectives/reduce_op.h"
#include "common/net/collectives/shm/shared_memory_group.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

constexpr absl::Duration kTimeout = absl::Seconds(60);
// No multiple of a page.
constexpr int64_t kElements = 3001;

class StagedCommunicatorTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_OK_AND_ASSIGN(device_,
                         Device::Create(&machine_.driver(),
                                        {.memory = {.limit_bytes = 64 << 20,
                                                    .piece_bytes = 1 << 20}}));
    ASSERT_OK_AND_ASSIGN(auto hosts, CreateLocalGroup(1));
    host_ = std::move(hosts[0]);
    ASSERT_OK_AND_ASSIGN(communicator_,
                         StageOverHost(host_.get(), device_.get()));
    ASSERT_OK_AND_ASSIGN(stream_, device_->CreateStream());
    ASSERT_OK_AND_ASSIGN(ready_, device_->CreateEvent());
    ASSERT_OK_AND_ASSIGN(done_, device_->CreateEvent());
  }

  // All-reduces new memory of the device.
  absl::Status AllReduce() {
    const CollectiveCall call = {"a pack", kTimeout};
    ASSIGN_OR_RETURN(const auto pack, communicator_->AllocateOnDevice(
                                          kElements * sizeof(float), call));
    RETURN_IF_ERROR(stream_->Fill(pack->data(), 0, pack->size_bytes()));
    RETURN_IF_ERROR(stream_->Record(ready_.get()));
    RETURN_IF_ERROR(communicator_->StartAllReduce(
        ReduceOp::kSum, {DType::kFloat32, kElements, pack->data()}, *ready_,
        done_.get(), call));
    return communicator_->Await();
  }

  SimulatedMachine machine_{{}};
  std::unique_ptr<Device> device_;
  std::unique_ptr<Communicator> host_;
  std::unique_ptr<DeviceStream> stream_;
  std::unique_ptr<DeviceCommunicator> communicator_;
  std::unique_ptr<Event> ready_, done_;
};

TEST_F(StagedCommunicatorTest, CopiesOfPacksDoNotBlockTheHost) {
  EXPECT_OK(AllReduce());
  EXPECT_OK(AllReduce());
  EXPECT_EQ(machine_.pageable_copy_count(), 0);
}

TEST_F(StagedCommunicatorTest, MemoryThatCannotBePinnedIsCopiedAllTheSame) {
  machine_.Fail("cuMemHostRegister_v2", driver::kNotSupported);
  EXPECT_OK(AllReduce());
  EXPECT_GT(machine_.pageable_copy_count(), 0);
}

}  // namespace
}  // namespace muster
