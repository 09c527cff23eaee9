#include "common/learn/train/job/job_csv.h"

#include <cstdint>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/tensor.h"
#include "common/dataset/dataset.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "proto/training_job.pb.h"

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

proto::JobData::Csv CsvOf(const std::string& content,
                          const std::string& fields) {
  const std::string path = testing::TempDir() + "/job_csv.csv";
  std::ofstream(path, std::ios::binary) << content;
  proto::JobData::Csv csv;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(fields, &csv))
      << fields;
  csv.add_path(path);
  return csv;
}

// All examples as one element; empty after an error.
Element Read(const Dataset& dataset) {
  Element element;
  const auto iterator = dataset.Batch(100).MakeIterator();
  EXPECT_OK(iterator);
  if (!iterator.ok()) return element;
  const absl::StatusOr<bool> more = (*iterator)->Next(&element);
  EXPECT_OK(more);
  EXPECT_TRUE(more.ok() && *more);
  return element;
}

constexpr char kPeople[] = "id,age,y,note\n900,1,10,a\n901,2,20,b\n";
const ColumnInput kAge = {"age", DType::kFloat32, /*is_single_number=*/true};

TEST(JobCsvTest, TheOnlyInputTakesTheColumnOfItsName) {
  ASSERT_OK_AND_ASSIGN(
      const JobCsv csv,
      OpenJobCsv(CsvOf(kPeople, "label: 'y'"), DType::kInt64, {kAge}));
  EXPECT_THAT(csv.unused_columns, ElementsAre("id", "note"));
  EXPECT_THAT(csv.input_names, ElementsAre("age"));
  const Element all = Read(csv.dataset);
  EXPECT_THAT(all[0].flat<float>(), ElementsAre(1, 2));
  EXPECT_THAT(all[1].flat<int64_t>(), ElementsAre(10, 20));

  ASSERT_OK_AND_ASSIGN(const JobCsv inputs,
                       OpenJobCsvInputs(CsvOf(kPeople, "label: 'y'"), {kAge}));
  ASSERT_EQ(inputs.dataset.element_types().size(), 1);
  EXPECT_THAT(Read(inputs.dataset)[0].flat<float>(), ElementsAre(1, 2));
}

TEST(JobCsvTest, ColumnsThatAreNamedCountBeforeTheInputsName) {
  for (const ColumnInput& input : {kAge, ColumnInput{"age"}}) {
    ASSERT_OK_AND_ASSIGN(
        const JobCsv csv,
        OpenJobCsv(CsvOf(kPeople,
                         "label: 'y' columns { name: 'id' } columns { name: "
                         "'age' }"),
                   DType::kInt64, {input}));
    EXPECT_THAT(csv.unused_columns, ElementsAre("note"));
    EXPECT_THAT(csv.input_names, IsEmpty());
    EXPECT_THAT(Read(csv.dataset)[0].flat<float>(),
                ElementsAre(900, 1, 901, 2));
  }
}

TEST(JobCsvTest, AVectorOfNumbersTakesAllColumns) {
  const std::string content = "x,age,y\n5,1,10\n";
  for (const ColumnInput& input :
       {ColumnInput{"age"},
        ColumnInput{"other", DType::kFloat32, /*is_single_number=*/true}}) {
    ASSERT_OK_AND_ASSIGN(
        const JobCsv csv,
        OpenJobCsv(CsvOf(content, "label: 'y'"), DType::kInt64, {input}));
    EXPECT_THAT(Read(csv.dataset)[0].flat<float>(), ElementsAre(5, 1));
    EXPECT_THAT(csv.unused_columns, IsEmpty());
  }
}

TEST(JobCsvTest, SeveralInputsTakeColumnsAndLeaveTheOthers) {
  ASSERT_OK_AND_ASSIGN(
      const JobCsv csv,
      OpenJobCsv(CsvOf(kPeople, "label: 'y'"), DType::kInt64,
                 {{"note", DType::kString}, {"age", DType::kFloat64}}));
  EXPECT_THAT(csv.input_names, ElementsAre("note", "age"));
  EXPECT_THAT(csv.unused_columns, ElementsAre("id"));
  const Element all = Read(csv.dataset);
  EXPECT_THAT(all[0].flat<std::string>(), ElementsAre("a", "b"));
  EXPECT_THAT(all[1].flat<double>(), ElementsAre(1, 2));
}

constexpr char kWords[] =
    "who,when,x,kind\n7a,1970-01-02,5,dog\n7b,1970-01-01,6,cat\n";

TEST(JobCsvTest, TakesClassNamesDatesAndIds) {
  for (const DType type : {DType::kInt64, DType::kFloat32}) {
    ASSERT_OK_AND_ASSIGN(
        const JobCsv csv,
        OpenJobCsv(CsvOf(kWords,
                         "label: 'kind' id: 'who' date_columns: 'when' "
                         "class_names: ['cat', 'dog']"),
                   type, {}));
    const Element all = Read(csv.dataset);
    EXPECT_THAT(all[0].flat<float>(), ElementsAre(1, 5, 0, 6));
    EXPECT_EQ(all[1].dtype(), type);
    EXPECT_EQ(all[1].ElementAsDouble(0), 1);
    EXPECT_EQ(all[1].ElementAsDouble(1), 0);
    EXPECT_THAT(csv.unused_columns, IsEmpty());
  }
}

TEST(JobCsvTest, InputsHaveIdsAndNoLabels) {
  // The labels are no numbers, and need not be.
  ASSERT_OK_AND_ASSIGN(
      const JobCsv csv,
      OpenJobCsvInputs(
          CsvOf(kWords, "label: 'kind' id: 'who' date_columns: 'when'"), {}));
  const Element all = Read(csv.dataset);
  ASSERT_EQ(all.size(), 2);
  EXPECT_THAT(all[0].flat<float>(), ElementsAre(1, 5, 0, 6));
  EXPECT_THAT(all[1].flat<std::string>(), ElementsAre("7a", "7b"));
}

TEST(JobCsvTest, NamesTheFieldThatIsWrong) {
  const std::vector<std::pair<std::string, std::string>> mistakes = {
      {"id: 'who' date_columns: 'when'",
       "\"dog\" in column \"kind\" is not a whole number in the range (int64); "
       "the labels of this loss are numbers: name all classes in "
       "csv.class_names"},
      {"id: 'who' class_names: ['cat', 'dog']",
       "name a column of dates in csv.date_columns"},
      {"id: 'no'", "there is no column \"no\", which csv.id names"},
      {"date_columns: 'kind'", "csv.date_columns has \"kind\""},
      {"id: 'who' columns { name: 'who' }", "csv.columns has the id \"who\""},
      {"columns { name: 'kind' }", "csv.columns has the label \"kind\""},
      {"delimiter: ';;'", "csv.delimiter must be one character"},
  };
  for (const auto& [fields, message] : mistakes) {
    EXPECT_THAT(
        OpenJobCsv(CsvOf(kWords, absl::StrCat("label: 'kind' ", fields)),
                   DType::kInt64, {}),
        StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(message)))
        << fields;
  }
}

}  // namespace
}  // namespace muster
