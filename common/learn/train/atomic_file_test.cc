#include "common/learn/train/atomic_file.h"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "absl/status/status.h"
#include "common/core/base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

namespace fs = std::filesystem;

std::string Content(const fs::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(AtomicFileTest, WritesIntoANewFolderAndLeavesNothingBeside) {
  const fs::path folder = fs::path(testing::TempDir()) / "a" / "b";
  const fs::path path = folder / "file";
  ASSERT_OK(WriteFileAtomically(path, "one"));
  ASSERT_OK(WriteFileAtomically(path, "two"));
  EXPECT_EQ(Content(path), "two");
  EXPECT_EQ(std::distance(fs::directory_iterator(folder), {}), 1);
}

TEST(AtomicFileTest, KeepsTheOldFileWhenItCannotBeReplaced) {
  // A folder that is not empty cannot be replaced by a file.
  const fs::path folder = fs::path(testing::TempDir()) / "c";
  const fs::path path = folder / "is_a_folder";
  fs::create_directories(path);
  ASSERT_OK(WriteFileAtomically(path / "inner", "kept"));
  EXPECT_THAT(
      WriteFileAtomically(path, "new"),
      StatusIs(absl::StatusCode::kInternal, testing::HasSubstr(path.string())));
  EXPECT_EQ(Content(path / "inner"), "kept");
  EXPECT_EQ(std::distance(fs::directory_iterator(folder), {}), 1);
}

}  // namespace
}  // namespace muster
