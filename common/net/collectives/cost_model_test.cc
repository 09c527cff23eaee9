#include "common/net/collectives/cost_model.h"

#include <cstdint>
#include <tuple>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

constexpr int64_t kMegabyte = 1000 * 1000;

// A link with 30 us of latency, limited only by its bandwidth.
CostModel Ethernet(double gigabits_per_second) {
  CostModel costs;
  costs.link.latency_seconds = 30e-6;
  costs.link.seconds_per_byte = 8e-9 / gigabits_per_second;
  return costs;
}

double Milliseconds(Algorithm algorithm, int size, double gigabits) {
  return 1e3 * PredictAllReduceSeconds(algorithm, size, 100 * kMegabyte,
                                       Ethernet(gigabits));
}

// The textbook formulas, worked out by hand for 100 MB.
TEST(CostModelTest, AFlatRingIsSlowWithHundredsOfRanks) {
  struct Row {
    int size;
    double ring_25, halving_25, ring_100, halving_100;
  };
  for (const Row& row :
       {Row{16, 60.9, 60.2, 15.9, 15.2}, Row{64, 66.8, 63.4, 19.5, 16.1},
        Row{256, 79.1, 64.2, 31.2, 16.4}, Row{1024, 125, 64.5, 77.4, 16.6},
        Row{4096, 310, 64.7, 262, 16.7}}) {
    const double tolerance = 0.005;
    const auto near = [&](double expected) {
      return testing::DoubleNear(expected, tolerance * expected);
    };
    EXPECT_THAT(Milliseconds(Algorithm::kRing, row.size, 25),
                near(row.ring_25));
    EXPECT_THAT(Milliseconds(Algorithm::kHalvingDoubling, row.size, 25),
                near(row.halving_25));
    EXPECT_THAT(Milliseconds(Algorithm::kRing, row.size, 100),
                near(row.ring_100));
    EXPECT_THAT(Milliseconds(Algorithm::kHalvingDoubling, row.size, 100),
                near(row.halving_100));
  }
}

TEST(CostModelTest, TinyTensorsAreSentWholeAndLargeOnesInParts) {
  const CostModel costs = RawLaneCosts();
  EXPECT_EQ(CheapestAllReduce(2, 64, costs), Algorithm::kOneShot);
  EXPECT_EQ(CheapestAllReduce(4, 64, costs), Algorithm::kOneShot);
  EXPECT_NE(CheapestAllReduce(4, 64 * kMegabyte, costs), Algorithm::kOneShot);
}

TEST(CostModelTest, ManyRanksUseNeitherAllToAllNorAFlatRing) {
  for (int size = 256; size <= 4096; size *= 2) {
    for (const int64_t bytes : {int64_t{1000}, kMegabyte, 100 * kMegabyte}) {
      EXPECT_EQ(CheapestAllReduce(size, bytes, RawLaneCosts()),
                Algorithm::kHalvingDoubling)
          << size << " ranks, " << bytes << " bytes";
    }
  }
}

// Halving-doubling pays twice for ranks beyond a power of two.
TEST(CostModelTest, ARingIsFastestForLargeTensorsIfRanksAreNoPowerOfTwo) {
  EXPECT_EQ(CheapestAllReduce(12, 1000 * kMegabyte, RawLaneCosts()),
            Algorithm::kRing);
}

TEST(CostModelTest, TheChoiceIsTheCheapestForEveryGroup) {
  const std::vector<Algorithm> algorithms = {
      Algorithm::kOneShot, Algorithm::kDirect, Algorithm::kRing,
      Algorithm::kHalvingDoubling};
  for (int size = 2; size <= 4096; ++size) {
    for (int64_t bytes = 0; bytes <= kMegabyte * 1000; bytes = 10 * bytes + 1) {
      const CostModel costs = RawLaneCosts();
      const double chosen = PredictAllReduceSeconds(
          CheapestAllReduce(size, bytes, costs), size, bytes, costs);
      EXPECT_GT(chosen, 0);
      for (const Algorithm algorithm : algorithms) {
        ASSERT_LE(chosen,
                  PredictAllReduceSeconds(algorithm, size, bytes, costs));
      }
    }
  }
}

// Worked out by hand: a step is one message sent, one message received and one
// latency.
TEST(CostModelTest, RanksOfOneProcessorTakeTurnsAndWakeEachOther) {
  CostModel costs;
  costs.link = {1e-6, 1e-6, 1e-9};
  costs.reduce_seconds_per_byte = 1e-9;
  costs.wake_seconds = 10e-6;
  EXPECT_NEAR(PredictAllReduceSeconds(Algorithm::kDirect, 2, 2000, costs),
              2 * 3e-6 + 3000e-9, 1e-12);
  costs.processor_count = 1;
  EXPECT_NEAR(PredictAllReduceSeconds(Algorithm::kDirect, 2, 2000, costs),
              2 * (5e-6 + 10e-6) + 2 * 3000e-9, 1e-12);
  // One step with three messages.
  costs.processor_count = 2;
  EXPECT_NEAR(PredictAllReduceSeconds(Algorithm::kOneShot, 4, 0, costs),
              1e-6 + 2 * 6e-6 + 3 * 10e-6, 1e-12);
}

// With 4 ranks on 2 processors, both neighbours in a ring are on the other
// processor. One of a rank's three peers is on its own processor, and the
// halves of the tensor go to that peer.
TEST(CostModelTest, BytesFromAnotherProcessorWaitForATurn) {
  CostModel costs;
  costs.processor_count = 2;
  costs.crossing_seconds_per_byte = 1e-9;
  const double sent_by_two = 2 * 1.5 * 4000e-9;
  EXPECT_EQ(PredictAllReduceSeconds(Algorithm::kRing, 2, 4000, costs), 0);
  EXPECT_NEAR(PredictAllReduceSeconds(Algorithm::kRing, 4, 4000, costs),
              sent_by_two, 1e-12);
  EXPECT_NEAR(PredictAllReduceSeconds(Algorithm::kDirect, 4, 4000, costs),
              sent_by_two * 2 / 3, 1e-12);
  EXPECT_NEAR(
      PredictAllReduceSeconds(Algorithm::kHalvingDoubling, 4, 4000, costs),
      sent_by_two / 3, 1e-12);
}

TEST(CostModelTest, DataLargerThanTheCacheTakesLonger) {
  CostModel costs;
  costs.link.seconds_per_byte = 1e-9;
  costs.far_seconds_per_byte = 3e-9;
  costs.cached_bytes = 1000;
  EXPECT_NEAR(PredictAllReduceSeconds(Algorithm::kRing, 2, 1000, costs),
              1000e-9, 1e-12);
  EXPECT_NEAR(PredictAllReduceSeconds(Algorithm::kRing, 2, 4000, costs),
              4000e-9 + 3 * 3000e-9, 1e-12);
}

TEST(CostModelTest, OneRankHasNothingToDo) {
  EXPECT_EQ(PredictAllReduceSeconds(Algorithm::kRing, 1, 1000, RawLaneCosts()),
            0);
}

}  // namespace
}  // namespace muster
