#include "common/net/collectives/on_device/staged_communicator.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "common/core/base/status_macros.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/device/device.h"
#include "common/core/device/driver/driver_api.h"
#include "common/core/device/simulated/simulated_driver.h"
#include "common/core/device/stream.h"
#include "common/core/system/clock.h"
#include "common/core/tensor/buffer.h"
#include "common/core/tensor/dtype.h"
#include "common/net/collectives/communicator.h"
#include "common/net/collectives/device_communicator.h"
#include "common/net/collectives/reduce_op.h"
#include "common/net/collectives/shm/shared_memory_group.h"
#include "common/net/collectives/tensor_span.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;

constexpr absl::Duration kTimeout = absl::Seconds(60);
// Not a multiple of a page.
constexpr int64_t kElements = 3001;
constexpr int64_t kChunkElements = kStagedChunkBytes / sizeof(float);
// Two whole chunks and a partial one.
constexpr int64_t kManyElements = 2 * kChunkElements + kElements;

// A communicator of the host that calls an observer before each all-reduce.
class ObservedCommunicator final : public Communicator {
 public:
  using Observer = std::function<absl::Status(TensorSpan, absl::Duration)>;

  ObservedCommunicator(std::unique_ptr<Communicator> inner, Observer observer)
      : inner_(std::move(inner)), observer_(std::move(observer)) {}

  int rank() const override { return inner_->rank(); }
  int size() const override { return inner_->size(); }
  uint64_t generation() const override { return inner_->generation(); }
  std::string transport() const override { return inner_->transport(); }
  absl::StatusOr<std::shared_ptr<Buffer>> Allocate(
      size_t size_bytes, const CollectiveCall& call) override {
    ASSIGN_OR_RETURN(stage_, inner_->Allocate(size_bytes, call));
    return stage_;
  }
  absl::Status AllReduce(ReduceOp op, TensorSpan buffer,
                         const CollectiveCall& call) override {
    RETURN_IF_ERROR(observer_(buffer, call.timeout));
    return inner_->AllReduce(op, buffer, call);
  }
  absl::Status ReduceScatter(ReduceOp op, TensorSpan buffer,
                             const CollectiveCall& call) override {
    return inner_->ReduceScatter(op, buffer, call);
  }
  absl::Status AllGather(TensorSpan input,
                         absl::Span<const int64_t> element_counts,
                         TensorSpan output,
                         const CollectiveCall& call) override {
    return inner_->AllGather(input, element_counts, output, call);
  }
  absl::Status Broadcast(TensorSpan buffer, int root,
                         const CollectiveCall& call) override {
    return inner_->Broadcast(buffer, root, call);
  }
  absl::Status Barrier(const CollectiveCall& call) override {
    return inner_->Barrier(call);
  }
  void Abort(absl::Status status) override { inner_->Abort(std::move(status)); }
  CollectiveProgress Progress() const override { return inner_->Progress(); }

  // The memory that the last Allocate() returned.
  const std::shared_ptr<Buffer>& stage() const { return stage_; }

 private:
  const std::unique_ptr<Communicator> inner_;
  const Observer observer_;
  std::shared_ptr<Buffer> stage_;
};

class StagedCommunicatorTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_OK_AND_ASSIGN(device_,
                         Device::Create(&machine_.driver(),
                                        {.memory = {.limit_bytes = 64 << 20,
                                                    .piece_bytes = 1 << 20}}));
    ASSERT_OK_AND_ASSIGN(stream_, device_->CreateStream());
    ASSERT_OK_AND_ASSIGN(ready_, device_->CreateEvent());
    ASSERT_OK_AND_ASSIGN(done_, device_->CreateEvent());
    ASSERT_OK(Connect(1, HostCalls::kInChunks));
  }

  // Makes a group in which rank 0 is staged. The other ranks are on_cpus_.
  absl::Status Connect(int size, HostCalls host_calls) {
    communicator_ = nullptr;
    ASSIGN_OR_RETURN(auto hosts, CreateLocalGroup(size));
    host_ = std::make_unique<ObservedCommunicator>(
        std::move(hosts[0]), [this](TensorSpan buffer, absl::Duration timeout) {
          calls_.push_back({buffer, timeout, copy_count()});
          return observe_(calls_.size());
        });
    hosts.erase(hosts.begin());
    on_cpus_ = std::move(hosts);
    ASSIGN_OR_RETURN(communicator_,
                     StageOverHost(host_.get(), device_.get(), host_calls));
    return absl::OkStatus();
  }

  int64_t copy_count() const {
    const auto counts = machine_.counts();
    const auto found = counts.find("cuMemcpyAsync");
    return found == counts.end() ? 0 : found->second;
  }

  // Allocates memory on all ranks, as a collective.
  absl::Status Allocate(int64_t element_count) {
    const CollectiveCall call = {"a pack", kTimeout};
    const size_t size_bytes = element_count * sizeof(float);
    std::thread other([&] {
      for (const auto& communicator : on_cpus_) {
        buffer_on_cpu_ = communicator->Allocate(size_bytes, call).value();
      }
    });
    auto pack = communicator_->AllocateOnDevice(size_bytes, call);
    other.join();
    ASSIGN_OR_RETURN(pack_, std::move(pack));
    return absl::OkStatus();
  }

  // All-reduces the pack on the device, after the work on `stream_`.
  absl::Status AllReduce(int64_t element_count) {
    RETURN_IF_ERROR(stream_->Record(ready_.get()));
    RETURN_IF_ERROR(communicator_->StartAllReduce(
        ReduceOp::kSum, {DType::kFloat32, element_count, pack_->data()},
        *ready_, done_.get(), {"a pack", kTimeout}));
    return communicator_->Await();
  }
  absl::Status AllReduceNewPack() {
    RETURN_IF_ERROR(Allocate(kElements));
    RETURN_IF_ERROR(stream_->Fill(pack_->data(), 0, pack_->size_bytes()));
    return AllReduce(kElements);
  }

  absl::Status Write(const std::vector<float>& values) {
    RETURN_IF_ERROR(stream_->Copy(values.data(), pack_->data(),
                                  values.size() * sizeof(float)));
    return Drain();
  }
  absl::StatusOr<std::vector<float>> Read(int64_t element_count) {
    std::vector<float> values(element_count);
    RETURN_IF_ERROR(stream_->Copy(pack_->data(), values.data(),
                                  values.size() * sizeof(float)));
    RETURN_IF_ERROR(Drain());
    return values;
  }
  absl::Status Drain() {
    return stream_->Drain(Clock::Real()->Now() + kTimeout, "a test");
  }

  struct Call {
    TensorSpan buffer;
    absl::Duration timeout;
    int64_t copies_before = 0;  // Copies enqueued before the call.
  };

  SimulatedMachine machine_{{}};
  std::unique_ptr<Device> device_;
  // Called with the number of each all-reduce of the host, from 1. If it
  // returns an error, the all-reduce returns that error.
  std::function<absl::Status(size_t)> observe_ = [](size_t) {
    return absl::OkStatus();
  };
  std::vector<Call> calls_;  // The host's all-reduces.
  std::unique_ptr<ObservedCommunicator> host_;
  std::vector<std::unique_ptr<Communicator>> on_cpus_;
  std::unique_ptr<DeviceStream> stream_;
  std::unique_ptr<DeviceCommunicator> communicator_;
  std::shared_ptr<Buffer> pack_, buffer_on_cpu_;
  std::unique_ptr<Event> ready_, done_;
};

std::vector<float> ManyValues() {
  std::vector<float> values(kManyElements);
  for (int64_t i = 0; i < kManyElements; ++i) values[i] = i % 8191;
  return values;
}

