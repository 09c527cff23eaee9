#include "common/io/checkpoint/checkpoint_state.h"

#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/io/storage/disk.h"
#include "common/io/storage/testing/simulated_disk.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

absl::Time Seconds(double seconds) {
  return absl::UnixEpoch() + absl::Seconds(seconds);
}

CheckpointState TwoCheckpoints() {
  return {.checkpoints = {{"runs/ckpt-1", Seconds(1700000000.25)},
                          {"runs/ckpt-2", Seconds(1700000001.5)}},
          .last_preserved = Seconds(1699999999)};
}

TEST(CheckpointStateTest, IsWrittenInTensorFlowsFormat) {
  SimulatedDisk disk;
  ASSERT_OK(WriteCheckpointState(&disk, "runs", TwoCheckpoints()));
  const std::string text = disk.Get("runs/checkpoint");
  EXPECT_THAT(text, StartsWith("# crc32c"));
  EXPECT_EQ(text.substr(text.find('\n') + 1),
            "model_checkpoint_path: \"ckpt-2\"\n"
            "all_model_checkpoint_paths: \"ckpt-1\"\n"
            "all_model_checkpoint_paths: \"ckpt-2\"\n"
            "all_model_checkpoint_timestamps: 1700000000.25\n"
            "all_model_checkpoint_timestamps: 1700000001.5\n"
            "last_preserved_timestamp: 1699999999\n");
  ASSERT_OK_AND_ASSIGN(const CheckpointState state,
                       ReadCheckpointState(&disk, "runs"));
  ASSERT_EQ(state.checkpoints.size(), 2u);
  EXPECT_EQ(state.checkpoints[0].prefix, "runs/ckpt-1");
  EXPECT_EQ(state.checkpoints[1].written, Seconds(1700000001.5));
  EXPECT_EQ(state.last_preserved, Seconds(1699999999));
}

TEST(CheckpointStateTest, DetectsEveryChangeOfContent) {
  SimulatedDisk disk;
  ASSERT_OK(WriteCheckpointState(&disk, "runs", TwoCheckpoints()));
  const std::string text = disk.Get("runs/checkpoint");
  const auto is_refused = [&](const std::string& damaged) {
    disk.Set("runs/checkpoint", damaged);
    const auto state = ReadCheckpointState(&disk, "runs");
    if (!state.ok()) {
      EXPECT_THAT(state, StatusIs(absl::StatusCode::kDataLoss,
                                  HasSubstr("runs/checkpoint")));
      return true;
    }
    return false;
  };
  const size_t first_line = text.find('\n');
  for (size_t at = 0; at < text.size(); ++at) {
    EXPECT_TRUE(is_refused(text.substr(0, at))) << at;
    for (int bit = 0; bit < 8; ++bit) {
      std::string damaged = text;
      damaged[at] = static_cast<char>(damaged[at] ^ (1 << bit));
      // A change may turn the first line into a comment without a checksum.
      if (is_refused(damaged) || at < first_line) continue;
      ADD_FAILURE() << "byte " << at << " bit " << bit;
    }
  }
}

TEST(CheckpointStateTest, AcceptsAnEditedFileWithoutChecksum) {
  SimulatedDisk disk;
  disk.Set("runs/checkpoint",
           "model_checkpoint_path: \"ckpt-2\"\n"
           "all_model_checkpoint_paths: \"ckpt-1\"\n"
           "all_model_checkpoint_paths: \"ckpt-2\"\n"
           "all_model_checkpoint_paths: \"ckpt-3\"\n"
           "a_field_of_tomorrow: 7\n");
  ASSERT_OK_AND_ASSIGN(CheckpointState state,
                       ReadCheckpointState(&disk, "runs"));
  ASSERT_EQ(state.checkpoints.size(), 2u);
  EXPECT_EQ(state.checkpoints.back().prefix, "runs/ckpt-2");

  disk.Set("runs/checkpoint", "model_checkpoint_path: \"/other/best\"\n");
  ASSERT_OK_AND_ASSIGN(state, ReadCheckpointState(&disk, "runs"));
  ASSERT_EQ(state.checkpoints.size(), 1u);
  EXPECT_EQ(state.checkpoints[0].prefix, "/other/best");
}

TEST(CheckpointStateTest, DeepNestingInUnknownFieldsIsRefused) {
  const auto nested = [](int depth) {
    std::string text = "model_checkpoint_path: \"ckpt-1\" later_field ";
    for (int i = 0; i < depth; ++i) text += "{ a ";
    text += ": 1 ";
    text.append(depth, '}');
    return text;
  };
  SimulatedDisk disk;
  disk.Set("runs/checkpoint", nested(20));
  EXPECT_OK(ReadCheckpointState(&disk, "runs").status());
  disk.Set("runs/checkpoint", nested(100000));
  EXPECT_THAT(ReadCheckpointState(&disk, "runs"),
              StatusIs(absl::StatusCode::kDataLoss,
                       HasSubstr("runs/checkpoint is not a valid")));
}

TEST(CheckpointStateTest, MissingFileIsNotFound) {
  SimulatedDisk disk;
  EXPECT_THAT(ReadCheckpointState(&disk, "runs"),
              StatusIs(absl::StatusCode::kNotFound));
}

}  // namespace
}  // namespace muster
