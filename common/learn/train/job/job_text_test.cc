#include "common/learn/train/job/job_text.h"

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/core/base/status_macros.h"
#include "common/core/base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/training_job.pb.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

absl::StatusOr<proto::TrainingJob> Parse(const std::string& text,
                                         const JobSettings& settings = {},
                                         const JobSettings& builtins = {}) {
  ASSIGN_OR_RETURN(JobText read,
                   ParseJobText(text, "a.job", settings, builtins));
  return std::move(read.job);
}

TEST(JobTextTest, PutsValuesIntoStringsAndInPlacesOfNumbersAndNames) {
  ASSERT_OK_AND_ASSIGN(
      const proto::TrainingJob job,
      Parse("variables { name: \"dir\" default: \"/a\" }  # not ${here}\n"
            "train { csv { path: \"${dir}/x.csv\" } }\n"
            "epochs: ${epochs}\n"
            "model { sequential { layers { dense { activation: ${f} } } } }\n",
            {{"epochs", "3"}, {"f", "RELU"}}));
  EXPECT_EQ(job.train().csv().path(0), "/a/x.csv");
  EXPECT_EQ(job.epochs(), 3);
  EXPECT_EQ(job.model().sequential().layers(0).dense().activation(),
            proto::JobActivation::RELU);
}

TEST(JobTextTest, SettingsComeBeforeBuiltinsAndDefaults) {
  const std::string text =
      "variables { name: \"a\" default: \"default\" }"
      "variables { name: \"b\" default: \"default\" }"
      "variables { name: \"c\" default: \"default\" }"
      "train { idx { images: \"${a} ${b} ${c}\" } }";
  ASSERT_OK_AND_ASSIGN(
      const proto::TrainingJob job,
      Parse(text, {{"a", "set"}}, {{"a", "built in"}, {"b", "built in"}}));
  EXPECT_EQ(job.train().idx().images(0), "set built in default");
}

TEST(JobTextTest, DefaultsMayNameBuiltins) {
  ASSERT_OK_AND_ASSIGN(
      const proto::TrainingJob job,
      Parse("variables { name: \"dir\" default: \"${job_dir}/data\" }"
            "train { csv { path: \"${dir}/x\" } }",
            {}, {{"job_dir", "/jobs"}}));
  EXPECT_EQ(job.train().csv().path(0), "/jobs/data/x");
}

TEST(JobTextTest, ValuesInStringsMayHoldAnything) {
  const std::string value = "a \"quoted\"\n\\ ${epochs} #";
  ASSERT_OK_AND_ASSIGN(const proto::TrainingJob job,
                       Parse("train { csv { path: '${x}' } }", {{"x", value}}));
  EXPECT_EQ(job.train().csv().path(0), value);
}

TEST(JobTextTest, ValuesOutsideOfStringsAreOneWord) {
  EXPECT_THAT(Parse("epochs: ${x}", {{"x", "1 } test {"}}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("a.job:1:9: ${x} stands for one number")));
}

TEST(JobTextTest, NamesAMissingValueAndItsPlace) {
  EXPECT_THAT(Parse("epochs: 1\n  train { csv { path: \"${data_dir}/x\" } }"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(StartsWith("a.job:2:24: ${data_dir} has no value"),
                             HasSubstr("--set data_dir=..."))));
}

TEST(JobTextTest, NamesASettingThatTheJobDoesNotKnow) {
  EXPECT_THAT(Parse("epochs: ${epochs}", {{"epochs", "1"}, {"epoch", "2"}}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("--set epoch=2"),
                             HasSubstr("did you mean \"epochs\"?"))));
}

TEST(JobTextTest, PointsAtSyntaxErrors) {
  EXPECT_THAT(
      Parse("epochs: 1\nmodel {\n  sequential [\n"),
      StatusIs(absl::StatusCode::kInvalidArgument, StartsWith("a.job:3:14: ")));
  EXPECT_THAT(Parse("train { csv { path: \"${x\" } }"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       StartsWith("a.job:1:22: expected ${name}")));
}

TEST(JobTextTest, SuggestsTheFieldThatWasMeant) {
  EXPECT_THAT(Parse("model { sequential { layers { dense { unit: 3 } } } }"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("has no field named \"unit\""),
                             HasSubstr("did you mean \"units\"?"))));
}

