#include "deploy/musterctl/copy_files.h"

#include <cstdlib>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/io/storage/disk.h"
#include "common/io/storage/testing/s3_server.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using testing::HasSubstr;

constexpr int64_t kSizeMax = 1 << 20;

class CopyFilesTest : public testing::Test {
 protected:
  std::string Folder(const std::string& name) {
    return absl::StrCat(testing::TempDir(), "/copy_files_test/", name);
  }
  void Write(const std::string& path, const std::string& content) {
    ASSERT_OK(disk_->MakeFolder(FolderOf(path)));
    ASSERT_OK(ReplaceFile(disk_, path, content));
  }

  Disk* const disk_ = Disk::Real();
};

TEST_F(CopyFilesTest, CopiesToAnObjectStoreAndBack) {
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<S3Server> server,
                       S3Server::Start());
  for (const auto& [name, value] : server->Environment()) {
    setenv(name.c_str(), value.c_str(), 1);
  }
  const std::string large(3 << 20, 'x');
  Write(Folder("from/model.keras"), large);
  Write(Folder("from/data/train/0.npy"), "numbers");
  Write(Folder("from/data/empty"), "");
  const std::string url = "s3://bucket/runs/7";
  ASSERT_OK(CopyFiles(Folder("from"), url, disk_));
  ASSERT_OK(CopyFiles(url, Folder("back"), disk_));
  EXPECT_THAT(ReadFile(disk_, Folder("back/model.keras"), 4 << 20),
              IsOkAndHolds(large));
  EXPECT_THAT(ReadFile(disk_, Folder("back/data/train/0.npy"), kSizeMax),
              IsOkAndHolds("numbers"));
  EXPECT_THAT(ReadFile(disk_, Folder("back/data/empty"), kSizeMax),
              IsOkAndHolds(""));
}

TEST_F(CopyFilesTest, ReplacesFiles) {
  Write(Folder("new/a"), "new");
  Write(Folder("old/a"), "a longer old content");
  ASSERT_OK(CopyFiles(Folder("new"), Folder("old"), disk_));
  EXPECT_THAT(ReadFile(disk_, Folder("old/a"), kSizeMax), IsOkAndHolds("new"));
}

TEST_F(CopyFilesTest, NamesWhatIsMissing) {
  EXPECT_THAT(
      CopyFiles(Folder("none"), Folder("to"), disk_),
      StatusIs(absl::StatusCode::kNotFound, HasSubstr("copy_files_test/none")));
  EXPECT_THAT(CopyFiles("-", "-", disk_),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("expected a folder or a URL")));
}

}  // namespace
}  // namespace muster
