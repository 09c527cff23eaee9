#include "common/core/system/small_file.h"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/core/base/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string PathOf(const std::string& name) {
  return absl::StrCat(testing::TempDir(), "/small_file_", name);
}

std::string Write(const std::string& name, const std::string& content) {
  std::ofstream(PathOf(name), std::ios::binary) << content;
  return PathOf(name);
}

TEST(SmallFileTest, ReadsAFileToItsEnd) {
  const std::string bytes("a\0\n\xff", 4);
  EXPECT_THAT(ReadSmallFile(Write("bytes", bytes)), IsOkAndHolds(bytes));
  EXPECT_THAT(ReadSmallFile(Write("empty", "")), IsOkAndHolds(""));
  const std::string large(300'000, 'x');
  EXPECT_THAT(ReadSmallFile(Write("large", large)), IsOkAndHolds(large));
  EXPECT_THAT(ReadSmallFile("/dev/null"), IsOkAndHolds(""));
}

TEST(SmallFileTest, RejectsFilesThatAreTooLarge) {
  const std::string path = Write("ten", "0123456789");
  EXPECT_OK(ReadSmallFile(path, {.bytes_max = 10}));
  EXPECT_THAT(ReadSmallFile(path, {.bytes_max = 9}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr(path), HasSubstr("more than 9 bytes"))));
  // A file without end, and a file of 20 GB that is never read.
  EXPECT_THAT(
      ReadSmallFile("/dev/zero"),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("/dev/zero")));
  const std::string sparse = Write("sparse", "");
  std::filesystem::resize_file(sparse, 20'000'000'000);
  EXPECT_THAT(ReadSmallFile(sparse),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST(SmallFileTest, NamesTheErrorOfTheSystem) {
  EXPECT_THAT(ReadSmallFile(PathOf("none")),
              StatusIs(absl::StatusCode::kNotFound,
                       AllOf(HasSubstr(PathOf("none")),
                             HasSubstr("No such file or directory"))));
  EXPECT_THAT(
      ReadSmallFile(testing::TempDir()),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("is a folder")));
  // Reads of this file begin and fail: nothing is mapped at address 0.
  const absl::Status failed = ReadSmallFile("/proc/self/mem").status();
  EXPECT_FALSE(failed.ok());
  EXPECT_THAT(failed.message(), HasSubstr("/proc/self/mem: "));
}

TEST(SmallFileTest, APipeWithoutAWriterEndsTheWait) {
  const std::string pipe = PathOf("pipe");
  unlink(pipe.c_str());
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_THAT(ReadSmallFile(pipe, {.timeout = absl::Milliseconds(20)}),
              StatusIs(absl::StatusCode::kDeadlineExceeded,
                       AllOf(HasSubstr(pipe), HasSubstr("within 20ms"))));
  // Opens the pipe for writing, so that the reading thread can end.
  std::ofstream(pipe) << "text";
}

TEST(SmallFileTest, ReadsKernelFiles) {
  const absl::StatusOr<std::string> cgroups =
      ReadKernelFile("/proc/self/status");
  ASSERT_OK(cgroups);
  EXPECT_THAT(*cgroups, HasSubstr("Pid:"));
  EXPECT_THAT(ReadKernelFile("/proc/none"),
              StatusIs(absl::StatusCode::kNotFound));
}

}  // namespace
}  // namespace muster
