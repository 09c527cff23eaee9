#include "common/net/rpc/identity.h"

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/net/rpc/status_detail.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/rpc.pb.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

proto::RequestIdentity Request(const std::string& job_id,
                               uint64_t target_incarnation) {
  proto::RequestIdentity identity;
  identity.set_job_id(job_id);
  identity.set_caller_task("worker 2");
  identity.set_caller_incarnation(22);
  identity.set_target_incarnation(target_incarnation);
  return identity;
}

proto::RequestIdentity RequestOf(const std::string& job_id,
                                 uint64_t coordinator_epoch) {
  proto::RequestIdentity identity = Request(job_id, 33);
  identity.set_coordinator_epoch(coordinator_epoch);
  return identity;
}

class AdmissionCheckTest : public testing::Test {
 protected:
  AdmissionCheck admission_check_{{"ps", 3, 33}};
};

TEST_F(AdmissionCheckTest, BeforeAJobRequestsOfAllJobsAreAdmitted) {
  EXPECT_OK(admission_check_.Check(Request("a", 33)));
  EXPECT_OK(admission_check_.Check(Request("b", 0)));
}

TEST_F(AdmissionCheckTest, AfterAJobIsAdoptedOnlyItsRequestsAreAdmitted) {
  ASSERT_OK(admission_check_.AdoptJob(Request("a", 33)));
  EXPECT_OK(admission_check_.AdoptJob(Request("a", 33)));
  EXPECT_OK(admission_check_.Check(Request("a", 33)));
  const absl::Status status = admission_check_.Check(Request("b", 33));
  EXPECT_THAT(status,
              StatusIs(absl::StatusCode::kPermissionDenied,
                       HasSubstr("ps 3 works for another job; worker 2 asked "
                                 "on behalf of job b")));
  EXPECT_EQ(GetTaskFailure(status)->task_index(), 3);
  EXPECT_THAT(admission_check_.Check(Request("", 33)),
              StatusIs(absl::StatusCode::kPermissionDenied));
  EXPECT_THAT(admission_check_.AdoptJob(Request("b", 33)),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("already works for another job")));
  admission_check_.ReleaseJob();
  EXPECT_OK(admission_check_.AdoptJob(Request("b", 33)));
}

TEST_F(AdmissionCheckTest, OtherJobsGetUnavailableWithoutACoordinator) {
  ASSERT_OK(admission_check_.AdoptJob(Request("a", 33)));
  admission_check_.SetHasCoordinator(false);
  EXPECT_THAT(admission_check_.Check(Request("b", 33)),
              StatusIs(absl::StatusCode::kUnavailable,
                       HasSubstr("works for another job")));
  admission_check_.SetHasCoordinator(true);
  EXPECT_THAT(admission_check_.Check(Request("b", 33)),
              StatusIs(absl::StatusCode::kPermissionDenied));
}

TEST_F(AdmissionCheckTest, ARefusalRevealsNeitherJobNorIncarnation) {
  ASSERT_OK(admission_check_.AdoptJob(RequestOf("a-secret", 2)));
  for (const absl::Status& refusal :
       {admission_check_.Check(Request("b", 0)),
        admission_check_.Check(Request("b", 34)),
        admission_check_.Check(Request("a-secret", 34)),
        admission_check_.AdoptJob(Request("b", 33))}) {
    ASSERT_FALSE(refusal.ok());
    EXPECT_THAT(std::string(refusal.message()),
                AllOf(Not(HasSubstr("a-secret")),
                      Not(HasSubstr(IncarnationString(33)))));
    EXPECT_EQ(GetTaskFailure(refusal)->job_id(), "");
    EXPECT_EQ(GetTaskFailure(refusal)->incarnation(), 0);
  }
}

TEST_F(AdmissionCheckTest, AnEarlierCoordinatorOfTheJobIsRefused) {
  ASSERT_OK(admission_check_.AdoptJob(RequestOf("a", 1)));
  EXPECT_OK(admission_check_.Check(RequestOf("a", 1)));
  // The first request of a newer coordinator, or of a task that works for it.
  EXPECT_OK(admission_check_.Check(RequestOf("a", 3)));
  for (const uint64_t epoch : {0, 1, 2}) {
    for (const absl::Status& refusal :
         {admission_check_.Check(RequestOf("a", epoch)),
          admission_check_.AdoptJob(RequestOf("a", epoch)),
          admission_check_.AdoptCoordinator(RequestOf("a", epoch))}) {
      EXPECT_THAT(
          refusal,
          StatusIs(absl::StatusCode::kFailedPrecondition,
                   AllOf(HasSubstr("ps 3 works for coordinator epoch 3"),
                         HasSubstr(absl::StrCat("worker 2 asked for epoch ",
                                                epoch)))));
      EXPECT_TRUE(IsOfEarlierCoordinator(refusal));
      EXPECT_TRUE(IsOfEarlierCoordinator(DecodeStatus(EncodeStatus(refusal))));
    }
  }
  EXPECT_OK(admission_check_.Check(RequestOf("a", 3)));
}

