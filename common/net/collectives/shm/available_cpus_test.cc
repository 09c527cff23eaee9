#include "common/net/collectives/shm/available_cpus.h"

#include <sched.h>

#include <optional>

#include "gtest/gtest.h"

namespace muster::internal {
namespace {

TEST(AvailableCpusTest, BandwidthIsQuotaOverPeriod) {
  EXPECT_EQ(ParseCpuMax("200000 100000\n"), 2.0);
  EXPECT_EQ(ParseCpuMax("50000 100000"), 0.5);
}

TEST(AvailableCpusTest, NoLimitAndNonsenseLimitNothing) {
  for (const char* text : {"max 100000\n", "", "1", "a b", "0 100000", "1 0"}) {
    EXPECT_EQ(ParseCpuMax(text), std::nullopt) << text;
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

}  // namespace
}  // namespace muster::internal
