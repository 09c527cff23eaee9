#include "common/core/device/device_set.h"

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/device/driver/real_driver.h"
#include "common/core/system/metrics.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::Ge;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::SizeIs;

absl::StatusOr<const driver::DriverApi*> NoDriver() {
  return absl::UnavailableError("no NVIDIA driver");
}

class DeviceSetTest : public ::testing::Test {
 protected:
  DeviceSetTest() { EXPECT_OK(devices_.UseSimulatedDevices(2)); }

  DeviceSet devices_{NoDriver};
};

TEST(DeviceSetWithoutDriverTest, ExplainsWhyThereIsNoGpu) {
  DeviceSet devices(NoDriver);
  const auto says_why =
      StatusIs(absl::StatusCode::kUnavailable, HasSubstr("no NVIDIA driver"));
  EXPECT_THAT(devices.ListPhysicalDevices(), says_why);
  EXPECT_THAT(devices.CountLogicalDevices(), says_why);
  EXPECT_THAT(devices.FindDevice(0), says_why);
  EXPECT_THAT(devices.SetMemoryGrowth(0, true), says_why);
}

TEST(RealDriverTest, IsAvailableOrExplainsWhyNot) {
  const auto driver = RealDriver();
  if (driver.ok()) {
    EXPECT_FALSE((*driver)->is_simulated);
    return;
  }
  EXPECT_THAT(driver, StatusIs(absl::StatusCode::kUnavailable,
                               HasSubstr("libcuda.so.1")));
}

TEST_F(DeviceSetTest, EachPhysicalDeviceIsALogicalOne) {
  EXPECT_THAT(devices_.ListPhysicalDevices(), IsOkAndHolds(SizeIs(2)));
  EXPECT_THAT(devices_.CountLogicalDevices(), IsOkAndHolds(2));
  ASSERT_OK_AND_ASSIGN(Device* const device, devices_.FindDevice(1));
  EXPECT_EQ(device->name(), "gpu:1");
  EXPECT_EQ(device->description().ordinal, 1);
  EXPECT_THAT(devices_.FindDevice(1), IsOkAndHolds(device));
  EXPECT_THAT(devices_.FindDevice(2),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("gpu:2"), HasSubstr("2 GPUs"))));
}

TEST_F(DeviceSetTest, VisibleDevicesKeepTheirOrder) {
  EXPECT_OK(devices_.SetVisibleDevices({1}));
  EXPECT_THAT(devices_.CountLogicalDevices(), IsOkAndHolds(1));
  ASSERT_OK_AND_ASSIGN(Device* const device, devices_.FindDevice(0));
  EXPECT_EQ(device->description().ordinal, 1);
}

TEST_F(DeviceSetTest, LogicalDevicesShareAPhysicalOne) {
  EXPECT_OK(devices_.SetLogicalDevices(
      0, {{.memory_limit_bytes = 4 << 20}, {.memory_limit_bytes = 8 << 20}}));
  EXPECT_THAT(devices_.CountLogicalDevices(), IsOkAndHolds(3));
  ASSERT_OK_AND_ASSIGN(Device* const device, devices_.FindDevice(1));
  EXPECT_EQ(device->description().ordinal, 0);
  ASSERT_OK_AND_ASSIGN(const MemoryReport report, devices_.GetMemoryInfo(1));
  EXPECT_EQ(report.limit_bytes, 8 << 20);
  EXPECT_EQ(report.mapped_bytes, 0);
  EXPECT_OK(device->memory().Allocate(1000, {"block", "a"}));
  EXPECT_OK(devices_.ResetPeakMemory(1));
}

// Returns the values of the gauge `name` by the device in its labels.
std::map<std::string, double> ValuesOf(absl::string_view name) {
  std::map<std::string, double> values;
  for (const MetricFamily& family : ReadMetrics()) {
    if (family.name != name) continue;
    for (const MetricFamily::Sample& sample : family.samples) {
      values[sample.labels.at(0).second] = sample.value;
    }
  }
  return values;
}