TEST_F(AdmissionCheckTest, AnEarlierCoordinatorIsRefusedAfterTheEndOfItsJob) {
  ASSERT_OK(admission_check_.AdoptJob(RequestOf("a", 2)));
  admission_check_.ReleaseJob();
  EXPECT_TRUE(
      IsOfEarlierCoordinator(admission_check_.Check(RequestOf("a", 1))));
  EXPECT_TRUE(
      IsOfEarlierCoordinator(admission_check_.AdoptJob(RequestOf("a", 1))));
  // Other jobs count from 1 as well.
  EXPECT_OK(admission_check_.Check(RequestOf("b", 1)));
  EXPECT_OK(admission_check_.AdoptJob(RequestOf("b", 1)));
}

TEST_F(AdmissionCheckTest, EpochsOfOtherJobsAreNotAdopted) {
  // Without a job, a request may come from anyone.
  for (const char* const job : {"a", ""}) {
    EXPECT_OK(admission_check_.Check(RequestOf(job, 9)));
    EXPECT_OK(admission_check_.Check(RequestOf(job, 1)));
  }
  ASSERT_OK(admission_check_.AdoptJob(RequestOf("a", 1)));
  EXPECT_THAT(admission_check_.Check(RequestOf("b", 9)),
              StatusIs(absl::StatusCode::kPermissionDenied));
  EXPECT_OK(admission_check_.Check(RequestOf("a", 1)));
  // A request for an earlier process of this task has no effect.
  proto::RequestIdentity stale = RequestOf("a", 9);
  stale.set_target_incarnation(34);
  EXPECT_THAT(admission_check_.Check(stale),
              StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_OK(admission_check_.Check(RequestOf("a", 1)));
}

TEST_F(AdmissionCheckTest, ACoordinatorIsAdoptedWithoutItsJob) {
  ASSERT_OK(admission_check_.AdoptCoordinator(RequestOf("a", 2)));
  EXPECT_OK(admission_check_.Check(RequestOf("b", 1)));
  EXPECT_TRUE(
      IsOfEarlierCoordinator(admission_check_.Check(RequestOf("a", 1))));
  ASSERT_OK(admission_check_.AdoptCoordinator(RequestOf("b", 1)));
  EXPECT_OK(admission_check_.Check(RequestOf("a", 1)));
}

TEST_F(AdmissionCheckTest, AnEarlierProcessIsNotMistakenForThisOne) {
  EXPECT_THAT(admission_check_.Check(Request("a", 34)),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("was restarted")));
}

TEST(StatusDetailTest, CodeMessageAndPayloadSurviveTheWire) {
  proto::TaskFailure failure;
  failure.set_task_type("ps");
  failure.set_waited_seconds(1.5);
  const absl::Status sent =
      WithTaskFailure(absl::AbortedError("words"), failure);
  const absl::Status decoded = DecodeStatus(EncodeStatus(sent));
  EXPECT_EQ(decoded, sent);
  EXPECT_EQ(GetTaskFailure(decoded)->waited_seconds(), 1.5);
  EXPECT_OK(DecodeStatus(EncodeStatus(absl::OkStatus())));
}

TEST(StatusDetailTest, AnUnknownCodeBecomesUnknown) {
  proto::StatusDetail detail;
  detail.set_code(4711);
  EXPECT_THAT(DecodeStatus(detail), StatusIs(absl::StatusCode::kUnknown));
}

TEST(StatusDetailTest, TheFirstFailureIsKept) {
  proto::TaskFailure first;
  first.set_task_index(1);
  proto::TaskFailure second;
  second.set_task_index(2);
  const absl::Status status = WithTaskFailure(
      WithTaskFailure(absl::UnavailableError("gone"), first), second);
  EXPECT_EQ(GetTaskFailure(status)->task_index(), 1);
  EXPECT_EQ(GetTaskFailure(absl::OkStatus()), std::nullopt);
}

}  // namespace
}  // namespace muster
