#include <string>
#include <vector>

#include "absl/strings/str_join.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/net/cluster/slurm_cluster.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using testing::HasSubstr;
using testing::SizeIs;

std::string Expand(absl::string_view list) {
  const auto names = ExpandHostlist(list);
  return names.ok() ? absl::StrJoin(*names, " ")
                    : std::string(names.status().message());
}

TEST(HostlistTest, ExpandsRanges) {
  EXPECT_EQ(Expand("node7"), "node7");
  EXPECT_EQ(Expand("a,b.example.org,c-1"), "a b.example.org c-1");
  EXPECT_EQ(Expand("node[0-3,07]"), "node0 node1 node2 node3 node07");
  EXPECT_EQ(Expand("node[0-1],gpu-[1-2]-ib"), "node0 node1 gpu-1-ib gpu-2-ib");
  EXPECT_EQ(Expand("node[5]"), "node5");
}

TEST(HostlistTest, NumbersKeepTheDigitsOfTheFirst) {
  EXPECT_EQ(Expand("n[08-11]"), "n08 n09 n10 n11");
  EXPECT_EQ(Expand("n[8-11]"), "n8 n9 n10 n11");
  EXPECT_EQ(Expand("n[099-100]"), "n099 n100");
}

TEST(HostlistTest, SeveralBracketsMultiply) {
  EXPECT_EQ(Expand("rack[0-1]n[08-09]"), "rack0n08 rack0n09 rack1n08 rack1n09");
  EXPECT_EQ(Expand("[1-2][3,5]"), "13 15 23 25");
}

TEST(HostlistTest, OrderAndRepetitionAreKept) {
  EXPECT_EQ(Expand("b[2,1],a,b1"), "b2 b1 a b1");
}

TEST(HostlistTest, MalformedListsAreRefused) {
  EXPECT_THAT(Expand(""), HasSubstr("empty host name"));
  EXPECT_THAT(Expand("a,,b"), HasSubstr("empty host name"));
  EXPECT_THAT(Expand("a,"), HasSubstr("empty host name"));
  EXPECT_THAT(Expand("node[0-3"), HasSubstr("\"node[0-3\" has a \"[\""));
  EXPECT_THAT(Expand("node0-3]"), HasSubstr("has a \"]\" without"));
  EXPECT_THAT(Expand("node[]"), HasSubstr("\"\" is no range"));
  EXPECT_THAT(Expand("node[1,]"), HasSubstr("\"\" is no range"));
  EXPECT_THAT(Expand("node[3-1]"), HasSubstr("\"3-1\" is no range"));
  EXPECT_THAT(Expand("node[1-]"), HasSubstr("\"1-\" is no range"));
  EXPECT_THAT(Expand("node[-1]"), HasSubstr("\"-1\" is no range"));
  EXPECT_THAT(Expand("node[1-2-3]"), HasSubstr("\"1-2-3\" is no range"));
  EXPECT_THAT(Expand("node[a-b]"), HasSubstr("\"a-b\" is no range"));
  EXPECT_THAT(Expand("node[[1]]"), HasSubstr("is no range"));
}

TEST(HostlistTest, TheNumberOfNamesIsBounded) {
  ASSERT_OK_AND_ASSIGN(const std::vector<std::string> names,
                       ExpandHostlist("n[0-65535]"));
  EXPECT_THAT(names, SizeIs(65536));
  EXPECT_THAT(Expand("n[0-65536]"), HasSubstr("more than 65536 hosts"));
  EXPECT_THAT(Expand("n[0-65535],m"), HasSubstr("more than 65536 hosts"));
  EXPECT_THAT(Expand("n[0-999][0-999]"), HasSubstr("more than 65536 hosts"));
  EXPECT_THAT(Expand("n[0-99999999999999999]"), HasSubstr("more than 65536"));
  EXPECT_THAT(Expand("n[0-9999999999999999999]"), HasSubstr("is no range"));
}

}  // namespace
}  // namespace muster
