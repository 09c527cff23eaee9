// What job files say of optimizers.
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/compute/optimizers/complete_optimizer.h"
#include "common/compute/optimizers/optimizers.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/learn/train/job/resolved_job.h"
#include "common/learn/train/job/testing/parse_job_message.h"
#include "common/learn/train/model.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/training_job.pb.h"

namespace muster {
namespace {

using ::testing::HasSubstr;

constexpr char kJob[] = R"(
  model { sequential { layers { dense { units: 3 } } } }
  train { synthetic { example_count: 30 feature_count: 6 class_count: 3 } }
  batch_size: 10
  optimizer { adam {} }
  loss { sparse_categorical_crossentropy { from_logits: true } }
)";

proto::TrainingJob ParseJob(const std::string& text) {
  proto::TrainingJob job;
  EXPECT_TRUE(ParseJobMessage(text, &job));
  return job;
}

// A line for each thing that job files say of optimizers.
TEST(JobOptimizerTest, OptimizersAreWrittenAsKerasNamesThem) {
  const auto checked = [](const std::string& optimizer) {
    proto::TrainingJob job = ParseJob(kJob);
    *job.mutable_optimizer() =
        ParseJob(absl::StrCat("optimizer { ", optimizer, " }")).optimizer();
    return ValidateJob(job);
  };
  for (const OptimizerKind* const kind : kOptimizerKinds) {
    const std::string name = OptimizerName(kind->defaults().message());
    EXPECT_OK(checked(name + " {}"));
    EXPECT_OK(checked(
        name + " { learning_rate: 0.01 } weight_decay: 0.1 clipnorm: 1"));
  }
  for (const std::string text : {
           "sgd { learning_rate: 0.1 momentum: 0.9 nesterov: true } "
           "weight_decay: 0.1",
           "adam { beta_1: 0.9 beta_2: 0.99 epsilon: 1e-6 amsgrad: true } "
           "clipvalue: 1",
           "adamw {} weight_decay: 0.01 global_clipnorm: 1",
           "adagrad { initial_accumulator_value: 0.1 epsilon: 1e-6 }",
           "rmsprop { rho: 0.8 momentum: 0.1 epsilon: 1e-6 centered: true }",
           "ftrl { learning_rate_power: -0.5 initial_accumulator_value: 0.1 "
           "l1_regularization_strength: 0.1 l2_regularization_strength: 0.1 "
           "l2_shrinkage_regularization_strength: 0.1 beta: 0.1 }",
           "sgd {} learning_rate_schedule { exponential_decay { "
           "initial_learning_rate: 1 decay_steps: 2 decay_rate: 0.5 "
           "staircase: true } }",
           "sgd {} learning_rate_schedule { piecewise_constant_decay { "
           "boundaries: 1 boundaries: 2 values: 1 values: 2 values: 3 } }",
           "sgd {} learning_rate_schedule { polynomial_decay { "
           "initial_learning_rate: 1 decay_steps: 2 end_learning_rate: 0.1 "
           "power: 2 cycle: true } }",
           "sgd {} learning_rate_schedule { cosine_decay { "
           "initial_learning_rate: 1 decay_steps: 2 alpha: 0.1 "
           "warmup_target: 2 warmup_steps: 3 } }",
           "sgd {} learning_rate_schedule { inverse_time_decay { "
           "initial_learning_rate: 1 decay_steps: 2 decay_rate: 0.5 } }",
       }) {
    EXPECT_OK(checked(text)) << text;
  }
  EXPECT_THAT(checked("adam { learning_rate: 0.5 } learning_rate_schedule { "
                      "cosine_decay { initial_learning_rate: 1 "
                      "decay_steps: 9 } }"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("optimizer: adam: both learning_rate (0.5) "
                                 "and learning_rate_schedule are given")));
}

TEST(JobOptimizerTest, TheOptimizerMayHaveALossScale) {
  proto::TrainingJob job = ParseJob(kJob);
  job.set_auto_scale_loss(false);
  job.mutable_optimizer()->mutable_loss_scale()->set_initial_scale(8);
  ASSERT_OK_AND_ASSIGN(const ResolvedJob resolved, ResolvedJob::FromProto(job));
  ASSERT_OK_AND_ASSIGN(const CompileOptions options,
                       resolved.BuildCompileOptions(/*seed=*/0));
  EXPECT_FALSE(options.auto_scale_loss);
  EXPECT_EQ(options.optimizer.message().loss_scale().initial_scale(), 8);
}

}  // namespace
}  // namespace muster
