#include "ps/client/shared_memory_server_transport.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/compute/variables/variable_store.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/system/clock.h"
#include "common/core/tensor/tensor.h"
#include "common/net/rpc/fault_point.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ps/client/remote_variable_store.h"
#include "ps/segment_intake.h"
#include "ps/testing/store_fixture.h"

namespace muster {
namespace {

using ::testing::Each;

// remote_variable_store_test.cc shows that steps give the same results with all
// transports. These tests cover the properties of shared memory.
class SharedMemoryServerTransportTest : public StoreFixture {
 protected:
  SharedMemoryServerTransportTest() : StoreFixture(/*shared_memory=*/true) {}

  SegmentIntake& segments(int server) {
    return servers_[server]->service().segments();
  }
};

constexpr absl::Duration kLong = absl::Seconds(30);

TEST_F(SharedMemoryServerTransportTest,
       ASegmentIsMappedWhileItsClientIsConnected) {
  EXPECT_EQ(segments(0).segment_count(), 1);
  auto other = OpenStore("worker");
  EXPECT_EQ(segments(0).segment_count(), 2);
  EXPECT_EQ(segments(1).segment_count(), 2);
  store_.reset();
  EXPECT_TRUE(segments(0).AwaitSegmentCount(1, kLong));
  other.reset();
  EXPECT_TRUE(segments(0).AwaitSegmentCount(0, kLong));
  EXPECT_TRUE(segments(1).AwaitSegmentCount(0, kLong));
}

TEST_F(SharedMemoryServerTransportTest, ValuesOutliveTheStoreTheyLieIn) {
  const Shape shape({400, 100});
  ASSERT_OK(store_->Create(RandomSpec("x", shape, 1)));
  ASSERT_OK_AND_ASSIGN(const Tensor value, store_->Read("x"));
  const Tensor copy = value.Clone();
  store_.reset();
  EXPECT_TRUE(BitwiseEqual(value, copy));
}

// A value that a step holds does not change when newer values are received.
TEST_F(SharedMemoryServerTransportTest, AHeldValueIsNotWrittenTo) {
  const Shape shape({400, 100});
  ASSERT_OK(store_->Create(Spec("x", DType::kFloat32, shape)));
  std::vector<Tensor> held;
  for (int i = 1; i <= 8; ++i) {
    ASSERT_OK(store_->Assign("x", Tensor::Full(DType::kFloat32, shape, i)));
    ASSERT_OK_AND_ASSIGN(const Tensor value, store_->Read("x"));
    held.push_back(value);
  }
  for (int i = 1; i <= 8; ++i) {
    EXPECT_THAT(held[i - 1].flat<float>(), Each(static_cast<float>(i)));
  }
}

TEST_F(SharedMemoryServerTransportTest, AServerThatDeclinesIsReachedOverGrpc) {
  store_.reset();
  servers_[1] = StartServer(1, 300, "127.0.0.1:0", /*shared_memory=*/false);
  store_ = OpenStore("chief");
  EXPECT_TRUE(segments(0).AwaitSegmentCount(1, kLong));
  EXPECT_EQ(segments(1).segment_count(), 0);
  // One of the two shards is received through shared memory.
  const Shape shape({400, 100});
  ASSERT_OK(store_->Create(Spec("x", DType::kFloat32, shape)));
  ASSERT_OK(store_->Assign("x", Tensor::Full(DType::kFloat32, shape, 3)));
  ASSERT_OK_AND_ASSIGN(const Tensor value, store_->Read("x"));
  EXPECT_THAT(value.flat<float>(), Each(3.0f));
}

TEST_F(SharedMemoryServerTransportTest,
       AServerThatHasLostASegmentIsServedOverGrpc) {
  const Shape shape({400, 100});
  ASSERT_OK(store_->Create(Spec("x", DType::kFloat32, shape)));
  ASSERT_OK_AND_ASSIGN(
      auto session,
      store_->OpenSession(
          {{{.name = "x", .is_read = true, .is_updated = true}}}));
  const Tensor ones = Tensor::Full(DType::kFloat32, shape, 1);
  for (uint64_t step = 1; step <= 6; ++step) {
    if (step == 3) segments(0).End();
    if (step == 5) segments(1).End();
    ASSERT_OK(session->Begin(step));
    ASSERT_OK(session->Update(0, UpdateKind::kAssignAdd, ones, Tensor()));
    ASSERT_OK(session->Commit());
  }
  EXPECT_TRUE(segments(0).AwaitSegmentCount(0, kLong));
  ASSERT_OK_AND_ASSIGN(const Tensor value, store_->Read("x"));
  EXPECT_THAT(value.flat<float>(), Each(6.0f));
}

TEST_F(SharedMemoryServerTransportTest, AFullSegmentFallsBackToGrpc) {
  shared_memory_bytes_max_ = 300'000;
  store_ = OpenStore("chief");
  const Shape shape({400, 100});
  std::vector<VariableUse> uses;
  for (int i = 0; i < 5; ++i) {
    uses.push_back(
        {.name = absl::StrCat("v", i), .is_read = true, .is_updated = true});
    ASSERT_OK(store_->Create(Spec(uses[i].name, DType::kFloat32, shape)));
  }
  ASSERT_OK_AND_ASSIGN(auto session, store_->OpenSession(uses));
  const Tensor ones = Tensor::Full(DType::kFloat32, shape, 1);
  for (uint64_t step = 1; step <= 3; ++step) {
    ASSERT_OK(session->Begin(step));
    for (int i = 0; i < 5; ++i) {
      ASSERT_OK(session->Update(i, UpdateKind::kAssignAdd, ones, Tensor()));
    }
    ASSERT_OK(session->Commit());
  }
  for (const VariableUse& use : uses) {
    ASSERT_OK_AND_ASSIGN(const Tensor value, store_->Read(use.name));
    EXPECT_THAT(value.flat<float>(), Each(3.0f)) << use.name;
  }
}

// A server that is late applies the data that was sent to it, not later
// contents of the same memory. Each step adds to another decimal digit.
TEST_F(SharedMemoryServerTransportTest, MemoryOfALateExchangeIsNotUsedAgain) {
  const Shape shape({400, 100});
  ASSERT_OK(store_->Create(Spec("x", DType::kInt32, shape)));
  auto hasty = OpenStore("worker", absl::ZeroDuration(),
                         /*timeout=*/absl::Milliseconds(200));
  ASSERT_OK_AND_ASSIGN(
      auto session, hasty->OpenSession({{{.name = "x", .is_updated = true}}}));
  // Both shards of the first step are delayed, and the exchange times out.
  SetFaults({{"ps.before_apply", 1, FaultAction::kDelay, absl::Seconds(1)},
             {"ps.before_apply", 2, FaultAction::kDelay, absl::Seconds(1)}});
  int digit = 1;
  for (uint64_t step = 1; step <= 6; ++step, digit *= 10) {
    ASSERT_OK(session->Begin(step));
    ASSERT_OK(session->Update(0, UpdateKind::kAssignAdd,
                              Tensor::Full(DType::kInt32, shape, digit),
                              Tensor()));
    const absl::Status status = session->Commit();
    if (step == 1) {
      EXPECT_THAT(status, StatusIs(absl::StatusCode::kDeadlineExceeded));
    }
  }
  const absl::Time give_up = Clock::Real()->Now() + kLong;
  std::vector<int32_t> values;
  const auto lacks_first = [](int32_t value) { return value % 10 != 1; };
  do {
    ASSERT_OK_AND_ASSIGN(const Tensor value, store_->Read("x"));
    values.assign(value.flat<int32_t>().begin(), value.flat<int32_t>().end());
  } while (std::any_of(values.begin(), values.end(), lacks_first) &&
           Clock::Real()->Now() < give_up);
  for (int32_t value : values) {
    ASSERT_FALSE(lacks_first(value)) << value;
    for (int32_t rest = value; rest > 0; rest /= 10) {
      ASSERT_LE(rest % 10, 1) << value;
    }
  }
}

}  // namespace
}  // namespace muster