TEST_F(StagedCommunicatorTest, CopiesOfPacksDoNotBlockTheHost) {
  EXPECT_OK(AllReduceNewPack());
  EXPECT_OK(AllReduceNewPack());
  EXPECT_EQ(machine_.pageable_copy_count(), 0);
}

TEST_F(StagedCommunicatorTest, MemoryThatCannotBePinnedIsCopiedAllTheSame) {
  machine_.Fail("cuMemHostRegister_v2", driver::kNotSupported);
  EXPECT_OK(AllReduceNewPack());
  EXPECT_GT(machine_.pageable_copy_count(), 0);
}

// The other rank makes the calls that the staged rank is expected to make.
TEST_F(StagedCommunicatorTest, EachChunkOfALargePackIsReducedAndCopiedBack) {
  ASSERT_OK(Connect(2, HostCalls::kInChunks));
  ASSERT_OK(Allocate(kManyElements));
  std::vector<float> wanted = ManyValues();
  for (int step = 0; step < 2; ++step) {
    ASSERT_OK(Write(ManyValues()));
    const TensorSpan on_cpu{DType::kFloat32, kManyElements,
                            buffer_on_cpu_->data()};
    std::copy_n(wanted.data(), kManyElements,
                reinterpret_cast<float*>(on_cpu.data));
    std::thread other([&] {
      for (int64_t begin = 0; begin < kManyElements; begin += kChunkElements) {
        EXPECT_OK(on_cpus_[0]->AllReduce(
            ReduceOp::kSum,
            on_cpu.Part(begin, std::min(begin + kChunkElements, kManyElements)),
            {"a pack", kTimeout}));
      }
    });
    EXPECT_OK(AllReduce(kManyElements));
    other.join();
    const std::vector<float> values = ManyValues();
    for (int64_t i = 0; i < kManyElements; ++i) wanted[i] += values[i];
    ASSERT_OK_AND_ASSIGN(const std::vector<float> got, Read(kManyElements));
    EXPECT_TRUE(got == wanted) << "step " << step;
  }
}

TEST_F(StagedCommunicatorTest, TheHostReducesChunksBetweenTheirCopies) {
  ASSERT_OK(Allocate(kManyElements));
  ASSERT_OK(stream_->Fill(pack_->data(), 0, pack_->size_bytes()));
  const int64_t before = copy_count();
  ASSERT_OK(AllReduce(kManyElements));
  ASSERT_EQ(calls_.size(), 3);
  const uint8_t* const stage = host_->stage()->data();
  for (int k = 0; k < 3; ++k) {
    EXPECT_EQ(calls_[k].buffer.bytes(), stage + k * kStagedChunkBytes);
    EXPECT_EQ(calls_[k].buffer.element_count,
              k < 2 ? kChunkElements : kElements);
    // All copies to the host, and the copies back of earlier chunks.
    EXPECT_EQ(calls_[k].copies_before - before, 3 + k);
    // The timeout is that of the whole call.
    EXPECT_LT(calls_[k].timeout, k == 0 ? kTimeout : calls_[k - 1].timeout);
  }
  EXPECT_EQ(copy_count() - before, 6);
}

// The order holds even if `ready` does not wait for the `done` of the
// collective before.
TEST_F(StagedCommunicatorTest, CollectivesOfOneBufferFollowEachOther) {
  constexpr int kCalls = 20;
  ASSERT_OK(Connect(2, HostCalls::kInChunks));
  ASSERT_OK(Allocate(kElements));
  ASSERT_OK(Write(std::vector<float>(kElements, 0)));
  ASSERT_OK(stream_->Record(ready_.get()));
  std::thread other([&] {
    const TensorSpan on_cpu{DType::kFloat32, kElements, buffer_on_cpu_->data()};
    for (int call = 0; call < kCalls; ++call) {
      std::fill_n(reinterpret_cast<float*>(on_cpu.data), kElements, 1.0f);
      EXPECT_OK(
          on_cpus_[0]->AllReduce(ReduceOp::kSum, on_cpu, {"a pack", kTimeout}));
    }
  });
  for (int call = 0; call < kCalls; ++call) {
    EXPECT_OK(communicator_->StartAllReduce(
        ReduceOp::kSum, {DType::kFloat32, kElements, pack_->data()}, *ready_,
        done_.get(), {"a pack", kTimeout}));
  }
  other.join();
  ASSERT_OK(communicator_->Await());
  ASSERT_OK_AND_ASSIGN(const bool is_done, done_->IsReached());
  EXPECT_TRUE(is_done);
  ASSERT_OK_AND_ASSIGN(const std::vector<float> got, Read(kElements));
  EXPECT_THAT(got, Each(kCalls));
}

