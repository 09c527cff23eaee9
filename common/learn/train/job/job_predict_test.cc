#include "common/learn/train/job/job_predict.h"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/tensor.h"
#include "common/dataset/files/npy.h"
#include "common/learn/train/base/progress_bar.h"
#include "common/learn/train/job/job.h"
#include "common/learn/train/job/resolved_job.h"
#include "common/learn/train/job/testing/parse_job_message.h"
#include "common/learn/train/run_summary.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/training_job.pb.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using ::testing::StartsWith;

// Learns which of two columns is larger.
constexpr char kJob[] = R"pb(
  model {
    sequential {
      layers { normalization {} }
      layers {
        name: "larger"
        dense { units: 2 activation: SOFTMAX }
      }
    }
  }
  optimizer { adam { learning_rate: 0.1 } }
  loss { sparse_categorical_crossentropy {} }
  metrics { sparse_categorical_accuracy {} }
  batch_size: 16
  epochs: 10
  seed: 3
)pb";

class JobPredictTest : public ::testing::Test {
 protected:
  JobPredictTest() {
    std::filesystem::create_directories(folder_);
    std::ofstream labelled(train_);
    std::ofstream unlabelled(new_);
    labelled << "a,b,y\n";
    unlabelled << "a,b\n";
    // 40 rows are three batches, the last of them not full.
    for (int i = 0; i < 40; ++i) {
      const int a = i * 7 % 40;
      labelled << a << "," << i << "," << (i > a ? 1 : 0) << "\n";
      unlabelled << a << "," << i << "\n";
      is_larger_.push_back(i > a);
    }
  }

  proto::TrainingJob Job(const std::string& more = "") const {
    proto::TrainingJob job;
    EXPECT_TRUE(ParseJobMessage(
        absl::StrCat(kJob, "train { csv { path: '", train_,
                     "' label: 'y' } shuffle { buffer: 40 } } ", more),
        &job));
    return job;
  }

  void Train() {
    ASSERT_OK(RunJob(Job(), DefaultStrategyFactory(/*thread_count=*/1),
                     {.run_dir = folder_, .verbose = Verbosity::kSilent})
                  .status());
  }

  absl::Status Predict(const proto::TrainingJob& job,
                       PredictJobOptions options) {
    absl::StatusOr<ResolvedJob> resolved = ResolvedJob::FromProto(job);
    if (!resolved.ok()) return resolved.status();
    output_.str("");
    options.output_file = predictions_;
    if (options.weights.empty()) options.weights = folder_ + "/final_weights";
    options.thread_count = 1;
    options.verbose = Verbosity::kLines;
    options.output = &output_;
    return PredictJob(*std::move(resolved), options);
  }

  std::vector<std::string> Lines() const {
    std::ifstream file(predictions_);
    const std::string text((std::istreambuf_iterator<char>(file)),
                           std::istreambuf_iterator<char>());
    return absl::StrSplit(text, '\n', absl::SkipEmpty());
  }

  const std::string folder_ = absl::StrCat(
      testing::TempDir(), "/predict_",
      testing::UnitTest::GetInstance()->current_test_info()->name());
  const std::string train_ = folder_ + "/train.csv";
  const std::string new_ = folder_ + "/new.csv";
  std::string predictions_ = folder_ + "/predictions.csv";
  std::vector<bool> is_larger_;
  std::ostringstream output_;
};

TEST_F(JobPredictTest, WritesARowForEachExampleInTheOrderOfTheData) {
  Train();
  // With the labels, without them, and as the job describes them.
  for (const std::string& file : {train_, new_, std::string()}) {
    SCOPED_TRACE(file);
    const proto::TrainingJob job =
        file.empty()
            ? Job(absl::StrCat("predict_data { csv { path: '", new_, "' } }"))
            : Job();
    ASSERT_OK(Predict(job, {.data_file = file, .with_classes = true}));
    EXPECT_THAT(output_.str(), AllOf(StartsWith("3/3 - "),
                                     HasSubstr("Predictions: " + predictions_ +
                                               " (40 rows)\n")));
    const std::vector<std::string> lines = Lines();
    ASSERT_THAT(lines, SizeIs(41));
    EXPECT_EQ(lines[0], "larger_0,larger_1,larger_class");
    int right = 0;
    for (size_t i = 0; i < is_larger_.size(); ++i) {
      const std::vector<std::string> cells = absl::StrSplit(lines[i + 1], ',');
      ASSERT_THAT(cells, SizeIs(3));
      double zero = 0;
      double one = 0;
      ASSERT_TRUE(absl::SimpleAtod(cells[0], &zero)) << lines[i + 1];
      ASSERT_TRUE(absl::SimpleAtod(cells[1], &one)) << lines[i + 1];
      EXPECT_NEAR(zero + one, 1, 1e-6);
      EXPECT_EQ(cells[2], one > zero ? "1" : "0");
      if (is_larger_[i] == (one > zero)) ++right;
    }
    EXPECT_GE(right, 36);
  }
}

