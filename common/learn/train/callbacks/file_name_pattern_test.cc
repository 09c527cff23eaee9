#include "common/learn/train/callbacks/file_name_pattern.h"

#include "absl/status/status.h"
#include "common/core/base/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using ::testing::HasSubstr;

TEST(FileNamePatternTest, PrintsAsPythonDoes) {
  const Logs logs = {{"val_loss", 0.123456}, {"accuracy", 0.5}};
  const auto format = [&](const char* pattern) {
    return FormatFileName(pattern, 7, 12, logs);
  };
  EXPECT_THAT(format("plain"), IsOkAndHolds("plain"));
  EXPECT_THAT(format("w-{epoch:02d}-{val_loss:.2f}"),
              IsOkAndHolds("w-07-0.12"));
  EXPECT_THAT(format("{epoch}.{batch:04d}"), IsOkAndHolds("7.0012"));
  EXPECT_THAT(format("{accuracy}"), IsOkAndHolds("0.5"));
  EXPECT_THAT(format("{val_loss:.1e}"), IsOkAndHolds("1.2e-01"));
  EXPECT_THAT(format("{epoch:.1f}"), IsOkAndHolds("7.0"));
  EXPECT_THAT(format("{{{epoch}}}"), IsOkAndHolds("{7}"));
}

TEST(FileNamePatternTest, MistakesAreNamed) {
  const auto refused = [](const char* pattern, const char* why) {
    EXPECT_THAT(FormatFileName(pattern, 1, 1, {{"loss", 1}}),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(why)));
  };
  refused("{val_loss}", "there are epoch, batch, loss");
  refused("{epoch:x}", "\"x\" is no format");
  refused("{epoch:02d", "a brace stands alone");
  refused("epoch}", "a brace stands alone");
  refused("{loss:d}", "is no integer");
  refused("{loss:.f}", "is no format");
  refused("{loss:9999f}", "is no format");
}

}  // namespace
}  // namespace muster
