#include <filesystem>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/io/keras/keras_archive.h"
#include "common/io/storage/disk.h"
#include "common/learn/train/keras/keras_model.h"
#include "common/learn/train/keras/keras_weights.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// Every optimizer, and adapted layers.
TEST(KerasWeightsSizeTest, FilesOfKerasAreWithinTheLimit) {
  int count = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator("tests/golden/keras_files")) {
    const std::string path = entry.path();
    if (!absl::EndsWith(path, ".keras")) continue;
    ++count;
    ASSERT_OK_AND_ASSIGN(KerasArchive archive,
                         ReadKerasArchive(Disk::Real(), path));
    const auto size_bytes = static_cast<int64_t>(archive.weights.size());
    archive.weights.clear();
    const std::optional<int64_t> limit = KerasWeightsSizeBytesMax(archive);
    ASSERT_TRUE(limit.has_value()) << path;
    EXPECT_LE(size_bytes, *limit) << path;
    // A model of a few weights is no reason for more.
    EXPECT_LT(*limit, 32 << 20) << path;
  }
  EXPECT_GT(count, 20);
}

// A member that is larger than the model is not decompressed.
TEST(KerasWeightsSizeTest, LargerWeightsAreRefusedWithBothSizes) {
  ASSERT_OK_AND_ASSIGN(
      KerasArchive archive,
      ReadKerasArchive(Disk::Real(), "tests/golden/keras_files/mlp.keras"));
  const int64_t limit = KerasWeightsSizeBytesMax(archive).value();
  archive.weights = std::string(limit + 1, 'x');
  const std::string path = testing::TempDir() + "/large.keras";
  ASSERT_OK(WriteKerasArchive(Disk::Real(), path, archive, absl::Now()));
  EXPECT_THAT(ReadKerasModel(Disk::Real(), path).status(),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       AllOf(HasSubstr(absl::StrCat("has ", limit + 1,
                                                    " bytes; at "
                                                    "most ",
                                                    limit, " are read")),
                             HasSubstr("the model in config.json"))));
}

TEST(KerasWeightsSizeTest, OtherConfigsHaveNoLimit) {
  EXPECT_EQ(KerasWeightsSizeBytesMax({.config = "{"}), std::nullopt);
  EXPECT_EQ(KerasWeightsSizeBytesMax({.config = "{}"}), std::nullopt);
}

}  // namespace
}  // namespace muster
