#include "common/core/device/simulated/simulated_grid.h"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <string>
#include <thread>  // NOLINT
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/device/driver/kernel_image.h"
#include "common/core/device/driver/launch_shape.h"
#include "common/core/device/simulated/testing/grid_test_kernels_image.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

const SimulatedKernel& Find(absl::string_view name) {
  for (const SimulatedKernel& kernel :
       internal::grid_test_kernels_image().simulated) {
    if (kernel.name == name) return kernel;
  }
  ADD_FAILURE() << "no kernel " << name;
  return internal::grid_test_kernels_image().simulated[0];
}

LaunchShape Line(uint32_t blocks, uint32_t threads, uint32_t shared_bytes = 0) {
  return {{blocks, 1, 1}, {threads, 1, 1}, shared_bytes};
}

template <typename... Arguments>
absl::Status Launch(absl::string_view kernel, const LaunchShape& shape,
                    uint64_t seed, Arguments... arguments) {
  void* addresses[] = {&arguments...};
  return RunSimulatedGrid(Find(kernel), shape, addresses, seed);
}

TEST(SimulatedGridTest, ThreadsReadTheirCoordinates) {
  std::vector<uint64_t> seen(2 * 3 * 2 * 4 * 2 * 3);
  for (const uint64_t seed : {0, 1, 2}) {
    std::fill(seen.begin(), seen.end(), 0);
    ASSERT_OK(
        Launch("write_coordinates", {{2, 3, 2}, {4, 2, 3}}, seed, seen.data()));
    for (size_t i = 0; i < seen.size(); ++i) ASSERT_EQ(seen[i], i + 1);
  }
}

TEST(SimulatedGridTest, SharedMemoryAndShufflesSumABlock) {
  std::vector<float> x(3 * 1000);
  std::iota(x.begin(), x.end(), 0.0f);
  for (const uint32_t threads : {32, 96, 256, 1024}) {
    for (const uint64_t seed : {0, 1, 7}) {
      std::vector<float> sums(3);
      ASSERT_OK(Launch("sum_rows", Line(3, threads), seed, x.data(),
                       sums.data(), 1000));
      EXPECT_THAT(sums, ElementsAre(499500, 1499500, 2499500));
    }
  }
}

TEST(SimulatedGridTest, ShufflesMoveValuesBetweenLanes) {
  std::vector<double> out(4 * 32);
  ASSERT_OK(Launch("shuffle_lanes", Line(1, 32), 3, out.data()));
  for (int lane = 0; lane < 32; ++lane) {
    EXPECT_EQ(out[lane], lane ^ 5);
    // Beyond the warp, a lane reads itself.
    EXPECT_EQ(out[32 + lane], lane + 3 < 32 ? lane + 3 : lane);
    EXPECT_EQ(out[64 + lane], lane >= 3 ? lane - 3 : lane);
    EXPECT_EQ(out[96 + lane], 9);
  }
}

TEST(SimulatedGridTest, BallotsCountOnlyTheLanesOfTheBlock) {
  uint32_t ballot = 0;
  ASSERT_OK(Launch("vote_odd", Line(1, 10), 0, &ballot));
  EXPECT_EQ(ballot, 0b1010101010u);
}

TEST(SimulatedGridTest, DynamicSharedMemoryHoldsABlocksValues) {
  std::vector<int32_t> x = {1, 2, 3, 4, 5, 6};
  ASSERT_OK(Launch("reverse", Line(1, 6, 6 * sizeof(int32_t)), 2, x.data()));
  EXPECT_THAT(x, ElementsAre(6, 5, 4, 3, 2, 1));
}

TEST(SimulatedGridTest, FirstAtomicExchangeWins) {
  for (const uint64_t seed : {0, 1, 2, 3}) {
    int32_t first = -1;
    uint64_t count = 0;
    ASSERT_OK(Launch("claim", Line(4, 64), seed, &first, &count));
    EXPECT_EQ(count, 256u);
    EXPECT_GE(first, 0);
    if (seed == 0) {
      EXPECT_EQ(first, 0);
    }
  }
}

TEST(SimulatedGridTest, SomeSeedFindsARaceThatAscendingOrderHides) {
  const auto outcome = [](uint64_t seed) {
    std::vector<int32_t> out(64);
    EXPECT_OK(Launch("race", Line(1, 64), seed, out.data()));
    return out;
  };
  const std::vector<int32_t> ascending = outcome(0);
  bool has_differed = false;
  for (uint64_t seed = 1; seed < 5; ++seed) {
    EXPECT_EQ(outcome(seed), outcome(seed));
    has_differed |= outcome(seed) != ascending;
  }
  EXPECT_TRUE(has_differed);
}

TEST(SimulatedGridTest, NamesHowManyThreadsAreDeadlockedAndWhere) {
  EXPECT_THAT(
      Launch("some_wait", Line(1, 256), 0, 40),
      StatusIs(
          absl::StatusCode::kDeadlineExceeded,
          AllOf(HasSubstr("deadlock: 40 of 256 threads at a barrier"),
                HasSubstr("grid_test_kernels.cu:"), HasSubstr("some_wait"))));
  EXPECT_THAT(
      Launch("shuffle_without_partner", Line(1, 32), 0, 0),
      StatusIs(absl::StatusCode::kDeadlineExceeded,
               HasSubstr("deadlock: 31 of 32 threads at a barrier, 1 of 32 "
                         "threads in a warp operation")));
  // The next launch reuses the stacks that the deadlock left.
  ASSERT_OK(Launch("some_wait", Line(2, 256), 0, 256));
}

TEST(SimulatedGridTest, RejectsDivergentBarriers) {
  EXPECT_THAT(Launch("two_barriers", Line(1, 64), 0, 0),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("different barriers")));
}

TEST(SimulatedGridTest, RejectsWaitsOfPlainKernels) {
  EXPECT_THAT(Launch("plain_that_waits", Line(1, 2), 0, 0),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("MUSTER_PLAIN_KERNEL")));
}

TEST(SimulatedGridTest, RejectsShapesThatNoGpuRuns) {
  for (const LaunchShape& shape : {Line(0, 1),
                                   Line(1, 0),
                                   Line(1, 1025),
                                   Line(1, 1, 49153),
                                   LaunchShape{{1, 65536, 1}, {1, 1, 1}},
                                   {{1, 1, 1}, {32, 32, 2}}}) {
    EXPECT_THAT(Launch("some_wait", shape, 0, 0),
                StatusIs(absl::StatusCode::kInvalidArgument));
  }
}

TEST(SimulatedGridTest, RunsOnManyHostThreadsAtOnce) {
  std::vector<std::thread> hosts;
  for (int i = 0; i < 4; ++i) {
    hosts.emplace_back([i] {
      std::vector<float> x(1000, static_cast<float>(i));
      for (uint64_t seed = 0; seed < 20; ++seed) {
        float sum = 0;
        ASSERT_OK(Launch("sum_rows", Line(1, 128), seed, x.data(), &sum, 1000));
        ASSERT_EQ(sum, 1000.0f * static_cast<float>(i));
      }
    });
  }
  for (std::thread& host : hosts) host.join();
}

}  // namespace
}  // namespace muster
