#include "coordinator/journal/adoption.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/coordinator_journal.pb.h"

namespace muster {
namespace {

using testing::AllOf;
using testing::Field;
using testing::HasSubstr;

class AdoptionTest : public testing::Test {
 protected:
  AdoptionTest() {
    proto::JournalJob* const job = state_.mutable_job();
    job->set_job_id("job");
    job->set_generation(4);
    for (const ServerDescription& server : servers_) {
      job->add_server_state_ids(server.state_id);
    }
    state_.mutable_training()->set_fit_number(1);
  }

  void ExpectRestart(const std::string& reason) {
    EXPECT_THAT(DecideAdoption(state_, servers_),
                AllOf(Field(&Adoption::kind, AdoptionKind::kRestartTasks),
                      Field(&Adoption::reason, HasSubstr(reason))));
  }
  AdoptionKind Kind() { return DecideAdoption(state_, servers_).kind; }

  std::vector<ServerDescription> servers_ = {{.name = "ps 0",
                                              .incarnation = 7,
                                              .state_id = 7,
                                              .job_id = "job",
                                              .generation = 4},
                                             {.name = "ps 1",
                                              .incarnation = 8,
                                              .state_id = 8,
                                              .job_id = "job",
                                              .generation = 4}};
  proto::JournalRecord state_;
};

TEST_F(AdoptionTest, ContinuesWithTheServersOfTheJournal) {
  EXPECT_EQ(Kind(), AdoptionKind::kContinue);
}

TEST_F(AdoptionTest, BeginsIfNoServerHasTheJob) {
  for (ServerDescription& server : servers_) {
    server = {.name = server.name,
              .incarnation = server.incarnation + 10,
              .state_id = server.state_id + 10};
  }
  EXPECT_EQ(Kind(), AdoptionKind::kBegin);
  // Also if they are the same processes, which have dropped the job.
  for (ServerDescription& server : servers_) server.state_id -= 10;
  EXPECT_EQ(Kind(), AdoptionKind::kBegin);
}

TEST_F(AdoptionTest, RestartsIfAServerLacksTheVariables) {
  const std::vector<ServerDescription> good = servers_;
  servers_[1].incarnation = 9;
  EXPECT_EQ(Kind(), AdoptionKind::kContinue);  // It has restored the state.
  servers_[1].state_id = 9;
  ExpectRestart("ps 1 is another process, incarnation 0000000000000009");
  servers_ = good;
  servers_[0].job_id = "";
  ExpectRestart("ps 0 has dropped the job");
  servers_ = good;
  servers_[0].generation = 5;
  ExpectRestart("ps 0 is in generation 5 of the variables");
  servers_ = good;
  servers_.push_back(
      {.name = "ps 2", .incarnation = 1, .state_id = 1, .job_id = "job"});
  ExpectRestart("ps 2 is another process");
}

TEST_F(AdoptionTest, AServerWithoutVariablesCanBeReplaced) {
  state_.mutable_training()->add_server_shard_counts(3);
  state_.mutable_training()->add_server_shard_counts(0);
  servers_[1] = {.name = "ps 1", .incarnation = 9, .state_id = 9};
  EXPECT_EQ(Kind(), AdoptionKind::kContinue);
  servers_[0].state_id = 9;
  ExpectRestart("ps 0 is another process");
}

TEST_F(AdoptionTest, RestartsIfThereIsNoPlaceToContinueFrom) {
  state_.set_obstacle("training was rolled back");
  ExpectRestart("training was rolled back");
  state_.clear_obstacle();
  state_.mutable_training()->set_fit_number(2);
  ExpectRestart("call 2 of Fit()");
  state_.clear_training();
  ExpectRestart("training had not begun");
}

TEST_F(AdoptionTest, EndsTasksThatWereNotTold) {
  state_.mutable_end()->set_exit_code(0);
  EXPECT_EQ(Kind(), AdoptionKind::kEndTasks);
  state_.mutable_end()->set_exit_code(138);
  state_.mutable_end()->set_reason("a server was lost");
  ExpectRestart("had ended the job: a server was lost");
  for (ServerDescription& server : servers_) server.job_id = "";
  EXPECT_EQ(Kind(), AdoptionKind::kBegin);
}

}  // namespace
}  // namespace muster
