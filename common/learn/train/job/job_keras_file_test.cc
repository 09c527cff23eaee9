#include "common/learn/train/job/job_keras_file.h"

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/compute/optimizers/optimizers.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/tensor/tensor.h"
#include "common/io/keras/keras_archive.h"
#include "common/io/storage/disk.h"
#include "common/learn/nn/input.h"
#include "common/learn/nn/layers/dense.h"
#include "common/learn/nn/losses.h"
#include "common/learn/nn/metric.h"
#include "common/learn/nn/sequential.h"
#include "common/learn/train/base/fit_options.h"
#include "common/learn/train/base/progress_bar.h"
#include "common/learn/train/job/job.h"
#include "common/learn/train/job/job_canonical.h"
#include "common/learn/train/job/resolved_job.h"
#include "common/learn/train/load_model.h"
#include "common/learn/train/model.h"
#include "common/learn/train/run_summary.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "proto/optimizer.pb.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

// Compiled with Adam, sparse_categorical_crossentropy and accuracy, and has
// trained.
constexpr char kMlp[] = "tests/golden/keras_files/mlp.keras";
constexpr char kNotCompiled[] = "tests/golden/keras_files/not_compiled.keras";

constexpr char kData[] = R"(
  train { synthetic { example_count: 96 feature_count: 4 class_count: 3
                      seed: 1 } }
  batch_size: 16
  seed: 5
)";

std::string JobOf(const std::string& path, const std::string& rest = "") {
  return absl::StrCat("model { keras: \"", path, "\" }", kData, rest);
}

std::vector<std::string> NamesOf(const std::vector<Metric>& metrics) {
  std::vector<std::string> names;
  for (const Metric& metric : metrics) names.push_back(metric.name());
  return names;
}

void ExpectEqualWeights(const Model& model, const Model& expected) {
  ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> values, model.GetWeights());
  ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> wanted, expected.GetWeights());
  ASSERT_EQ(values.size(), wanted.size());
  for (size_t i = 0; i < values.size(); ++i) {
    EXPECT_TRUE(BitwiseEqual(values[i], wanted[i]))
        << model.weights()[i].name();
  }
}

class JobKerasFileTest : public ::testing::Test {
 protected:
  JobKerasFileTest()
      : folder_(std::filesystem::path(testing::TempDir()) /
                testing::UnitTest::GetInstance()->current_test_info()->name()) {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }

  std::string Path(const std::string& name) const {
    return (folder_ / name).string();
  }

  absl::StatusOr<ResolvedJob> Resolve(const std::string& text) const {
    const std::string path = Path("a.job");
    std::ofstream(path) << text;
    return ResolvedJob::FromFile(path, /*settings=*/{}, Path("run"));
  }

  absl::StatusOr<RunSummary> Run(ResolvedJob job) {
    return RunJob(std::move(job), DefaultStrategyFactory(/*thread_count=*/1),
                  {.run_dir = Path("run"),
                   .verbose = Verbosity::kLines,
                   .output = &output_});
  }

  const std::filesystem::path folder_;
  std::ostringstream output_;
};

TEST_F(JobKerasFileTest, TrainsOnWhereTheFileStopped) {
  ASSERT_OK_AND_ASSIGN(ResolvedJob job, Resolve(JobOf(kMlp)));
  ASSERT_OK_AND_ASSIGN(const JobDatasets datasets, job.Datasets(/*seed=*/5));
  ASSERT_OK_AND_ASSIGN(const RunSummary summary, Run(std::move(job)));
  EXPECT_TRUE(summary.final.contains("accuracy"));
  EXPECT_THAT(output_.str(),
              HasSubstr(absl::StrCat(
                  "Final model: ", Path("run/final_model.keras"), "\n")));

  ASSERT_OK_AND_ASSIGN(const Model trained,
                       LoadModel(Path("run/final_model.keras")));
  ASSERT_OK_AND_ASSIGN(Model expected, LoadModel(kMlp));
  ASSERT_OK_AND_ASSIGN(const int64_t before, expected.iterations());
  ASSERT_OK(expected.Fit(datasets.train, {.verbose = Verbosity::kSilent}));
  ExpectEqualWeights(trained, expected);
  EXPECT_GT(before, 0);
  EXPECT_THAT(trained.iterations(), IsOkAndHolds(before + 6));
  // The file and its folder stay as they are; so does the run's.
  for (const auto& entry : std::filesystem::directory_iterator(Path("run"))) {
    EXPECT_THAT(entry.path().string(), Not(HasSubstr("converting")));
  }
}

