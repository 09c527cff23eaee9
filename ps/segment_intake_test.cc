#include "ps/segment_intake.h"

#include <memory>
#include <string>

#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ps/testing/test_share.h"

namespace muster {
namespace {

using ::testing::HasSubstr;

constexpr size_t kSizeBytes = 1 << 20;

proto::RequestIdentity Caller(const std::string& task, uint64_t incarnation) {
  proto::RequestIdentity identity;
  identity.set_caller_task(task);
  identity.set_caller_incarnation(incarnation);
  return identity;
}

class SegmentIntakeTest : public testing::Test {
 protected:
  explicit SegmentIntakeTest(const SegmentIntake::Options& options = {})
      : intake_(options) {
    intake_.AddTo(&service_);
  }

  TestShare Offer(uint64_t segment_id) {
    return TestShare(service_, caller_, segment_id, kSizeBytes);
  }

  SegmentIntake intake_;
  Service service_;
  const proto::RequestIdentity caller_ = Caller("worker 0", 5);
};

TEST_F(SegmentIntakeTest, ClientAndServerMapTheSameMemory) {
  TestShare share = Offer(77);
  EXPECT_TRUE(share.event().is_shared()) << share.event().why_not();
  EXPECT_EQ(share.event().proof(), TestShare::kProof);
  const ClientMemory memory = intake_.Find(77, caller_);
  ASSERT_NE(memory.data, nullptr);
  EXPECT_EQ(memory.size_bytes, kSizeBytes);
  memory.data[5000] = 1;
  EXPECT_EQ(share.data()[5000], 1);
  share.data()[kSizeBytes - 1] = 2;
  EXPECT_EQ(memory.data[kSizeBytes - 1], 2);
}

TEST_F(SegmentIntakeTest, SegmentIsVisibleOnlyToItsClient) {
  TestShare share = Offer(77);
  EXPECT_EQ(intake_.Find(78, caller_).data, nullptr);
  EXPECT_EQ(intake_.Find(77, Caller("worker 1", 5)).data, nullptr);
  EXPECT_EQ(intake_.Find(77, Caller("worker 0", 6)).data, nullptr);
  TestShare other(service_, Caller("worker 1", 5), 77, kSizeBytes);
  EXPECT_THAT(other.event().why_not(), HasSubstr("is in use"));
  other.End();
  EXPECT_NE(intake_.Find(77, caller_).data, nullptr);
}

TEST_F(SegmentIntakeTest, SegmentIsUnmappedAfterItsClientAndExchangesEnd) {
  TestShare share = Offer(77);
  const ClientMemory memory = intake_.Find(77, caller_);
  share.End();
  EXPECT_EQ(intake_.segment_count(), 0);
  EXPECT_EQ(intake_.Find(77, caller_).data, nullptr);
  memory.data[kSizeBytes - 1] = 1;
  EXPECT_EQ(memory.owner.use_count(), 1);
}

TEST_F(SegmentIntakeTest, DeclinesOffersAfterTheEnd) {
  TestShare share = Offer(77);
  intake_.End();
  TestShare late = Offer(78);
  EXPECT_THAT(late.event().why_not(), HasSubstr("shutting down"));
}

class DecliningIntakeTest : public SegmentIntakeTest {
 protected:
  DecliningIntakeTest() : SegmentIntakeTest({.is_enabled = false}) {}
};

TEST_F(DecliningIntakeTest, GivesTheReason) {
  TestShare share = Offer(77);
  EXPECT_FALSE(share.event().is_shared());
  EXPECT_THAT(share.event().why_not(), HasSubstr("disabled"));
}

class SmallIntakeTest : public SegmentIntakeTest {
 protected:
  SmallIntakeTest()
      : SegmentIntakeTest(
            {.segment_count_max = 1, .segment_bytes_max = kSizeBytes}) {}
};

TEST_F(SmallIntakeTest, EnforcesItsLimits) {
  TestShare large(service_, caller_, 1, 2 * kSizeBytes);
  EXPECT_THAT(large.event().why_not(), HasSubstr("at most 1048576"));
  large.End();
  TestShare first = Offer(2);
  EXPECT_TRUE(first.event().is_shared()) << first.event().why_not();
  TestShare second = Offer(3);
  EXPECT_THAT(second.event().why_not(), HasSubstr("limit of segments"));
  second.End();
  first.End();
  TestShare third = Offer(4);
  EXPECT_TRUE(third.event().is_shared()) << third.event().why_not();
}

}  // namespace
}  // namespace muster
