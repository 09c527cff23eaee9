#include "deploy/launch/executable_finder.h"

#include <errno.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/core/base/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class ExecutableFinderTest : public testing::Test {
 protected:
  // Creates an executable file at `path` in the test's folder, and returns its
  // full path.
  std::string Make(const std::string& path) {
    const std::filesystem::path file =
        std::filesystem::path(testing::TempDir()) /
        testing::UnitTest::GetInstance()->current_test_info()->name() / path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << "#!/bin/sh\n";
    std::filesystem::permissions(file, std::filesystem::perms::owner_all);
    return file.string();
  }
};

TEST_F(ExecutableFinderTest, LooksBesideTheLauncher) {
  const std::string launch = Make("bin/launch");
  const std::string worker = Make("bin/worker");
  EXPECT_THAT(FindExecutable("worker", launch, ""), IsOkAndHolds(worker));
}

TEST_F(ExecutableFinderTest, LooksWhereTheBuildPutsThings) {
  const std::string launch = Make("deploy/launch/launch");
  const std::string worker = Make("worker/worker");
  EXPECT_THAT(FindExecutable("worker", launch, ""), IsOkAndHolds(worker));
}

TEST_F(ExecutableFinderTest, AFolderGivenIsTheOnlyOneLookedAt) {
  const std::string launch = Make("bin/launch");
  Make("bin/worker");
  const std::string other = Make("other/worker");
  const std::string folder =
      std::filesystem::path(other).parent_path().string();
  EXPECT_THAT(FindExecutable("worker", launch, folder), IsOkAndHolds(other));
  EXPECT_THAT(FindExecutable("ps", launch, folder),
              StatusIs(absl::StatusCode::kNotFound,
                       AllOf(HasSubstr(folder + "/ps"),
                             HasSubstr("bazel build //ps"))));
}

TEST_F(ExecutableFinderTest, SaysWhatBuildsAnExecutable) {
  for (const auto& [name, target] :
       {std::pair("coordinator", "//coordinator"), std::pair("ps", "//ps"),
        std::pair("worker", "//worker"), std::pair("launch", "//deploy/launch"),
        std::pair("musterctl", "//deploy/musterctl")}) {
    EXPECT_THAT(
        FindExecutable(name, "/nowhere/launch", ""),
        StatusIs(absl::StatusCode::kNotFound,
                 HasSubstr(absl::StrCat("(bazel build ", target, ")"))));
  }
}

TEST_F(ExecutableFinderTest, OwnPathIsTheExecutable) {
  EXPECT_EQ(std::filesystem::path(OwnPath()).filename(),
            program_invocation_short_name);
}

}  // namespace
}  // namespace muster