TEST(JobTextTest, ListsTheFieldsWhereNoneIsNear) {
  EXPECT_THAT(Parse("batch: 3"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("did you mean \"batch_size\"?")));
  EXPECT_THAT(Parse("train { shuffle { quantity: 3 } }"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("; it has buffer, seed, reshuffle_each")));
}

TEST(JobTextTest, PointsAtBracketsThatDoNotMatch) {
  EXPECT_THAT(Parse("epochs: 1\nmodel {  # }\n  sequential {}\ntrain {}\n"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       StartsWith("a.job:2:7: this \"{\" is not closed")));
  EXPECT_THAT(Parse("train { csv { path: \"{\" } }\n}\n"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       StartsWith("a.job:2:1: this \"}\" closes nothing")));
  EXPECT_THAT(Parse("train {\n csv { path: [\"a\" }\n}"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       StartsWith("a.job:2:19: expected \"]\" for the \"[\" "
                                  "of line 2")));
}

TEST(JobTextTest, WhatIsAgreedOnLeavesLocalFoldersOut) {
  const auto agreed = [](const std::string& data_dir,
                         const std::string& job_dir, const std::string& label,
                         const std::string& epochs) {
    const absl::StatusOr<JobText> read = ParseJobText(
        "variables { name: \"data_dir\" default: \"${job_dir}/data\" }\n"
        "train { csv { path: [\"${data_dir}/a\", \"${data_dir}/b\"]\n"
        "              label: \"${label}\" } }\n"
        "callbacks { csv_logger { filename: \"${job_dir}/x\" } }\n"
        "epochs: ${epochs}\n",
        "a.job", {{"data_dir", data_dir}, {"label", label}, {"epochs", epochs}},
        {{"job_dir", job_dir}});
    EXPECT_OK(read);
    return read.ok() ? read->agreed_text : "";
  };
  const std::string here = agreed("/data", ".", "y", "3");
  EXPECT_EQ(here, agreed("data", "/jobs", "y", "3"));
  EXPECT_NE(here, agreed("/data", ".", "x", "3"));
  EXPECT_NE(here, agreed("/data", ".", "y", "4"));
  EXPECT_THAT(here, HasSubstr("\nepochs: 3\n"));
}

TEST(JobTextTest, EveryPathFieldOfAJobIsKnownToBeOne) {
  // Their values differ from process to process.
  for (const std::string field :
       {"train { idx { images: '${d}' } }", "train { idx { labels: '${d}' } }",
        "train { csv { path: '${d}' } }",
        "train { mnist { directory: '${d}' } }",
        "train { image_folder { directory: '${d}' } }",
        "train { tf_record { path: '${d}' } }",
        "train { npy { features: '${d}' labels: '${d}' } }",
        "train { cache_file: '${d}' }",
        "callbacks { csv_logger { filename: '${d}' } }",
        "callbacks { tensor_board { log_dir: '${d}' } }",
        "callbacks { model_checkpoint { filepath: '${d}' } }",
        "callbacks { model_checkpoint { directory: '${d}' } }",
        "callbacks { backup_and_restore { backup_dir: '${d}' } }",
        "strategy { parameter_server { recovery_dir: '${d}' } }",
        "evaluator { checkpoint_dir: '${d}' log_dir: '${d}' }"}) {
    ASSERT_OK_AND_ASSIGN(const JobText read,
                         ParseJobText(field, "a.job", {{"d", "/x"}}, {}));
    EXPECT_EQ(read.agreed_text, field);
  }
}

TEST(JobTextTest, SuggestsTheEnumValueThatWasMeant) {
  EXPECT_THAT(
      Parse("model { sequential { layers { dense { activation: RELUU } } } }"),
      StatusIs(absl::StatusCode::kInvalidArgument,
               HasSubstr("did you mean \"RELU\"?")));
}

TEST(JobTextTest, PointsIntoTheFileBehindValuesOfAnotherWidth) {
  // The value is wider than its placeholder: columns of what is parsed differ.
  EXPECT_THAT(
      Parse("steps_per_epoch: ${s} epochs: ${e}",
            {{"s", "1000000000"}, {"e", "many"}}),
      StatusIs(absl::StatusCode::kInvalidArgument, StartsWith("a.job:1:31: ")));
}

}  // namespace
}  // namespace muster
