#include <sys/resource.h>

#include <cstdlib>

#include "absl/base/config.h"
#include "common/core/system/memory_limits.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

TEST(AvailableMemoryTest, TheLimitOfAddressSpaceApplies) {
#if defined(ABSL_HAVE_ADDRESS_SANITIZER) || defined(ABSL_HAVE_THREAD_SANITIZER)
  GTEST_SKIP() << "sanitizers reserve more of the address space";
#endif
  const size_t before = AvailableMemoryBytes();
  EXPECT_GT(before, 64u << 20);
  rlimit limit;
  ASSERT_EQ(getrlimit(RLIMIT_AS, &limit), 0);
  const rlimit lower = {before / 2, limit.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_AS, &lower), 0);
  EXPECT_EQ(AvailableMemoryBytes(), before / 2);
  ASSERT_EQ(setrlimit(RLIMIT_AS, &limit), 0);
}

TEST(AvailableMemoryTest, TheSlurmLimitOfTheNodeApplies) {
  const size_t before = AvailableMemoryBytes();
  ASSERT_GT(before, 60u << 20);
  setenv("SLURM_MEM_PER_CPU", "20", /*overwrite=*/1);
  EXPECT_EQ(AvailableMemoryBytes(), before);
  setenv("SLURM_CPUS_ON_NODE", "3", /*overwrite=*/1);
  EXPECT_EQ(AvailableMemoryBytes(), 60u << 20);
  setenv("SLURM_MEM_PER_NODE", "50", /*overwrite=*/1);
  EXPECT_EQ(AvailableMemoryBytes(), 50u << 20);
  unsetenv("SLURM_MEM_PER_CPU");
  for (const char* const granted : {"0", "", "all", "-1", "4000000000"}) {
    setenv("SLURM_MEM_PER_NODE", granted, /*overwrite=*/1);
    EXPECT_EQ(AvailableMemoryBytes(), before) << granted;
  }
  unsetenv("SLURM_MEM_PER_NODE");
  unsetenv("SLURM_CPUS_ON_NODE");
}

}  // namespace
}  // namespace muster
