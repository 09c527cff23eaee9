#include "ps/client/placement.h"

#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using ::testing::ElementsAre;

std::vector<int> PlaceAll(Placement placement, std::vector<int64_t> sizes) {
  std::vector<int> servers;
  for (int64_t size : sizes) servers.push_back(placement.PlaceNext(size));
  return servers;
}

TEST(PlacementTest, RoundRobinIgnoresSizes) {
  EXPECT_THAT(
      PlaceAll(Placement(PlacementPolicy::kRoundRobin, 3), {9, 1, 1, 1, 1}),
      ElementsAre(0, 1, 2, 0, 1));
}

TEST(PlacementTest, GreedyFillsTheEmptiestServerFirst) {
  EXPECT_THAT(
      PlaceAll(Placement(PlacementPolicy::kGreedyByBytes, 3), {9, 4, 3, 2, 1}),
      ElementsAre(0, 1, 2, 2, 1));
}

TEST(PlacementTest, ServerBytesAddUp) {
  Placement placement(PlacementPolicy::kGreedyByBytes, 2);
  placement.PlaceNext(5);
  placement.PlaceNext(3);
  placement.PlaceNext(1);
  EXPECT_THAT(placement.server_bytes(), ElementsAre(5, 4));
}

}  // namespace
}  // namespace muster
