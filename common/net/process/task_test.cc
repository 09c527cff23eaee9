#include "common/net/process/task.h"

#include <string>

#include "common/core/base/testing/status_matchers.h"
#include "common/net/process/task_options.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

TEST(TaskTest, FlagsAreTheSettingsThatTheProgramDeclares) {
  TaskOptions options;
  options.settings = {{"data_dir", "/data"}, {"epochs", ""}};
  const Task task(options, {}, 7, nullptr);
  EXPECT_THAT(task.flag("data_dir"), IsOkAndHolds("/data"));
  EXPECT_THAT(task.flag("epochs"), IsOkAndHolds(""));
  EXPECT_THAT(task.flag("data_dri"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "Task::flag(): the program declares no setting "
                       "\"data_dri\", only data_dir, epochs; did you mean "
                       "\"data_dir\"?"));
}

}  // namespace
}  // namespace muster
