#include "common/net/rpc/identity.h"

#include <cstdint>
#include <optional>
#include <string>

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

class AdmissionCheckTest : public testing::Test {
 protected:
  AdmissionCheck admission_check_{{"ps", 3, 33}};
};

TEST_F(AdmissionCheckTest, BeforeAJobRequestsOfAllJobsAreAdmitted) {
  EXPECT_OK(admission_check_.Check(Request("a", 33)));
  EXPECT_OK(admission_check_.Check(Request("b", 0)));
}

TEST_F(AdmissionCheckTest, AfterAJobIsAdoptedOnlyItsRequestsAreAdmitted) {
  ASSERT_OK(admission_check_.AdoptJob("a"));
  EXPECT_OK(admission_check_.AdoptJob("a"));
  EXPECT_OK(admission_check_.Check(Request("a", 33)));
  const absl::Status status = admission_check_.Check(Request("b", 33));
  EXPECT_THAT(status,
              StatusIs(absl::StatusCode::kPermissionDenied,
                       HasSubstr("ps 3 works for another job; worker 2 asked "
                                 "on behalf of job b")));
  EXPECT_EQ(GetTaskFailure(status)->task_index(), 3);
  EXPECT_THAT(admission_check_.Check(Request("", 33)),
              StatusIs(absl::StatusCode::kPermissionDenied));
  EXPECT_THAT(admission_check_.AdoptJob("b"),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("already works for another job")));
  admission_check_.ReleaseJob();
  EXPECT_OK(admission_check_.AdoptJob("b"));
}

TEST_F(AdmissionCheckTest, OtherJobsGetUnavailableWithoutACoordinator) {
  ASSERT_OK(admission_check_.AdoptJob("a"));
  admission_check_.SetHasCoordinator(false);
  EXPECT_THAT(admission_check_.Check(Request("b", 33)),
              StatusIs(absl::StatusCode::kUnavailable,
                       HasSubstr("works for another job")));
  admission_check_.SetHasCoordinator(true);
  EXPECT_THAT(admission_check_.Check(Request("b", 33)),
              StatusIs(absl::StatusCode::kPermissionDenied));
}

TEST_F(AdmissionCheckTest, ARefusalRevealsNeitherJobNorIncarnation) {
  ASSERT_OK(admission_check_.AdoptJob("a-secret"));
  for (const absl::Status& refusal :
       {admission_check_.Check(Request("b", 0)),
        admission_check_.Check(Request("b", 34)),
        admission_check_.Check(Request("a-secret", 34)),
        admission_check_.AdoptJob("b")}) {
    ASSERT_FALSE(refusal.ok());
    EXPECT_THAT(std::string(refusal.message()),
                AllOf(Not(HasSubstr("a-secret")),
                      Not(HasSubstr(IncarnationString(33)))));
    EXPECT_EQ(GetTaskFailure(refusal)->job_id(), "");
    EXPECT_EQ(GetTaskFailure(refusal)->incarnation(), 0);
  }
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
