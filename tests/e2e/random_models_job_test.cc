// Jobs train random Keras models in real processes and must compute the weights
// of Keras. tests/golden/random_models/record.py describes the models;
// random_models_test.cc in that folder trains more of them in one process.
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/core/base/check.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/tensor.h"
#include "common/learn/train/load_model.h"
#include "common/learn/train/model.h"
#include "common/net/process/child_process.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/cluster/process_under_test.h"
#include "tests/golden/golden_data.h"

namespace muster {
namespace {

// Names of cases with numeric inputs, which .npy files can hold.
constexpr const char* kModels[] = {"random_003", "random_004", "random_014",
                                   "random_023", "random_028"};

// Writes a file in NumPy's format, version 1.0.
void WriteNpy(const std::string& path, const Tensor& tensor) {
  MUSTER_CHECK(tensor.dtype() == DType::kFloat32 ||
               tensor.dtype() == DType::kInt32);
  std::string header = absl::StrCat(
      "{'descr': '", tensor.dtype() == DType::kFloat32 ? "<f4" : "<i4",
      "', 'fortran_order': False, 'shape': (",
      absl::StrJoin(tensor.shape().dims(), ","), ",), }");
  constexpr size_t kPreambleSize = 10;
  header.resize((kPreambleSize + header.size()) / 64 * 64 + 63 - kPreambleSize,
                ' ');
  header += '\n';
  std::ofstream file(path, std::ios::binary);
  file << "\x93NUMPY" << '\x01' << '\0' << static_cast<char>(header.size())
       << static_cast<char>(header.size() >> 8) << header;
  file.write(reinterpret_cast<const char*>(tensor.raw_data()),
             static_cast<std::streamsize>(tensor.size_bytes()));
}

class RandomModelsJobTest : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    folder_ = absl::StrCat(testing::TempDir(), GetParam());
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
    for (const GoldenCase& one : ReadGoldenCases("random_models.json")) {
      if (one.name == GetParam()) golden_ = one;
    }
    ASSERT_EQ(golden_.name, GetParam());
    std::filesystem::copy_file(
        absl::StrCat("tests/golden/random_files/", golden_.name, ".keras"),
        folder_ + "/model.keras");
    std::ofstream(folder_ + "/random.job")
        << R"(model { keras: "${job_dir}/model.keras" }
              train { npy { )"
        << Files("x_", "features", "more_features")
        << Files("y_", "labels", "more_labels")
        << Files("w_", nullptr, "sample_weights") << R"( } }
              batch_size: 4
              input { auto_shard_policy: DATA })";
  }

  // Writes the arrays of one kind to files. Returns the settings that name the
  // files.
  std::string Files(const std::string& prefix, const char* first,
                    const char* others) {
    std::string settings;
    for (int i = 0;; ++i) {
      const std::string name = absl::StrCat(prefix, i);
      const auto found = golden_.inputs.find(name);
      if (found == golden_.inputs.end()) return settings;
      WriteNpy(absl::StrCat(folder_, "/", name, ".npy"), found->second);
      const std::string path = absl::StrCat("\"${job_dir}/", name, ".npy\"");
      absl::StrAppend(&settings,
                      i == 0 && first != nullptr
                          ? absl::StrCat(first, ": ", path, " ")
                          : absl::StrCat(others, " { path: ", path, " } "));
    }
  }

  void ExpectKerasWeights(int workers, int servers) {
    const std::string run_dir = absl::StrCat(folder_, "/run-", servers);
    ASSERT_OK_AND_ASSIGN(
        const auto launch,
        ProcessUnderTest::Start({"deploy/launch/launch",
                                 absl::StrCat("--workers=", workers),
                                 absl::StrCat("--ps=", servers), "--cores=1",
                                 absl::StrCat("--job=", folder_, "/random.job"),
                                 absl::StrCat("--run_dir=", run_dir)}));
    ASSERT_OK_AND_ASSIGN(const ProcessEnd end, launch->AwaitEnd());
    ASSERT_EQ(end.ShellCode(), 0) << launch->output();
    ASSERT_OK_AND_ASSIGN(const Model model,
                         LoadModel(run_dir + "/final_model.keras"));
    ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> weights, model.GetWeights());
    for (size_t i = 0; i < weights.size(); ++i) {
      EXPECT_EQ(
          DescribeDifference(
              weights[i], golden_.outputs.at(absl::StrCat("weight_", i)), 1e-5),
          "")
          << model.weights()[i].name();
    }
    EXPECT_EQ(golden_.outputs.count(absl::StrCat("weight_", weights.size())),
              0u);
  }

  std::string folder_;
  GoldenCase golden_;
};

TEST_P(RandomModelsJobTest, SynchronousWorkersComeToTheWeightsOfKeras) {
  ExpectKerasWeights(/*workers=*/2, /*servers=*/0);
}

// With one worker, the order of the steps is that of Keras.
TEST_P(RandomModelsJobTest, ParameterServersComeToTheWeightsOfKeras) {
  ExpectKerasWeights(/*workers=*/1, /*servers=*/2);
}

INSTANTIATE_TEST_SUITE_P(Golden, RandomModelsJobTest,
                         ::testing::ValuesIn(kModels), [](const auto& test) {
                           return std::string(test.param);
                         });

}  // namespace
}  // namespace muster
