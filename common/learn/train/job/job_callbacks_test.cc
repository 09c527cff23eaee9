#include "common/learn/train/job/job_callbacks.h"

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/learn/train/job/testing/parse_job_message.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/training_job.pb.h"

namespace muster {
namespace {

using ::testing::HasSubstr;

proto::TrainingJob Parse(const std::string& text) {
  proto::TrainingJob job;
  EXPECT_TRUE(ParseJobMessage(text, &job)) << text;
  return job;
}

std::string ErrorOf(const std::string& text) {
  return std::string(BuildJobCallbacks(Parse(text)).status().message());
}

TEST(JobCallbacksTest, BuildsEachKindInOrder) {
  ASSERT_OK_AND_ASSIGN(
      const auto callbacks, BuildJobCallbacks(Parse(R"pb(
        callbacks { early_stopping { monitor: "accuracy" baseline: 0.5 } }
        callbacks { reduce_lr_on_plateau { factor: 0.5 mode: MIN } }
        callbacks { csv_logger { filename: "log.csv" separator: ";" } }
        callbacks { tensor_board { log_dir: "logs" update_freq: 10 } }
        callbacks { terminate_on_nan {} }
        callbacks { swap_ema_weights { swap_on_epoch: true } }
        callbacks { model_checkpoint { directory: "ckpts" max_to_keep: 0 } }
        callbacks { backup_and_restore { backup_dir: "backup" save_freq: 7 } }
      )pb")));
  EXPECT_EQ(callbacks.size(), 8u);
}

TEST(JobCallbacksTest, NamesWhatMakesNoSense) {
  EXPECT_THAT(
      ErrorOf("callbacks { terminate_on_nan {} } "
              "callbacks { reduce_lr_on_plateau { factor: 2 } }"),
      AllOf(HasSubstr("callbacks[1]"), HasSubstr("factor"), HasSubstr("2")));
  EXPECT_THAT(ErrorOf("callbacks { early_stopping { patience: -1 } }"),
              HasSubstr("patience"));
  // What is monitored is a metric of the model: Fit() checks it.
  EXPECT_EQ(ErrorOf("callbacks { early_stopping { monitor: \"mean\" } }"), "");
  EXPECT_THAT(ErrorOf("callbacks { csv_logger {} }"), HasSubstr("filename"));
  EXPECT_THAT(ErrorOf("callbacks { tensor_board { update_freq: -2 } }"),
              HasSubstr("update_freq"));
  EXPECT_THAT(ErrorOf("callbacks { model_checkpoint {} }"),
              HasSubstr("directory"));
  EXPECT_THAT(ErrorOf("callbacks { backup_and_restore { save_freq: 3 } }"),
              HasSubstr("backup_dir"));
  EXPECT_THAT(ErrorOf("callbacks {}"), HasSubstr("early_stopping"));
}

TEST(JobCallbacksTest, SaysWhatTensorBoardDoesNotWrite) {
  const absl::Status status =
      BuildJobCallbacks(
          Parse("callbacks { tensor_board { embeddings_freq: 2 } }"))
          .status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(std::string(status.message()), HasSubstr("embeddings_freq"));
}

}  // namespace
}  // namespace muster
