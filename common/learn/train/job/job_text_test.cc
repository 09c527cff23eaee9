#include "common/learn/train/job/job_text.h"

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
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
  return ParseJobText(text, "a.job", settings, builtins);
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
