#include "common/core/base/available_memory.h"

#include <sys/resource.h>

#include <filesystem>
#include <fstream>
#include <limits>
#include <string>

#include "gtest/gtest.h"

namespace muster {
namespace {

class AvailableMemoryTest : public testing::Test {
 protected:
  AvailableMemoryTest()
      : root_(testing::TempDir() + "/" +
              testing::UnitTest::GetInstance()->current_test_info()->name()) {}

  void Write(const std::string& path, const std::string& text) {
    const std::filesystem::path file = root_ + path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }

  const std::string root_;
};

TEST_F(AvailableMemoryTest, TheLeastLimitOfVersionTwoAppliesAtAnyLevel) {
  Write("/proc/self/cgroup", "0::/pod/container\n");
  Write("/sys/fs/cgroup/memory.max", "9000\n");
  Write("/sys/fs/cgroup/pod/memory.max", "500\n");
  Write("/sys/fs/cgroup/pod/container/memory.max", "max\n");
  EXPECT_EQ(internal::ControlGroupMemoryLimitBytes(root_), 500);
}

TEST_F(AvailableMemoryTest, TheMemoryControllerOfVersionOneIsRead) {
  Write("/proc/self/cgroup",
        "5:cpu,cpuacct:/a\n4:hugetlb,memory:/a\n3:memory_other:/b\n");
  Write("/sys/fs/cgroup/memory/a/memory.limit_in_bytes", "536870912\n");
  Write("/sys/fs/cgroup/memory/b/memory.limit_in_bytes", "1\n");
  EXPECT_EQ(internal::ControlGroupMemoryLimitBytes(root_), 512 << 20);
}

TEST_F(AvailableMemoryTest, WithoutControlGroupsThereIsNoLimit) {
  EXPECT_EQ(internal::ControlGroupMemoryLimitBytes(root_),
            std::numeric_limits<size_t>::max());
}

TEST_F(AvailableMemoryTest, TheLimitOfAddressSpaceApplies) {
  const size_t before = AvailableMemoryBytes();
  EXPECT_GT(before, 64u << 20);
  rlimit limit;
  ASSERT_EQ(getrlimit(RLIMIT_AS, &limit), 0);
  const rlimit lower = {before / 2, limit.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_AS, &lower), 0);
  EXPECT_EQ(AvailableMemoryBytes(), before / 2);
  ASSERT_EQ(setrlimit(RLIMIT_AS, &limit), 0);
}

}  // namespace
}  // namespace muster
