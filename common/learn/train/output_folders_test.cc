#include "common/learn/train/output_folders.h"

#include <filesystem>
#include <fstream>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/net/process/exit_code.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using ::testing::HasSubstr;

TEST(OutputFoldersTest, MakesWhatIsMissingAndLeavesNothingInIt) {
  const std::string folder =
      absl::StrCat(::testing::TempDir(), "/made/for/results");
  ASSERT_OK(EnsureWritable({folder, "."}));
  EXPECT_TRUE(std::filesystem::is_directory(folder));
  EXPECT_TRUE(std::filesystem::is_empty(folder));
}

TEST(OutputFoldersTest, WhatCannotBeWrittenToIsAUsageError) {
  const std::string file = absl::StrCat(::testing::TempDir(), "/in_the_way");
  std::ofstream(file) << "x";
  // The last folder exists but is not writable.
  for (const std::string& folder :
       {file, file + "/results", std::string("/proc/results"),
        std::string("/proc")}) {
    const absl::Status status = EnsureWritable({".", folder});
    EXPECT_THAT(status, StatusIs(absl::StatusCode::kInvalidArgument,
                                 HasSubstr(folder)));
    EXPECT_EQ(ExitCodeOf(status), ExitCode::kUsage);
  }
}

TEST(OutputFoldersTest, TheFolderOfAFileDependsOnNoValue) {
  EXPECT_EQ(FolderOfFile("run/log.csv"), "run");
  EXPECT_EQ(FolderOfFile("log.csv"), ".");
  EXPECT_EQ(FolderOfFile("run/{epoch:02d}/weights"), "run");
  EXPECT_EQ(FolderOfFile("run/w-{epoch}"), "run");
  EXPECT_EQ(FolderOfFile("{epoch}"), ".");
}

}  // namespace
}  // namespace muster