TEST_F(JobKerasFileTest, TheJobsOwnSettingsReplaceThoseOfTheFile) {
  ASSERT_OK_AND_ASSIGN(const ResolvedJob all_of_file, Resolve(JobOf(kMlp)));
  ASSERT_OK_AND_ASSIGN(const CompileOptions of_file,
                       all_of_file.BuildCompileOptions(0));
  EXPECT_TRUE(of_file.optimizer.message().has_adam());
  EXPECT_EQ(of_file.loss.name(), "sparse_categorical_crossentropy");
  EXPECT_THAT(NamesOf(of_file.metrics), ElementsAre("accuracy"));

  const std::string sgd = "optimizer { sgd { learning_rate: 0 } }";
  ASSERT_OK_AND_ASSIGN(const ResolvedJob with_sgd, Resolve(JobOf(kMlp, sgd)));
  ASSERT_OK_AND_ASSIGN(const CompileOptions replaced,
                       with_sgd.BuildCompileOptions(0));
  EXPECT_TRUE(replaced.optimizer.message().has_sgd());
  EXPECT_EQ(replaced.loss.name(), "sparse_categorical_crossentropy");
  EXPECT_THAT(NamesOf(replaced.metrics), ElementsAre("accuracy"));

  ASSERT_OK_AND_ASSIGN(
      const ResolvedJob with_loss,
      Resolve(JobOf(kMlp, "loss { categorical_crossentropy {} }")));
  ASSERT_OK_AND_ASSIGN(const CompileOptions other_loss,
                       with_loss.BuildCompileOptions(0));
  EXPECT_TRUE(other_loss.optimizer.message().has_adam());
  EXPECT_EQ(other_loss.loss.name(), "categorical_crossentropy");
  // The shapes decide which accuracy it is.
  EXPECT_EQ(other_loss.metrics[0].kind(), "accuracy");

  ASSERT_OK_AND_ASSIGN(
      const ResolvedJob with_metrics,
      Resolve(JobOf(kMlp, "metrics { sparse_categorical_accuracy {} }")));
  ASSERT_OK_AND_ASSIGN(const CompileOptions other_metrics,
                       with_metrics.BuildCompileOptions(0));
  EXPECT_EQ(other_metrics.loss.name(), "sparse_categorical_crossentropy");
  EXPECT_THAT(NamesOf(other_metrics.metrics),
              ElementsAre("sparse_categorical_accuracy"));
}

// Keras' Sequential models have no shapes until they are called, so the name is
// kept until they have.
TEST_F(JobKerasFileTest, AccuracyIsKeptByName) {
  Model model = Sequential({Input({4}), Dense(1)});
  ASSERT_OK(model.Compile({.optimizer = Adam(), .loss = BinaryCrossentropy()}));
  ASSERT_OK(model.Save(Path("binary.keras")));
  ASSERT_OK_AND_ASSIGN(KerasArchive archive,
                       ReadKerasArchive(Disk::Real(), Path("binary.keras")));
  nlohmann::json config = nlohmann::json::parse(archive.config);
  config["compile_config"]["metrics"] = {"accuracy"};
  archive.config = config.dump();
  ASSERT_OK(WriteKerasArchive(Disk::Real(), Path("binary.keras"), archive,
                              absl::Now()));
  ASSERT_OK_AND_ASSIGN(const ResolvedJob job,
                       Resolve(JobOf(Path("binary.keras"))));
  ASSERT_OK_AND_ASSIGN(const CompileOptions options,
                       job.BuildCompileOptions(/*seed=*/0));
  ASSERT_EQ(options.metrics.size(), 1u);
  EXPECT_EQ(options.metrics[0].kind(), "accuracy");
}