TEST_F(StagedCommunicatorTest, SmallPacksAndThoseBesideCpusAreWhole) {
  ASSERT_OK(AllReduceNewPack());
  ASSERT_OK(Connect(1, HostCalls::kWhole));
  ASSERT_OK(Allocate(kManyElements));
  ASSERT_OK(stream_->Fill(pack_->data(), 0, pack_->size_bytes()));
  ASSERT_OK(AllReduce(kManyElements));
  ASSERT_EQ(calls_.size(), 2);
  EXPECT_EQ(calls_[0].buffer.element_count, kElements);
  EXPECT_EQ(calls_[1].buffer.element_count, kManyElements);
}

TEST_F(StagedCommunicatorTest, RepeatedCallsAllocateNothing) {
  ASSERT_OK(Allocate(kManyElements));
  ASSERT_OK(stream_->Fill(pack_->data(), 0, pack_->size_bytes()));
  ASSERT_OK(AllReduce(kManyElements));
  auto before = machine_.counts();
  ASSERT_OK(AllReduce(kManyElements));
  auto after = machine_.counts();
  for (const char* function :
       {"cuEventCreate", "cuStreamCreateWithPriority", "cuMemCreate",
        "cuMemHostAlloc", "cuMemHostRegister_v2"}) {
    EXPECT_EQ(after[function], before[function]) << function;
  }
}

// The simulated device copies as late as it can.
TEST_F(StagedCommunicatorTest, AfterAnErrorTheDeviceDoesNotUseTheStage) {
  ASSERT_OK(Allocate(kManyElements));
  ASSERT_OK(Write(ManyValues()));
  observe_ = [](size_t call) {
    return call < 2 ? absl::OkStatus() : absl::DataLossError("a lost chunk");
  };
  EXPECT_THAT(AllReduce(kManyElements),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("lost")));
  const std::shared_ptr<Buffer> stage = host_->stage();
  constexpr uint8_t kMark = 0x5a;
  std::fill_n(stage->data(), stage->size_bytes(), kMark);
  // Runs the remaining work of its streams.
  communicator_ = nullptr;
  EXPECT_EQ(
      std::count(stage->data(), stage->data() + stage->size_bytes(), kMark),
      static_cast<int64_t>(stage->size_bytes()));
  ASSERT_OK_AND_ASSIGN(const std::vector<float> got, Read(kManyElements));
  EXPECT_TRUE(got == ManyValues());
}

TEST_F(StagedCommunicatorTest, ADeviceThatDoesNotGetReadyIsNamed) {
  ASSERT_OK(Allocate(kElements));
  ASSERT_OK(stream_->Fill(pack_->data(), 0, pack_->size_bytes()));
  ASSERT_OK(stream_->Record(ready_.get()));
  const absl::Status status = communicator_->StartAllReduce(
      ReduceOp::kSum, {DType::kFloat32, kElements, pack_->data()}, *ready_,
      done_.get(), {"a pack", absl::ZeroDuration()});
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kDeadlineExceeded,
                               HasSubstr("what a pack is computed from")));
  EXPECT_TRUE(calls_.empty());
}

}  // namespace
}  // namespace muster
