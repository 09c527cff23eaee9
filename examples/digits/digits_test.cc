#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/learn/train/base/progress_bar.h"
#include "common/learn/train/job/job.h"
#include "common/learn/train/run_summary.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/training_job.pb.h"

namespace muster {
namespace {

TEST(DigitsTest, OneProcessReachesTheExpectedAccuracy) {
  ASSERT_OK_AND_ASSIGN(proto::TrainingJob job,
                       ReadJobFile("examples/digits/digits.job"));
  job.clear_strategy();
  for (const uint64_t seed : {1, 2, 3}) {
    ASSERT_OK_AND_ASSIGN(const RunSummary summary,
                         RunJob(job, DefaultStrategyFactory(/*thread_count=*/1),
                                {.run_dir = testing::TempDir(),
                                 .seed = seed,
                                 .verbose = Verbosity::kSilent}));
    // The target is 0.96. Several workers lose a little of the margin.
    EXPECT_GE(summary.final.at("test_sparse_categorical_accuracy"), 0.97)
        << "seed " << seed;
    RecordProperty(
        "accuracy_" + std::to_string(seed),
        std::to_string(summary.final.at("test_sparse_categorical_accuracy")));
  }
}

absl::StatusOr<RunSummary> Train(proto::TrainingJob job,
                                 const std::string& dtype_policy) {
  job.clear_strategy();
  job.set_dtype_policy(dtype_policy);
  return RunJob(job, DefaultStrategyFactory(/*thread_count=*/1),
                {.run_dir = testing::TempDir(),
                 .seed = 1,
                 .verbose = Verbosity::kSilent});
}

TEST(DigitsTest, MixedPrecisionMatchesFloat32) {
  ASSERT_OK_AND_ASSIGN(proto::TrainingJob job,
                       ReadJobFile("examples/digits/digits.job"));
  ASSERT_OK_AND_ASSIGN(const RunSummary single, Train(job, "float32"));
  const std::vector<double>& wanted = single.history.history.at("loss");
  for (const char* const policy : {"mixed_bfloat16", "mixed_float16"}) {
    SCOPED_TRACE(policy);
    ASSERT_OK_AND_ASSIGN(const RunSummary mixed, Train(job, policy));
    const std::vector<double>& got = mixed.history.history.at("loss");
    ASSERT_EQ(got.size(), wanted.size());
    for (size_t epoch = 0; epoch < got.size(); ++epoch) {
      EXPECT_NEAR(got[epoch], wanted[epoch], 0.01 + 0.02 * wanted[epoch])
          << "epoch " << epoch;
    }
    EXPECT_NE(got, wanted) << "everything was computed in float32";
    EXPECT_GE(mixed.final.at("test_sparse_categorical_accuracy"), 0.97);
  }
}

TEST(DigitsTest, RejectsUnknownDTypePolicies) {
  ASSERT_OK_AND_ASSIGN(proto::TrainingJob job,
                       ReadJobFile("examples/digits/digits.job"));
  EXPECT_THAT(Train(job, "float16"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       testing::HasSubstr("mixed_float16")));
}

}  // namespace
}  // namespace muster
