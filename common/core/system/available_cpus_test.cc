#include "common/core/system/available_cpus.h"

#include <sched.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "gtest/gtest.h"

namespace muster {
namespace {

class ControlGroupTest : public testing::Test {
 protected:
  ControlGroupTest() { std::filesystem::remove_all(root_); }

  void Write(const std::string& path, const std::string& text) {
    std::filesystem::create_directories(
        std::filesystem::path(root_ + path).parent_path());
    std::ofstream(root_ + path) << text;
  }

  const std::string root_ = testing::TempDir() + "/available_cpus";
};

TEST_F(ControlGroupTest, TheLowestLimitOfAllLevelsApplies) {
  Write("/proc/self/cgroup", "0::/a/b\n");
  Write("/sys/fs/cgroup/a/cpu.max", "150000 100000\n");
  Write("/sys/fs/cgroup/a/b/cpu.max", "max 100000\n");
  EXPECT_EQ(internal::ControlGroupCpuLimit(root_), 1.5);
  Write("/sys/fs/cgroup/a/b/cpu.max", "50000 100000\n");
  EXPECT_EQ(internal::ControlGroupCpuLimit(root_), 0.5);
}

TEST_F(ControlGroupTest, Version1HasAQuotaAndAPeriod) {
  Write("/proc/self/cgroup",
        "4:memory:/x\n3:cpu,cpuacct:/job\n2:cpuset:/job\n");
  Write("/sys/fs/cgroup/cpu/job/cpu.cfs_quota_us", "300000\n");
  Write("/sys/fs/cgroup/cpu/job/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(internal::ControlGroupCpuLimit(root_), 3);
  Write("/sys/fs/cgroup/cpu/job/cpu.cfs_quota_us", "-1\n");
  EXPECT_TRUE(std::isinf(internal::ControlGroupCpuLimit(root_)));
}

TEST_F(ControlGroupTest, UnknownFormatsLimitNothing) {
  EXPECT_TRUE(std::isinf(internal::ControlGroupCpuLimit(root_)));
  Write("/proc/self/cgroup", "0::/\n");
  for (const char* text : {"", "max 100000", "5", "0 100000", "a b", "1 2 3"}) {
    Write("/sys/fs/cgroup/cpu.max", text);
    EXPECT_TRUE(std::isinf(internal::ControlGroupCpuLimit(root_))) << text;
  }
}

TEST(AvailableCpusTest, TheAffinityMaskCounts) {
  cpu_set_t before;
  ASSERT_EQ(sched_getaffinity(0, sizeof(before), &before), 0);
  EXPECT_GE(AvailableCpus(), 1);
  EXPECT_LE(AvailableCpus(), CPU_COUNT(&before));
  cpu_set_t one;
  CPU_ZERO(&one);
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &before)) {
      CPU_SET(cpu, &one);
      break;
    }
  }
  ASSERT_EQ(sched_setaffinity(0, sizeof(one), &one), 0);
  EXPECT_EQ(AvailableCpus(), 1);
  sched_setaffinity(0, sizeof(before), &before);
}

TEST(AvailableCpusTest, TheSlurmLimitOfATaskApplies) {
  cpu_set_t mask;
  ASSERT_EQ(sched_getaffinity(0, sizeof(mask), &mask), 0);
  unsetenv("SLURM_STEP_ID");
  setenv("SLURM_CPUS_PER_TASK", "1", /*overwrite=*/1);
  const int cpus = AvailableCpus();
  if (CPU_COUNT(&mask) == 1) GTEST_SKIP() << "There is one processor.";
  // Outside of a step, the limit is that of the batch script, which may start
  // several tasks itself. It is ignored.
  EXPECT_GT(cpus, 1);
  setenv("SLURM_STEP_ID", "0", /*overwrite=*/1);
  EXPECT_EQ(AvailableCpus(), 1);
  for (const char* const granted : {"1000000", "", "none", "0", "-1", "nan"}) {
    setenv("SLURM_CPUS_PER_TASK", granted, /*overwrite=*/1);
    EXPECT_EQ(AvailableCpus(), cpus) << granted;
  }
  unsetenv("SLURM_STEP_ID");
  unsetenv("SLURM_CPUS_PER_TASK");
}

}  // namespace
}  // namespace muster
