#include "common/io/storage/object_store_access.h"

#include <cstdlib>
#include <fstream>
#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/core/base/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

absl::StatusOr<ObjectStoreAccess> Find(
    const std::string& scheme, std::map<std::string, std::string> variables) {
  variables.try_emplace("HOME", "/no/such/home");
  return FindObjectStoreAccess(
      scheme, [&variables](const char* name) -> const char* {
        const auto found = variables.find(name);
        return found == variables.end() ? nullptr : found->second.c_str();
      });
}

TEST(ObjectStoreAccessTest, ReadsTheVariablesOfAmazonsTools) {
  ASSERT_OK_AND_ASSIGN(const ObjectStoreAccess access,
                       Find("s3", {{"AWS_ACCESS_KEY_ID", "id"},
                                   {"AWS_SECRET_ACCESS_KEY", "secret"},
                                   {"AWS_SESSION_TOKEN", "token"},
                                   {"AWS_DEFAULT_REGION", "eu-1"},
                                   {"AWS_ENDPOINT_URL", "http://host:9000/"}}));
  EXPECT_EQ(access.access_key_id, "id");
  EXPECT_EQ(access.secret_access_key, "secret");
  EXPECT_EQ(access.session_token, "token");
  EXPECT_EQ(access.region, "eu-1");
  EXPECT_EQ(access.endpoint, "http://host:9000");
}

TEST(ObjectStoreAccessTest, GoogleHasItsOwnKeysAndEndpoint) {
  ASSERT_OK_AND_ASSIGN(const ObjectStoreAccess own,
                       Find("gs", {{"GS_ACCESS_KEY_ID", "GOOG1"},
                                   {"GS_SECRET_ACCESS_KEY", "google"},
                                   {"AWS_ACCESS_KEY_ID", "id"},
                                   {"AWS_SECRET_ACCESS_KEY", "secret"},
                                   {"AWS_SESSION_TOKEN", "token"},
                                   {"AWS_ENDPOINT_URL", "http://host"}}));
  EXPECT_EQ(own.access_key_id, "GOOG1");
  EXPECT_EQ(own.secret_access_key, "google");
  EXPECT_EQ(own.session_token, "");
  EXPECT_EQ(own.endpoint, "https://storage.googleapis.com");
  ASSERT_OK_AND_ASSIGN(const ObjectStoreAccess shared,
                       Find("gs", {{"AWS_ACCESS_KEY_ID", "id"},
                                   {"AWS_SECRET_ACCESS_KEY", "secret"}}));
  EXPECT_EQ(shared.access_key_id, "id");
}

TEST(ObjectStoreAccessTest, ReadsAProfile) {
  const std::string path =
      absl::StrCat(getenv("TEST_TMPDIR"), "/", "credentials");
  std::ofstream(path) << "# of two users\n[default]\n"
                         "aws_access_key_id = first\n"
                         "aws_secret_access_key=one\n\n"
                         "[ other ]\nAWS_ACCESS_KEY_ID=second\n"
                         "aws_secret_access_key = two==\nregion=eu-2\n";
  ASSERT_OK_AND_ASSIGN(const ObjectStoreAccess first,
                       Find("s3", {{"AWS_SHARED_CREDENTIALS_FILE", path}}));
  EXPECT_EQ(first.access_key_id, "first");
  EXPECT_EQ(first.secret_access_key, "one");
  EXPECT_EQ(first.region, "us-east-1");
  ASSERT_OK_AND_ASSIGN(const ObjectStoreAccess second,
                       Find("s3", {{"AWS_SHARED_CREDENTIALS_FILE", path},
                                   {"AWS_PROFILE", "other"}}));
  EXPECT_EQ(second.access_key_id, "second");
  EXPECT_EQ(second.secret_access_key, "two==");
  EXPECT_EQ(second.region, "eu-2");
  EXPECT_THAT(Find("s3", {{"AWS_SHARED_CREDENTIALS_FILE", path},
                          {"AWS_PROFILE", "third"}}),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       AllOf(HasSubstr("\"third\""), HasSubstr(path),
                             HasSubstr("AWS_SECRET_ACCESS_KEY"))));
}

TEST(ObjectStoreAccessTest, NamesTheMissingVariable) {
  EXPECT_THAT(Find("s3", {{"AWS_ACCESS_KEY_ID", "id"}}),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("not AWS_SECRET_ACCESS_KEY")));
  EXPECT_THAT(Find("gs", {}), StatusIs(absl::StatusCode::kFailedPrecondition,
                                       HasSubstr("GS_SECRET_ACCESS_KEY")));
}

TEST(ObjectStoreAccessTest, RefusesMalformedValuesWithoutRepeatingThem) {
  for (const std::string endpoint :
       {"host:9000", "ftp://host", "http://", "https://user:hidden@host"}) {
    EXPECT_THAT(
        Find("s3", {{"AWS_ENDPOINT_URL", endpoint}}),
        StatusIs(absl::StatusCode::kInvalidArgument,
                 AllOf(HasSubstr("AWS_ENDPOINT_URL"), Not(HasSubstr("hid")))));
  }
  EXPECT_THAT(
      Find("s3", {{"AWS_ACCESS_KEY_ID", "id"},
                  {"AWS_SECRET_ACCESS_KEY", "hid\r\nden: x"}}),
      StatusIs(absl::StatusCode::kInvalidArgument, Not(HasSubstr("hid"))));
}

}  // namespace
}  // namespace muster