TEST_F(DeviceSetTest, MetricsShowTheMemoryOfDevicesInUse) {
  EXPECT_THAT(ValuesOf("muster_gpu_memory_bytes"), IsEmpty());
  ASSERT_OK_AND_ASSIGN(Device* const device, devices_.FindDevice(1));
  {
    ASSERT_OK_AND_ASSIGN(const auto block,
                         device->memory().Allocate(1000, {"block", "a"}));
    EXPECT_THAT(ValuesOf("muster_gpu_memory_bytes"),
                ElementsAre(Pair("gpu:1", Ge(1000))));
  }
  EXPECT_THAT(ValuesOf("muster_gpu_memory_bytes"),
              ElementsAre(Pair("gpu:1", 0)));
  EXPECT_THAT(ValuesOf("muster_gpu_memory_peak_bytes"),
              ElementsAre(Pair("gpu:1", Ge(1000))));
  EXPECT_THAT(ValuesOf("muster_gpu_memory_limit_bytes"),
              ElementsAre(Pair("gpu:1", 1 << 30)));
}

TEST_F(DeviceSetTest, MemoryThatDoesNotGrowIsMappedAtOnce) {
  EXPECT_OK(devices_.SetLogicalDevices(0, {{.memory_limit_bytes = 4 << 20}}));
  EXPECT_OK(devices_.SetMemoryGrowth(0, false));
  ASSERT_OK_AND_ASSIGN(const MemoryReport report, devices_.GetMemoryInfo(0));
  EXPECT_EQ(report.mapped_bytes, 4 << 20);
}

TEST_F(DeviceSetTest, ImpossibleSettingsAreRefused) {
  const auto is_refused = StatusIs(absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(devices_.SetVisibleDevices({2}), is_refused);
  EXPECT_THAT(devices_.SetVisibleDevices({1, 1}), is_refused);
  EXPECT_THAT(devices_.SetMemoryGrowth(-1, true), is_refused);
  EXPECT_THAT(devices_.SetLogicalDevices(0, {}), is_refused);
  EXPECT_THAT(devices_.SetLogicalDevices(0, {{}, {}}), is_refused);
  EXPECT_THAT(
      devices_.SetLogicalDevices(0, {{.memory_limit_bytes = size_t{1} << 40}}),
      is_refused);
  EXPECT_THAT(DeviceSet(NoDriver).UseSimulatedDevices(0), is_refused);
}

TEST_F(DeviceSetTest, SettingsComeBeforeTheFirstUse) {
  EXPECT_OK(devices_.FindDevice(0));
  const auto is_too_late =
      StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("in use"));
  EXPECT_THAT(devices_.SetVisibleDevices({0}), is_too_late);
  EXPECT_THAT(devices_.SetMemoryGrowth(0, false), is_too_late);
  EXPECT_THAT(devices_.SetLogicalDevices(0, {{}}), is_too_late);
  EXPECT_THAT(devices_.UseSimulatedDevices(1), is_too_late);
  EXPECT_THAT(devices_.EnableTensorFloat32(true), is_too_late);
}

TEST_F(DeviceSetTest, DevicesReportWhetherTensorFloat32IsEnabled) {
  ASSERT_OK_AND_ASSIGN(Device* const device, devices_.FindDevice(0));
  EXPECT_FALSE(device->tensor_float_32());
}

TEST_F(DeviceSetTest, StepsAreCapturedUnlessThatIsSwitchedOff) {
  ASSERT_OK_AND_ASSIGN(Device* const used, devices_.FindDevice(0));
  EXPECT_TRUE(used->captures_steps());
  devices_.CaptureSteps(false);
  EXPECT_FALSE(used->captures_steps());
  ASSERT_OK_AND_ASSIGN(Device* const other, devices_.FindDevice(1));
  EXPECT_FALSE(other->captures_steps());
  devices_.CaptureSteps(true);
  EXPECT_TRUE(other->captures_steps());
}

TEST_F(DeviceSetTest, TensorFloat32IsEnabledForAllDevices) {
  EXPECT_OK(devices_.EnableTensorFloat32(true));
  ASSERT_OK_AND_ASSIGN(Device* const device, devices_.FindDevice(1));
  EXPECT_TRUE(device->tensor_float_32());
}

}  // namespace
}  // namespace muster
