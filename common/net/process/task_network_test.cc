#include "common/net/process/task_network.h"

#include <filesystem>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/net/process/exit_code.h"
#include "common/net/rpc/certificate_authority.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using testing::AllOf;
using testing::HasSubstr;

TEST(TaskNetworkTest, ATaskOnTheNetworkNeedsACertificateOrInsecure) {
  TaskOptions options;
  EXPECT_OK(CheckTransportIsProtected(options));
  options.remote_address = "h1:2222";
  EXPECT_THAT(CheckTransportIsProtected(options),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("h1:2222"), HasSubstr("--tls_cert"),
                             HasSubstr("--insecure"))));
  options.insecure = true;
  EXPECT_OK(CheckTransportIsProtected(options));
  options.insecure = false;
  options.tls = {"task.pem", "task.key", "ca.pem"};
  EXPECT_OK(CheckTransportIsProtected(options));
}

TEST(TaskNetworkTest, ACertificateOfAnotherTaskIsAMistake) {
  const std::string folder =
      absl::StrCat(testing::TempDir(), "/another_task_certificate");
  std::filesystem::create_directories(folder);
  ASSERT_OK_AND_ASSIGN(const auto authority,
                       CertificateAuthority::Create(absl::Hours(1)));
  TaskOptions options;
  options.config.task = {TaskType::kWorker, 1};
  ASSERT_OK_AND_ASSIGN(
      options.tls, WriteTaskFiles(*authority, {"job", "worker", 0}, folder));
  const absl::Status status = MakeTaskNetwork(options).status();
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kInvalidArgument,
                               HasSubstr("certificate of worker 0")));
  EXPECT_EQ(ExitCodeOf(status), ExitCode::kUsage);
}

}  // namespace
}  // namespace muster
