#include <cstdlib>
#include <filesystem>

#include "common/core/base/testing/status_matchers.h"
#include "common/learn/train/base/progress_bar.h"
#include "common/learn/train/job/job.h"
#include "common/learn/train/run_summary.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/training_job.pb.h"

namespace muster {
namespace {

TEST(MnistTest, OneProcessReachesTheAccuracyOfTheKerasGuide) {
  const char* const data = std::getenv("MUSTER_TEST_DATA");
  if (data == nullptr || *data == 0) {
    GTEST_SKIP() << "MUSTER_TEST_DATA is not set: no folder with mnist/ in it";
  }
  ASSERT_OK_AND_ASSIGN(
      proto::TrainingJob job,
      ReadJobFile("examples/mnist/mnist.job",
                  {{"data_dir", std::filesystem::path(data) / "mnist"}}));
  job.clear_strategy();
  // The guide uses the images in the order of the file. Only several workers
  // need different orders.
  job.mutable_train()->clear_shuffle();
  ASSERT_OK_AND_ASSIGN(
      const RunSummary summary,
      RunJob(job, DefaultStrategyFactory(/*thread_count=*/1),
             {.run_dir = testing::TempDir(), .verbose = Verbosity::kSilent}));
  EXPECT_GE(summary.final.at("test_sparse_categorical_accuracy"), 0.965);
}

}  // namespace
}  // namespace muster
