#include "common/net/collectives/peers/hang_report.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using testing::HasSubstr;

CollectiveProgress Own(std::vector<int> missing_ranks) {
  return {.is_running = true,
          .operation = "all-reduce",
          .name = "dense/kernel and 3 more",
          .sequence = 120,
          .elapsed = absl::Milliseconds(31900),
          .missing_ranks = std::move(missing_ranks)};
}

proto::ProgressReport Running(uint64_t sequence, double seconds) {
  proto::ProgressReport report;
  proto::ReplicaProgress* const replica = report.add_replicas();
  replica->set_is_running(true);
  replica->set_operation("all-reduce");
  replica->set_name("dense/bias");
  replica->set_sequence(sequence);
  replica->set_elapsed_seconds(seconds);
  return report;
}

proto::ProgressReport Idle(uint64_t sequence) {
  proto::ProgressReport report;
  report.add_replicas()->set_sequence(sequence);
  return report;
}

TEST(HangReportTest, NamesTheMissingRankAndItsCollective) {
  proto::ProgressReport report = Idle(119);
  report.set_step(120);
  report.set_activity("reading input");
  const std::vector<PeerProgress> peers = {
      {.task = "worker 0"}, {.task = "worker 1", .report = report}};
  EXPECT_EQ(DescribeHang(Own({1}), 0, 1, peers),
            "in all-reduce number 120 of dense/kernel and 3 more for 31 s; not "
            "there yet: rank 1 (worker 1). worker 1 is in no collective after "
            "119 of them, step 120, reading input");
}

TEST(HangReportTest, IfNoRankIsMissingRanksInOtherCallsAreNamed) {
  const std::vector<PeerProgress> peers = {
      {.task = "worker 0"},
      {.task = "worker 1", .report = Running(120, 30)},
      {.task = "worker 2", .report = Running(119, 61.4)}};
  EXPECT_EQ(DescribeHang(Own({}), 0, 1, peers),
            "in all-reduce number 120 of dense/kernel and 3 more for 31 s. "
            "worker 2 is in all-reduce number 119 of dense/bias for 61 s");
}

TEST(HangReportTest, ASilentPeerIsNamed) {
  const std::vector<PeerProgress> peers = {{.task = "chief"},
                                           {.task = "worker 0"}};
  EXPECT_THAT(DescribeHang(Own({1}), 0, 1, peers),
              HasSubstr("(worker 0). worker 0 does not answer"));
}

proto::ProgressReport WithSilent(proto::ProgressReport report,
                                 const std::string& task) {
  proto::SilentPeer* const peer = report.add_silent_peers();
  peer->set_task(task);
  peer->set_silence_seconds(9.7);
  return report;
}

TEST(HangReportTest, BothEndsOfABrokenLinkAreNamedAtAThirdTask) {
  const std::vector<PeerProgress> peers = {
      {.task = "worker 0"},
      {.task = "worker 1", .report = WithSilent(Running(120, 10), "worker 2")},
      {.task = "worker 2", .report = WithSilent(Running(120, 10), "worker 1")}};
  EXPECT_EQ(DescribeHang(Own({}), 0, 1, peers),
            "in all-reduce number 120 of dense/kernel and 3 more for 31 s. "
            "worker 1 is in all-reduce number 120 of dense/bias for 10 s, has "
            "not heard of worker 2 for 10 s; worker 2 is in all-reduce number "
            "120 of dense/bias for 10 s, has not heard of worker 1 for 10 s");
}

TEST(HangReportTest, BothEndsOfABrokenLinkAreNamedAtOneOfThem) {
  const std::vector<PeerProgress> peers = {
      {.task = "worker 0", .report = WithSilent({}, "worker 1")},
      {.task = "worker 1"},
      {.task = "worker 2", .report = Running(120, 10)}};
  EXPECT_EQ(DescribeHang(Own({}), 0, 1, peers),
            "in all-reduce number 120 of dense/kernel and 3 more for 31 s. "
            "worker 0 has not heard of worker 1 for 10 s; worker 1 does not "
            "answer");
}

TEST(HangReportTest, EveryReplicaOfATaskIsTold) {
  proto::ProgressReport report = Running(120, 3);
  report.add_replicas()->set_sequence(119);
  const std::vector<PeerProgress> peers = {
      {.task = "worker 0"}, {.task = "worker 1", .report = report}};
  EXPECT_THAT(
      DescribeHang(Own({3}), 0, 2, peers),
      HasSubstr("not there yet: rank 3 (replica 1 of worker 1). replica "
                "0 of worker 1 is in all-reduce number 120 of "
                "dense/bias for 3 s, replica 1 of worker 1 is in no "
                "collective after 119 of them"));
}

TEST(HangReportTest, SaysThatAllOthersHaveArrived) {
  const std::vector<PeerProgress> peers = {
      {.task = "worker 0"}, {.task = "worker 1", .report = Running(120, 3)}};
  EXPECT_THAT(DescribeHang(Own({}), 0, 1, peers),
              HasSubstr("All others are in it, too"));
}

TEST(HangReportTest, ManyAreCounted) {
  std::vector<PeerProgress> peers;
  std::vector<int> missing;
  for (int i = 0; i < 20; ++i) {
    peers.push_back({.task = "worker " + std::to_string(i)});
    if (i > 0) missing.push_back(i);
  }
  EXPECT_THAT(DescribeHang(Own(missing), 0, 1, peers),
              HasSubstr("rank 8 (worker 8) and 11 more"));
}

TEST(HangReportTest, InvalidRanksAreIgnored) {
  const std::vector<PeerProgress> peers = {{.task = "worker 0"},
                                           {.task = "worker 1"}};
  EXPECT_THAT(DescribeHang(Own({7, -1}), 0, 1, peers),
              HasSubstr("for 31 s. worker 1 does not answer"));
}

}  // namespace
}  // namespace muster