TEST_F(JobPredictTest, WritesAnArrayOfNumPy) {
  Train();
  ASSERT_OK(Predict(Job(), {.data_file = new_}));
  const std::vector<std::string> lines = Lines();
  predictions_ = folder_ + "/predictions.npy";
  ASSERT_OK(Predict(Job(), {.data_file = new_}));
  EXPECT_THAT(output_.str(), HasSubstr(predictions_ + " (40 rows)\n"));
  ASSERT_OK_AND_ASSIGN(const Tensor array, ReadNpy(predictions_));
  ASSERT_EQ(array.type(), (TensorType{DType::kFloat32, {40, 2}}));
  for (int i = 0; i < 40; ++i) {
    const std::vector<std::string> cells = absl::StrSplit(lines[i + 1], ',');
    for (int j = 0; j < 2; ++j) {
      float cell = 0;
      ASSERT_TRUE(absl::SimpleAtof(cells[j], &cell));
      EXPECT_EQ(array.flat<float>()[2 * i + j], cell);
    }
  }
  EXPECT_THAT(Predict(Job(), {.data_file = new_, .with_classes = true}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("--predict_classes adds a column")));
}

TEST_F(JobPredictTest, RowsBeginWithTheirIdsAndClassesHaveNames) {
  const std::string named = folder_ + "/named.csv";
  std::ofstream file(named);
  file << "name,a,b,kind\n";
  for (int i = 0; i < 40; ++i) {
    file << "\"row, " << i << "\"," << i * 7 % 40 << "," << i << ","
         << (i % 2 == 0 ? "even" : "odd") << "\n";
  }
  file.close();
  proto::TrainingJob job = Job();
  auto* const csv = job.mutable_train()->mutable_csv();
  csv->set_path(0, named);
  csv->set_label("kind");
  csv->set_id("name");
  csv->add_class_names("odd");
  csv->add_class_names("even");
  ASSERT_OK(RunJob(job, DefaultStrategyFactory(/*thread_count=*/1),
                   {.run_dir = folder_, .verbose = Verbosity::kSilent})
                .status());
  ASSERT_OK(Predict(job, {.data_file = named, .with_classes = true}));
  const std::vector<std::string> lines = Lines();
  ASSERT_THAT(lines, SizeIs(41));
  EXPECT_EQ(lines[0], "name,larger_0,larger_1,larger_class");
  for (int i = 0; i < 40; ++i) {
    EXPECT_THAT(lines[i + 1], StartsWith(absl::StrCat("\"row, ", i, "\",")));
    const std::vector<std::string> cells = absl::StrSplit(lines[i + 1], ',');
    ASSERT_THAT(cells, SizeIs(5));
    double odd = 0;
    double even = 0;
    ASSERT_TRUE(absl::SimpleAtod(cells[2], &odd));
    ASSERT_TRUE(absl::SimpleAtod(cells[3], &even));
    EXPECT_EQ(cells[4], even > odd ? "even" : "odd");
  }
}

TEST_F(JobPredictTest, NamesWhatIsMissing) {
  EXPECT_THAT(Predict(Job(), {}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("predict_data is missing"),
                             HasSubstr("--predict_data=new.csv"))));
  EXPECT_THAT(
      Predict(Job(), {.data_file = folder_ + "/none.csv"}),
      StatusIs(absl::StatusCode::kNotFound,
               AllOf(StartsWith("predict_data: "), HasSubstr("none.csv"))));
  EXPECT_THAT(
      Predict(Job(), {.weights = folder_ + "/nothing", .data_file = new_}),
      StatusIs(absl::StatusCode::kNotFound, HasSubstr(folder_ + "/nothing")));
  EXPECT_FALSE(std::filesystem::exists(predictions_));
}

TEST_F(JobPredictTest, RefusesDataOfAnotherWidth) {
  Train();
  const std::string wide = folder_ + "/wide.csv";
  std::ofstream(wide) << "a,b,c\n1,2,3\n";
  EXPECT_THAT(Predict(Job(), {.data_file = wide}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr(folder_ + "/final_weights"),
                             HasSubstr("float32[?,3]"))));
  EXPECT_FALSE(std::filesystem::exists(predictions_));
}

TEST_F(JobPredictTest, AFileCannotTakeThePlaceOfDataThatAreNoFile) {
  proto::TrainingJob job = Job();
  job.mutable_train()->mutable_synthetic();
  EXPECT_THAT(
      Predict(job, {.data_file = new_}),
      StatusIs(absl::StatusCode::kInvalidArgument,
               HasSubstr("describe the file in the job's predict_data")));
}

}  // namespace
}  // namespace muster
