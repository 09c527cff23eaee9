#include "common/net/collectives/peers/admission.h"

#include <string>
#include <vector>

#include "common/core/base/testing/status_matchers.h"
#include "common/net/collectives/peers/group_error.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr TaskId kChief = {TaskType::kChief, 0};
constexpr TaskId kWorker0 = {TaskType::kWorker, 0};
constexpr TaskId kWorker1 = {TaskType::kWorker, 1};

ClusterSpec Cluster(const std::vector<std::string>& workers) {
  return ClusterSpec::FromLists({{TaskType::kChief, {"h0:2222"}},
                                 {TaskType::kWorker, workers},
                                 {TaskType::kEvaluator, {"h9:2222"}}})
      .value();
}

Admission::Options OptionsOf(TaskId task, uint64_t incarnation) {
  Admission::Options options;
  options.task = task;
  options.incarnation = incarnation;
  options.address = "h:1";
  options.cluster = Cluster({"h1:2222", "h2:2222"});
  options.digest.Add("job file", "epochs: 3\nbatch: 4\n");
  return options;
}

TEST(AdmissionTest, TheChiefIsFirstAndTheEvaluatorOutside) {
  EXPECT_THAT(GroupTasks(Cluster({"h1:2222", "h2:2222"})),
              ElementsAre(kChief, kWorker0, kWorker1));
}

TEST(AdmissionTest, AgreeingTasksAreAdmitted) {
  const Admission here(OptionsOf(kChief, 1));
  const Admission there(OptionsOf(kWorker1, 2));
  EXPECT_OK(here.Check(there.Hello(kChief), -1));
  EXPECT_OK(there.Check(here.Hello(std::nullopt), 0));
}

TEST(AdmissionTest, AnotherProcessAtTheAddressIsNamed) {
  const Admission here(OptionsOf(kChief, 1));
  const Admission there(OptionsOf(kWorker0, 0xab));
  EXPECT_THAT(here.Check(there.Hello(std::nullopt), 2),
              StatusIs(absl::StatusCode::kNotFound,
                       AllOf(HasSubstr("says that it is worker 0"),
                             HasSubstr("00000000000000ab"))));
  EXPECT_THAT(here.Check(there.Hello(kWorker1), -1),
              StatusIs(absl::StatusCode::kNotFound,
                       HasSubstr("this is chief, incarnation "
                                 "0000000000000001, and not worker 1")));
}

void ExpectDisagreement(const Admission::Options& options,
                        const std::string& text) {
  const Admission here(OptionsOf(kChief, 1));
  const absl::Status status = here.Check(Admission(options).Hello(kChief), -1);
  EXPECT_THAT(status,
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr(text)));
  EXPECT_EQ(GroupErrorKindOf(status), GroupErrorKind::kDisagreement);
}

TEST(AdmissionTest, AnotherClusterIsRefused) {
  Admission::Options options = OptionsOf(kWorker1, 2);
  options.cluster = Cluster({"h1:2222", "h2:2223"});
  ExpectDisagreement(options, "disagree about the cluster: worker is");
}

TEST(AdmissionTest, AnotherReplicaCountIsRefused) {
  Admission::Options options = OptionsOf(kWorker1, 2);
  options.replicas_per_task = 2;
  ExpectDisagreement(options, "the replicas: 2 there and 1 here");
}

TEST(AdmissionTest, AnotherJobIsRefused) {
  Admission::Options options = OptionsOf(kWorker1, 2);
  options.digest = JobDigest();
  options.digest.Add("job file", "epochs: 3\nbatch: 5\n");
  ExpectDisagreement(options,
                     "disagree about the job: job file, line 2, is "
                     "\"batch: 5\" there and \"batch: 4\" here");
}

TEST(AdmissionTest, AnEvaluatorIsNotAMember) {
  ExpectDisagreement(OptionsOf({TaskType::kEvaluator, 0}, 2),
                     "evaluator is none of the tasks that train together");
}

TEST(AdmissionTest, InvalidHellosAreRefused) {
  const Admission here(OptionsOf(kChief, 1));
  EXPECT_THAT(here.Check(proto::PeerHello(), -1),
              StatusIs(absl::StatusCode::kInvalidArgument));
  proto::PeerHello hello = Admission(OptionsOf(kWorker1, 2)).Hello(kChief);
  hello.set_incarnation(0);
  EXPECT_THAT(here.Check(hello, -1),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("no incarnation")));
}

}  // namespace
}  // namespace muster
