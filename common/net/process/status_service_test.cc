#include "common/net/process/status_service.h"

#include <fstream>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/net/process/exit_code.h"
#include "common/net/process/task_options.h"
#include "common/net/rpc/identity.h"
#include "common/net/status/http_server.h"
#include "common/net/status/testing/http_client.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using testing::HasSubstr;

constexpr char kToken[] = "0123456789abcdef0123456789abcdef";

const TaskIdentity kSelf = {.task_type = "worker", .task_index = 1};

TaskOptions WithToken(const std::string& token) {
  const std::string path = testing::TempDir() + "/status_token";
  std::ofstream(path) << token << "\n";
  TaskOptions options;
  options.status = {
      .port = 0, .host = "127.0.0.1", .token_file = path, .job_label = "test"};
  return options;
}

TEST(StatusServiceTest, IsOffByDefault) {
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<HttpServer> pages,
                       ServeStatusPages(TaskOptions(), kSelf));
  EXPECT_EQ(pages, nullptr);
}

TEST(StatusServiceTest, RequiresTheTokenOfTheFile) {
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<HttpServer> pages,
                       ServeStatusPages(WithToken(kToken), kSelf));
  ASSERT_NE(pages, nullptr);
  EXPECT_EQ(HttpGet(pages->url(), "/metrics")->status_code, 401);
  EXPECT_EQ(HttpGet(pages->url(), "/metrics",
                    absl::StrCat("Authorization: Bearer ", kToken, "\r\n"))
                ->status_code,
            200);
}

TEST(StatusServiceTest, RefusesAShortOrMissingToken) {
  const auto is_usage_error = [](const absl::Status& status) {
    return ExitCodeOf(status) == ExitCode::kUsage;
  };
  const absl::Status brief =
      ServeStatusPages(WithToken("0123456789"), kSelf).status();
  EXPECT_THAT(brief, StatusIs(absl::StatusCode::kInvalidArgument,
                              HasSubstr("has 10 characters")));
  EXPECT_TRUE(is_usage_error(brief));
  TaskOptions options = WithToken(kToken);
  options.status.token_file += ".missing";
  const absl::Status missing = ServeStatusPages(options, kSelf).status();
  EXPECT_THAT(missing, StatusIs(absl::StatusCode::kInvalidArgument,
                                HasSubstr("No such file")));
  EXPECT_TRUE(is_usage_error(missing));
}

}  // namespace
}  // namespace muster
