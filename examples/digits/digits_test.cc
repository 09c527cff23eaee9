#include <cstdint>
#include <string>

#include "common/base/status_matchers.h"
#include "common/train/job.h"
#include "common/train/progress_bar.h"
#include "common/train/run_summary.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/training_job.pb.h"

namespace muster {
namespace {

TEST(DigitsTest, TheJobReadsUnseenDigitsInOneProcess) {
  ASSERT_OK_AND_ASSIGN(proto::TrainingJob job,
                       ReadJobFile("examples/digits/digits.job"));
  job.clear_strategy();
  for (const uint64_t seed : {1, 2, 3}) {
    ASSERT_OK_AND_ASSIGN(const RunSummary summary,
                         RunJob(job, DefaultStrategyFactory(/*thread_count=*/1),
                                {.run_dir = testing::TempDir(),
                                 .seed = seed,
                                 .verbose = Verbosity::kSilent}));
    // The goal is 0.96; several workers cost a little of what is above.
    EXPECT_GE(summary.final.at("test_sparse_categorical_accuracy"), 0.97)
        << "seed " << seed;
    RecordProperty(
        "accuracy_" + std::to_string(seed),
        std::to_string(summary.final.at("test_sparse_categorical_accuracy")));
  }
}

}  // namespace
}  // namespace muster
