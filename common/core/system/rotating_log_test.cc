#include <fstream>
#include <sstream>
#include <string>

#include "common/core/base/testing/status_matchers.h"
#include "common/core/system/log_file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

std::string ReadAll(const std::string& path) {
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

TEST(RotatingLogTest, AFullFileIsMovedAsideAndTheOldestIsDropped) {
  const std::string path = testing::TempDir() + "/full.log";
  RotatingLog log(path, 8);
  ASSERT_OK(log.Open());
  for (const char* line : {"one\n", "two\n", "three\n", "four\n"}) {
    log.Write(line);
  }
  EXPECT_EQ(ReadAll(path), "four\n");
  EXPECT_EQ(ReadAll(path + ".1"), "three\n");
}

TEST(RotatingLogTest, ExistingContentCountsTowardsTheLimit) {
  const std::string path = testing::TempDir() + "/again.log";
  std::ofstream(path) << "earlier\n";
  RotatingLog log(path, 10);
  ASSERT_OK(log.Open());
  log.Write("now\n");
  EXPECT_EQ(ReadAll(path), "now\n");
  EXPECT_EQ(ReadAll(path + ".1"), "earlier\n");
}

TEST(RotatingLogTest, WithoutABoundNothingIsMoved) {
  const std::string path = testing::TempDir() + "/unbounded.log";
  RotatingLog log(path, 0);
  ASSERT_OK(log.Open());
  for (int i = 0; i < 3; ++i) log.Write("line\n");
  EXPECT_EQ(ReadAll(path), "line\nline\nline\n");
  EXPECT_FALSE(std::ifstream(path + ".1").good());
}

TEST(RotatingLogTest, AFolderThatIsMissingIsReported) {
  RotatingLog log("/no/such/folder/a.log", 0);
  EXPECT_THAT(log.Open(), StatusIs(absl::StatusCode::kNotFound,
                                   testing::HasSubstr("/no/such/folder")));
}

}  // namespace
}  // namespace muster
