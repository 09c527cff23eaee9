#include "common/core/system/confined_files.h"

#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/core/base/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class ConfinedFilesTest : public testing::Test {
 protected:
  ConfinedFilesTest()
      : base_(absl::StrCat(
            testing::TempDir(), "/confined_files/",
            testing::UnitTest::GetInstance()->current_test_info()->name())),
        root_(base_ + "/root"),
        outside_(base_ + "/root_but_not_it") {
    std::filesystem::create_directories(root_ + "/folder");
    std::filesystem::create_directories(outside_);
    for (const std::string& file :
         {root_ + "/in", root_ + "/folder/in", outside_ + "/out"}) {
      std::ofstream(file) << "content";
    }
    ConfineReads({root_});
  }
  ~ConfinedFilesTest() override { std::filesystem::remove_all(base_); }

  // True if the file can be opened.
  static bool Opens(const std::string& path) {
    const absl::StatusOr<int> file = OpenToRead(path);
    if (!file.ok() || *file < 0) return false;
    close(*file);
    return true;
  }

  const std::string base_;
  const std::string root_;
  const std::string outside_;
};

TEST_F(ConfinedFilesTest, OpensFilesBelowTheRoot) {
  EXPECT_TRUE(Opens(root_ + "/in"));
  EXPECT_TRUE(Opens(root_ + "/folder/in"));
  EXPECT_TRUE(Opens(root_ + "/folder/../in"));
  std::filesystem::create_symlink("folder/in", root_ + "/link");
  EXPECT_TRUE(Opens(root_ + "/link"));
}

TEST_F(ConfinedFilesTest, OpensNothingElse) {
  std::filesystem::create_symlink(outside_ + "/out", root_ + "/link");
  std::filesystem::create_directory_symlink(outside_, root_ + "/folder_link");
  for (const std::string& path :
       {outside_ + "/out", root_ + "/../root_but_not_it/out", root_ + "/link",
        root_ + "/folder_link/out", std::string("/etc/passwd"),
        std::string("relative"), std::string(), root_}) {
    EXPECT_THAT(OpenToRead(path),
                StatusIs(absl::StatusCode::kPermissionDenied,
                         AllOf(HasSubstr(root_), HasSubstr("--data_root"))))
        << path;
  }
}

TEST_F(ConfinedFilesTest, DoesNotRevealWhichFilesExistOutside) {
  const auto refusal = [&](const std::string& name) {
    const std::string path = absl::StrCat(outside_, "/", name);
    const std::string message(OpenToRead(path).status().message());
    return message.substr(path.size());
  };
  EXPECT_EQ(refusal("out"), refusal("missing"));
}

TEST_F(ConfinedFilesTest, AMissingFileBelowTheRootIsMissing) {
  const absl::StatusOr<int> file = OpenToRead(root_ + "/missing");
  const int error = errno;
  ASSERT_OK(file);
  EXPECT_EQ(*file, -1);
  EXPECT_EQ(error, ENOENT);
}

TEST_F(ConfinedFilesTest, ARootOfAllAllowsAll) {
  ConfineReads({"/"});
  EXPECT_TRUE(Opens(outside_ + "/out"));
}

}  // namespace
}  // namespace muster
