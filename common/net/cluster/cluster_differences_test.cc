#include "common/net/cluster/cluster_differences.h"

#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/core/base/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using testing::HasSubstr;

ClusterSpec Make(std::vector<std::string> chiefs,
                 std::vector<std::string> workers,
                 std::vector<std::string> servers) {
  return *ClusterSpec::FromLists({{TaskType::kChief, chiefs},
                                  {TaskType::kWorker, workers},
                                  {TaskType::kPs, servers}});
}

TEST(ClusterDifferencesTest, EqualClustersAgree) {
  const ClusterSpec cluster = Make({"c:1"}, {"a:1"}, {"p:1"});
  EXPECT_OK(CheckClustersAgree({TaskType::kWorker, 0}, cluster, cluster));
}

TEST(ClusterDifferencesTest, NameTheRoleAndBothSides) {
  EXPECT_THAT(
      CheckClustersAgree({TaskType::kWorker, 0}, Make({}, {"a:1"}, {"h2:2222"}),
                         Make({}, {"a:1"}, {"h2:2223"})),
      StatusIs(absl::StatusCode::kFailedPrecondition,
               HasSubstr("worker 0 and this task disagree about the cluster: "
                         "ps is [\"h2:2222\"] there and [\"h2:2223\"] here")));
}

TEST(ClusterDifferencesTest, RoleMissingOnOneSideIsADifference) {
  EXPECT_EQ(DescribeDifferences(Make({}, {"a:1", "b:1"}, {}),
                                Make({}, {"a:1"}, {"p:1"})),
            "worker is [\"a:1\",\"b:1\"] there and [\"a:1\"] here; "
            "ps is [] there and [\"p:1\"] here");
}

TEST(ClusterDifferencesTest, OrderMatters) {
  EXPECT_NE(DescribeDifferences(Make({}, {"a:1", "b:1"}, {}),
                                Make({}, {"b:1", "a:1"}, {})),
            "");
}

TEST(ClusterDifferencesTest, UnlistedChiefMattersOnlyWithoutServers) {
  EXPECT_EQ(DescribeDifferences(Make({}, {"a:1"}, {"p:1"}),
                                Make({"c:1"}, {"a:1"}, {"p:1"})),
            "");
  EXPECT_EQ(
      DescribeDifferences(Make({}, {"a:1"}, {}), Make({"c:1"}, {"a:1"}, {})),
      "chief is [] there and [\"c:1\"] here");
}

TEST(ClusterDifferencesTest, EvaluatorsAreNotCompared) {
  const ClusterSpec with = *ClusterSpec::FromLists(
      {{TaskType::kWorker, {"a:1"}}, {TaskType::kEvaluator, {"e:1"}}});
  EXPECT_EQ(DescribeDifferences(with, Make({}, {"a:1"}, {})), "");
}

TEST(ClusterDifferencesTest, SparseRolesAreComparedByTheirSharedTasks) {
  const auto sparse = [](int index, const std::string& address) {
    return *ClusterSpec::Create(
        {{TaskType::kWorker, {{{index, address}}, true}}});
  };
  const ClusterSpec list = Make({}, {"a:1", "b:1"}, {});
  EXPECT_EQ(DescribeDifferences(sparse(1, "b:1"), list), "");
  EXPECT_EQ(DescribeDifferences(sparse(7, "x:1"), list), "");
  EXPECT_EQ(DescribeDifferences(sparse(1, "x:1"), list),
            "worker 1 is \"x:1\" there and \"b:1\" here");
}

TEST(ClusterDifferencesTest, LongListsAreReportedByTheirFirstDifference) {
  std::vector<std::string> addresses;
  for (int i = 0; i < 1000; ++i) {
    addresses.push_back(absl::StrCat("h", i, ":1"));
  }
  const ClusterSpec here = Make({}, addresses, {});
  addresses[7] = "x:1";
  EXPECT_EQ(DescribeDifferences(Make({}, addresses, {}), here),
            "worker 7 is \"x:1\" there and \"h7:1\" here");
  addresses.pop_back();
  EXPECT_EQ(DescribeDifferences(Make({}, addresses, {}), here),
            "worker has 999 tasks there and 1000 here");
}

}  // namespace
}  // namespace muster
