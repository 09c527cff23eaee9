#include <filesystem>
#include <fstream>
#include <limits>
#include <string>

#include "common/core/system/memory_limits.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

class MemoryGroupTest : public testing::Test {
 protected:
  MemoryGroupTest()
      : root_(testing::TempDir() + "/" +
              testing::UnitTest::GetInstance()->current_test_info()->name()) {}

  void Write(const std::string& path, const std::string& text) {
    const std::filesystem::path file = root_ + path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }

  const std::string root_;
};

TEST_F(MemoryGroupTest, TheLeastLimitOfVersionTwoAppliesAtAnyLevel) {
  Write("/proc/self/cgroup", "0::/pod/container\n");
  Write("/sys/fs/cgroup/memory.max", "9000\n");
  Write("/sys/fs/cgroup/pod/memory.max", "500\n");
  Write("/sys/fs/cgroup/pod/container/memory.max", "max\n");
  EXPECT_EQ(MemoryGroup(root_).LimitBytes(), 500);
}

TEST_F(MemoryGroupTest, TheMemoryControllerOfVersionOneIsRead) {
  Write("/proc/self/cgroup",
        "5:cpu,cpuacct:/a\n4:hugetlb,memory:/a\n3:memory_other:/b\n");
  Write("/sys/fs/cgroup/memory/a/memory.limit_in_bytes", "536870912\n");
  Write("/sys/fs/cgroup/memory/b/memory.limit_in_bytes", "1\n");
  EXPECT_EQ(MemoryGroup(root_).LimitBytes(), 512 << 20);
}

TEST_F(MemoryGroupTest, WithoutControlGroupsThereIsNoLimit) {
  EXPECT_EQ(MemoryGroup(root_).name(), "");
  EXPECT_EQ(MemoryGroup(root_).KillCount(), 0);
  EXPECT_EQ(MemoryGroup(root_).LimitBytes(),
            std::numeric_limits<size_t>::max());
}

TEST_F(MemoryGroupTest, KillsAreThoseOfTheInnermostGroup) {
  Write("/proc/self/cgroup", "0::/pod/container\n");
  Write("/sys/fs/cgroup/pod/memory.events", "oom 9\noom_kill 9\n");
  Write("/sys/fs/cgroup/pod/container/memory.events",
        "low 0\nhigh 0\nmax 7\noom 4\noom_kill 3\noom_group_kill 1\n");
  EXPECT_EQ(MemoryGroup(root_).KillCount(), 3);
  EXPECT_EQ(MemoryGroup(root_).name(), "/pod/container");
}

TEST_F(MemoryGroupTest, KillsOfVersionOneAreReadFromAContainersTop) {
  // /proc has the host's name of the group, but its folder is at the top.
  Write("/proc/self/cgroup", "4:memory:/docker/0a1b\n");
  Write("/sys/fs/cgroup/memory/memory.oom_control",
        "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n");
  EXPECT_EQ(MemoryGroup(root_).KillCount(), 2);
}

}  // namespace
}  // namespace muster
