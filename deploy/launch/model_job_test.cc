#include "deploy/launch/model_job.h"

#include <filesystem>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/core/base/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

const auto kInvalid = absl::StatusCode::kInvalidArgument;

TEST(ModelJobTest, CsvFilesShareTheLabelColumn) {
  ASSERT_OK_AND_ASSIGN(const std::string text,
                       MakeModelJob({.model = "/a/m.keras",
                                     .train = "/a/t.csv",
                                     .label = "price",
                                     .validation = "/a/v.csv",
                                     .epochs = 3,
                                     .batch_size = 64}));
  EXPECT_EQ(text,
            "model { keras: \"/a/m.keras\" }\n"
            "train {\n"
            "  csv { path: \"/a/t.csv\" label: \"price\" }\n"
            "  shuffle { buffer: 100000 }\n"
            "}\n"
            "validation {\n"
            "  csv { path: \"/a/v.csv\" label: \"price\" }\n"
            "}\n"
            "batch_size: 64\n"
            "epochs: 3\n");
}

TEST(ModelJobTest, DefaultsAreThoseOfJobFiles) {
  ASSERT_OK_AND_ASSIGN(const std::string text,
                       MakeModelJob({.model = "m.keras", .train = "t.csv"}));
  EXPECT_THAT(
      text,
      AllOf(HasSubstr(absl::StrCat(
                "\"", std::filesystem::current_path().string(), "/t.csv\"")),
            HasSubstr("label: \"label\""), Not(HasSubstr("epochs")),
            Not(HasSubstr("batch_size")), Not(HasSubstr("validation"))));
}

TEST(ModelJobTest, ArraysHaveFilesOfLabels) {
  ASSERT_OK_AND_ASSIGN(const std::string text,
                       MakeModelJob({.model = "/m.keras",
                                     .train = "/x.npy",
                                     .label = "/y.npy",
                                     .validation = "/xv.npy",
                                     .validation_label = "/yv.npy"}));
  EXPECT_THAT(
      text,
      AllOf(HasSubstr("npy { features: \"/x.npy\" labels: \"/y.npy\" }"),
            HasSubstr("npy { features: \"/xv.npy\" labels: \"/yv.npy\" }")));
}

TEST(ModelJobTest, PathsAreEscaped) {
  ASSERT_OK_AND_ASSIGN(
      const std::string text,
      MakeModelJob({.model = "/a \"b\".keras", .train = "/t.csv"}));
  EXPECT_THAT(text, HasSubstr("keras: \"/a \\\"b\\\".keras\""));
}

TEST(ModelJobTest, MistakesNameTheFlagAndWhatIsAccepted) {
  EXPECT_THAT(MakeModelJob({.model = "m.h5", .train = "t.csv"}),
              StatusIs(kInvalid, HasSubstr("--model=m.h5: expected a name that "
                                           "ends in .keras")));
  EXPECT_THAT(MakeModelJob({.model = "m.keras"}),
              StatusIs(kInvalid, HasSubstr("--train is missing")));
  EXPECT_THAT(MakeModelJob({.model = "m.keras", .train = "t.parquet"}),
              StatusIs(kInvalid, HasSubstr("--train=t.parquet: expected a name "
                                           "that ends in .csv or .npy")));
  EXPECT_THAT(MakeModelJob({.model = "m.keras", .train = "x.npy"}),
              StatusIs(kInvalid, HasSubstr("--label=: expected the labels of "
                                           "x.npy in a .npy file")));
  EXPECT_THAT(
      MakeModelJob(
          {.model = "m.keras", .train = "t.csv", .validation_label = "y.npy"}),
      StatusIs(kInvalid, HasSubstr("needs --validation")));
  EXPECT_THAT(MakeModelJob({.model = "m.keras",
                            .train = "t.csv",
                            .validation = "v.csv",
                            .validation_label = "y.npy"}),
              StatusIs(kInvalid, HasSubstr("is for .npy files")));
  EXPECT_THAT(MakeModelJob({.model = "${x}.keras", .train = "t.csv"}),
              StatusIs(kInvalid, HasSubstr("rename the file")));
}

}  // namespace
}  // namespace muster
