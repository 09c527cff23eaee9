#include "common/io/storage/open_input.h"

#include <stdlib.h>

#include <string>

#include "absl/status/status.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/system/confined_files.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using testing::HasSubstr;

TEST(OpenInputTest, UrlsNeedAFolderThatIsAUrl) {
  for (const char* const name :
       {"AWS_ACCESS_KEY_ID", "AWS_PROFILE", "AWS_SECRET_ACCESS_KEY", "HOME",
        "AWS_SHARED_CREDENTIALS_FILE"}) {
    unsetenv(name);
  }
  ConfineReads({"/", "s3://ours/a"});
  EXPECT_OK(OpenInput("/proc/self/exe"));
  for (const std::string url : {"s3://theirs/a/x", "s3://ours/ab",
                                "gs://ours/a/x", "s3://ours/a/../x"}) {
    EXPECT_THAT(OpenInput(url), StatusIs(absl::StatusCode::kPermissionDenied,
                                         HasSubstr("--data_root")))
        << url;
  }
  // The URL is allowed, so its credentials are searched for.
  EXPECT_THAT(OpenInput("s3://ours/a/x"),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("AWS_SECRET_ACCESS_KEY")));
}

}  // namespace
}  // namespace muster
