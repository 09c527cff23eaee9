#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "common/core/base/status_macros.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/net/collectives/conformance/backend.h"
#include "common/net/collectives/conformance/message_backends.h"
#include "common/net/collectives/message/testing/memory_lane.h"
#include "common/net/collectives/message/two_level_communicator.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using ::testing::HasSubstr;

constexpr uint64_t kGeneration = 5;
using Hosts = std::vector<std::vector<int>>;

// Makes a group with both levels over memory.
absl::StatusOr<RankGroup> MakeGroup(const Hosts& hosts) {
  size_t size = 0, local_max = 0;
  bool is_even = true;
  for (const auto& ranks : hosts) {
    size += ranks.size();
    local_max = std::max(local_max, ranks.size());
    is_even &= ranks.size() == hosts[0].size();
  }
  std::vector<TwoLevelGroup> groups(size);
  for (const auto& ranks : hosts) {
    ASSIGN_OR_RETURN(
        RankGroup local,
        MakeMessageGroup(MakeMemoryLanes(static_cast<int>(ranks.size())),
                         kGeneration, ChooseAlgorithm, ranks));
    for (size_t i = 0; i < ranks.size(); ++i) {
      groups[ranks[i]].rank = ranks[i];
      groups[ranks[i]].hosts = hosts;
      groups[ranks[i]].local = std::move(local[i]);
      groups[ranks[i]].local_has_rank_names = true;
    }
  }
  for (size_t i = 0; i < (is_even ? local_max : 1); ++i) {
    std::vector<int> names;
    for (const auto& ranks : hosts) names.push_back(ranks[i]);
    ASSIGN_OR_RETURN(
        RankGroup across,
        MakeMessageGroup(MakeMemoryLanes(static_cast<int>(hosts.size())),
                         kGeneration, ChooseAlgorithm, names));
    for (size_t host = 0; host < hosts.size(); ++host) {
      groups[hosts[host][i]].across = std::move(across[host]);
    }
  }
  RankGroup communicators;
  for (TwoLevelGroup& group : groups) {
    ASSIGN_OR_RETURN(communicators.emplace_back(),
                     MakeTwoLevelCommunicator(std::move(group)));
  }
  return communicators;
}

// Neighbours share a host; 5 ranks make hosts of 2, 2 and 1.
absl::StatusOr<RankGroup> MakePairs(int size) {
  Hosts hosts;
  for (int rank = 0; rank < size; ++rank) {
    if (rank % 2 == 0) hosts.emplace_back();
    hosts.back().push_back(rank);
  }
  return MakeGroup(hosts);
}

// Ranks are assigned to two hosts in turn.
absl::StatusOr<RankGroup> MakeInterleaved(int size) {
  Hosts hosts(std::min(size, 2));
  for (int rank = 0; rank < size; ++rank) {
    hosts[rank % hosts.size()].push_back(rank);
  }
  return MakeGroup(hosts);
}

const BackendRegistration kRegistrations[] = {
    BackendRegistration({"TwoLevelPairs", MakePairs, 8, false}),
    BackendRegistration({"TwoLevelInterleaved", MakeInterleaved, 5, false}),
};

TEST(TwoLevelCommunicatorTest, GroupsThatDoNotFitAreRefused) {
  const auto make = [](Hosts hosts, int rank, int local_size) {
    auto local = MakeMessageGroup(MakeMemoryLanes(local_size), kGeneration);
    return MakeTwoLevelCommunicator(
        {rank, std::move(hosts), std::move((*local)[0]), true, nullptr});
  };
  EXPECT_OK(make({{0}}, 0, 1));
  EXPECT_THAT(make({{0, 0}}, 0, 2),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(make({{0, 2}}, 0, 2),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(make({{0, 1}}, 5, 2),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(make({{0, 1}}, 0, 3),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("rank 0 of 3 where rank 0 of 2")));
  EXPECT_THAT(make({{0}, {1}}, 0, 1),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("no inter-host communicator")));
}

}  // namespace
}  // namespace muster