TEST_F(JobKerasFileTest, WeightsAreTheFilesUnderAnotherOptimizer) {
  ASSERT_OK_AND_ASSIGN(
      ResolvedJob job,
      Resolve(JobOf(kMlp, "optimizer { sgd { learning_rate: 0 } }")));
  ASSERT_OK(Run(std::move(job)).status());
  ASSERT_OK_AND_ASSIGN(const Model trained,
                       LoadModel(Path("run/final_model.keras")));
  ASSERT_OK_AND_ASSIGN(const Model expected, LoadModel(kMlp));
  ExpectEqualWeights(trained, expected);
  EXPECT_THAT(trained.iterations(), IsOkAndHolds(6));
}

TEST_F(JobKerasFileTest, OptimizersOfLayersStartWithoutState) {
  ASSERT_OK_AND_ASSIGN(const Model expected, LoadModel(kMlp));
  const std::string weight = expected.weights().back().name();
  const std::string layer = weight.substr(0, weight.rfind('/'));
  ASSERT_OK_AND_ASSIGN(
      ResolvedJob job,
      Resolve(JobOf(kMlp, absl::StrCat("layer_optimizers { prefix: \"", layer,
                                       "\" optimizer { sgd { "
                                       "learning_rate: 0 } } }"))));
  ASSERT_OK(Run(std::move(job)).status());
  ASSERT_OK_AND_ASSIGN(const Model trained,
                       LoadModel(Path("run/final_model.keras")));
  ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> values, trained.GetWeights());
  ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> first, expected.GetWeights());
  EXPECT_TRUE(BitwiseEqual(values.back(), first.back()));
  EXPECT_FALSE(BitwiseEqual(values.front(), first.front()));
  EXPECT_THAT(trained.learning_rate(),
              StatusIs(absl::StatusCode::kFailedPrecondition));
}

TEST_F(JobKerasFileTest, WorkersCompareTheBytesAndNotThePath) {
  const auto agreed = [&](const std::string& name,
                          const std::string& source) -> std::string {
    std::filesystem::copy_file(
        source, Path(name), std::filesystem::copy_options::overwrite_existing);
    const absl::StatusOr<ResolvedJob> job =
        Resolve(JobOf(absl::StrCat("${job_dir}/", name)));
    EXPECT_OK(job);
    return job.ok() ? job->agreed().text : "";
  };
  const std::string text = agreed("a.keras", kMlp);
  EXPECT_THAT(text, AllOf(HasSubstr("model.keras: sha256:"),
                          Not(HasSubstr("a.keras"))));
  EXPECT_EQ(agreed("b.keras", kMlp), text);
  // The same model but for its weights.
  ASSERT_OK_AND_ASSIGN(Model model, LoadModel(kMlp));
  ASSERT_OK_AND_ASSIGN(std::vector<Tensor> values, model.GetWeights());
  values[0] = Tensor::Zeros(values[0].dtype(), values[0].shape());
  ASSERT_OK(model.SetWeights(values));
  ASSERT_OK(model.Save(Path("c.keras")));
  EXPECT_NE(agreed("d.keras", Path("c.keras")), text);
}

TEST_F(JobKerasFileTest, ErrorsNameTheFile) {
  const auto refused = [&](const std::string& job, absl::StatusCode code,
                           const std::string& why) {
    EXPECT_THAT(Resolve(job).status(),
                StatusIs(code, AllOf(HasSubstr("a.job: "), HasSubstr(why))));
  };
  refused(JobOf("none.keras"), absl::StatusCode::kNotFound, "none.keras");
  refused(JobOf("${job_dir}/a.job"), absl::StatusCode::kDataLoss,
          Path("a.job"));
  refused(JobOf(kNotCompiled), absl::StatusCode::kInvalidArgument,
          absl::StrCat("optimizer is missing, and ", kNotCompiled));
  refused(JobOf(kNotCompiled, "optimizer { adam {} }"),
          absl::StatusCode::kInvalidArgument,
          absl::StrCat("loss is missing, and ", kNotCompiled));
  refused(JobOf(kMlp, "dtype_policy: \"mixed_bfloat16\""),
          absl::StatusCode::kInvalidArgument,
          absl::StrCat("dtype_policy: the layers of ", kMlp));
  refused(absl::StrCat("model { sequential { layers { model { keras: \"", kMlp,
                       "\" } } } }", kData),
          absl::StatusCode::kInvalidArgument, "model.keras: ");
}

}  // namespace
}  // namespace muster
