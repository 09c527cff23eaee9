// Jobs whose model is a Keras file, on clusters.
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "common/core/base/status_macros.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/tensor/tensor.h"
#include "common/learn/train/load_model.h"
#include "common/learn/train/model.h"
#include "common/net/process/child_process.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/cluster/process_under_test.h"

namespace muster {
namespace {

using ::testing::HasSubstr;

// A trained model, compiled with Adam and sparse_categorical_crossentropy.
constexpr char kMlp[] = "tests/golden/keras_files/mlp.keras";

constexpr char kJob[] = R"(
  model { keras: "${job_dir}/model.keras" }
  train { synthetic { example_count: 96 feature_count: 4 class_count: 3
                      seed: 1 } }
  batch_size: 24
  epochs: 2
  seed: 5
)";

class KerasJobTest : public ::testing::Test {
 protected:
  KerasJobTest()
      : folder_(std::filesystem::path(testing::TempDir()) /
                testing::UnitTest::GetInstance()->current_test_info()->name()) {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
    std::filesystem::copy_file(kMlp, folder_ / "model.keras");
  }

  // Runs the job on a cluster. Returns the trained model.
  absl::StatusOr<Model> Train(int workers, int servers,
                              const std::string& settings) {
    const std::string job = (folder_ / "keras.job").string();
    std::ofstream(job) << kJob << settings;
    const std::string run_dir =
        (folder_ / absl::StrCat("run-", workers, "-", servers)).string();
    ASSIGN_OR_RETURN(
        const auto launch,
        ProcessUnderTest::Start({"deploy/launch/launch",
                                 absl::StrCat("--workers=", workers),
                                 absl::StrCat("--ps=", servers), "--cores=1",
                                 absl::StrCat("--job=", job),
                                 absl::StrCat("--run_dir=", run_dir)}));
    ASSIGN_OR_RETURN(const ProcessEnd end, launch->AwaitEnd());
    if (end.ShellCode() != 0) return absl::InternalError(launch->output());
    return LoadModel(run_dir + "/final_model.keras");
  }

  const std::filesystem::path folder_;
};

double LargestDifference(const Model& a, const Model& b) {
  const absl::StatusOr<std::vector<Tensor>> left = a.GetWeights();
  const absl::StatusOr<std::vector<Tensor>> right = b.GetWeights();
  EXPECT_OK(left);
  EXPECT_OK(right);
  if (!left.ok() || !right.ok()) return HUGE_VAL;
  EXPECT_EQ(left->size(), right->size());
  double largest = 0;
  for (size_t i = 0; i < left->size() && i < right->size(); ++i) {
    for (int64_t j = 0; j < (*left)[i].element_count(); ++j) {
      largest = std::fmax(largest, std::fabs((*left)[i].ElementAsDouble(j) -
                                             (*right)[i].ElementAsDouble(j)));
    }
  }
  return largest;
}

TEST_F(KerasJobTest, ParameterServersBeginWithTheWeightsOfTheFile) {
  ASSERT_OK_AND_ASSIGN(const Model trained,
                       Train(/*workers=*/2, /*servers=*/1,
                             "optimizer { sgd { learning_rate: 0 } }"));
  ASSERT_OK_AND_ASSIGN(const Model expected, LoadModel(kMlp));
  EXPECT_EQ(LargestDifference(trained, expected), 0);
  EXPECT_THAT(trained.iterations(), IsOkAndHolds(2 * 4));
}

TEST_F(KerasJobTest, ParameterServersGoOnWithTheOptimizerOfTheFile) {
  ASSERT_OK_AND_ASSIGN(const Model before, LoadModel(kMlp));
  ASSERT_OK_AND_ASSIGN(const int64_t step_count, before.iterations());
  ASSERT_OK_AND_ASSIGN(const Model trained,
                       Train(/*workers=*/2, /*servers=*/1, ""));
  EXPECT_GT(LargestDifference(trained, before), 0);
  EXPECT_THAT(trained.iterations(), IsOkAndHolds(step_count + 2 * 4));
}

TEST_F(KerasJobTest, SynchronousWorkersTrainAsOneProcessDoes) {
  ASSERT_OK_AND_ASSIGN(const Model one, Train(/*workers=*/1, /*servers=*/0,
                                              "input { "
                                              "auto_shard_policy: DATA }"));
  ASSERT_OK_AND_ASSIGN(const Model three, Train(/*workers=*/3, /*servers=*/0,
                                                "input { "
                                                "auto_shard_policy: DATA }"));
  EXPECT_LT(LargestDifference(three, one), 1e-4);
  ASSERT_OK_AND_ASSIGN(const Model before, LoadModel(kMlp));
  EXPECT_GT(LargestDifference(one, before), 1e-3);
}

TEST_F(KerasJobTest, LaunchTrainsAModelWithoutAJobFile) {
  const std::string train = (folder_ / "train.csv").string();
  std::ofstream csv(train);
  csv << "a,b,c,d,kind\n";
  for (int i = 0; i < 50; ++i) csv << i % 7 << ",1,0,2," << i % 3 << "\n";
  csv.close();
  const std::string run_dir = (folder_ / "run").string();
  ASSERT_OK_AND_ASSIGN(
      const auto launch,
      ProcessUnderTest::Start(
          {"deploy/launch/launch", "--workers=0", "--ps=0", "--cores=1",
           absl::StrCat("--model=", (folder_ / "model.keras").string()),
           absl::StrCat("--train=", train), "--label=kind", "--epochs=3",
           "--batch_size=20", absl::StrCat("--run_dir=", run_dir)}));
  ASSERT_OK_AND_ASSIGN(const ProcessEnd end, launch->AwaitEnd());
  EXPECT_EQ(end.ShellCode(), 0) << launch->output();
  EXPECT_THAT(launch->output(),
              HasSubstr(absl::StrCat("the job file is ", run_dir)));
  ASSERT_OK_AND_ASSIGN(const Model before, LoadModel(kMlp));
  ASSERT_OK_AND_ASSIGN(const int64_t step_count, before.iterations());
  ASSERT_OK_AND_ASSIGN(const Model trained,
                       LoadModel(run_dir + "/final_model.keras"));
  EXPECT_THAT(trained.iterations(), IsOkAndHolds(step_count + 3 * 3));
}

}  // namespace
}  // namespace muster
