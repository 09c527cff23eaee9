#include "common/learn/strategy/logical_devices.h"

#include <string>

#include "absl/status/status.h"
#include "common/core/base/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using ::testing::HasSubstr;

TEST(LogicalDevicesTest, KnowsTensorFlowsSpellings) {
  for (const std::string name : {"cpu:1", "CPU:1", "/cpu:1", "/device:CPU:1"}) {
    ASSERT_OK_AND_ASSIGN(const LogicalDevice device, ParseDevice(name));
    EXPECT_EQ(device.ToString(), "cpu:1");
  }
  ASSERT_OK_AND_ASSIGN(const LogicalDevice device, ParseDevice("cpu"));
  EXPECT_EQ(device.index, 0);
  ASSERT_OK_AND_ASSIGN(const LogicalDevice gpu, ParseDevice("/device:GPU:2"));
  EXPECT_EQ(gpu.ToString(), "gpu:2");
}

TEST(LogicalDevicesTest, RejectsInvalidDevices) {
  for (const std::string name :
       {"", "cpu:", "cpu:-1", "cpu:64", "cpu:x", "cpu:0:1", "disk:0", ":0"}) {
    EXPECT_THAT(ParseDevice(name),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr("expected \"cpu:0\" to \"cpu:63\"")))
        << name;
  }
  EXPECT_THAT(ParseDevice("/tpu:0"), StatusIs(absl::StatusCode::kUnimplemented,
                                              HasSubstr("\"/tpu:0\"")));
}

TEST(LogicalDevicesTest, RejectsEmptyListsAndDuplicates) {
  EXPECT_THAT(ParseDevices({}), StatusIs(absl::StatusCode::kInvalidArgument,
                                         HasSubstr("no devices")));
  EXPECT_THAT(
      ParseDevices({"cpu:1", "/cpu:1"}),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("named twice")));
}

TEST(LogicalDevicesTest, ReplicasShareTheCores) {
  EXPECT_EQ(ThreadsPerReplica(3, 8), 3);
  EXPECT_EQ(ThreadsPerReplica(0, 1000), 1);
  EXPECT_GE(ThreadsPerReplica(0, 1), 1);
}

}  // namespace
}  // namespace muster
