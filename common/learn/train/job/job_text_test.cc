#include "common/learn/train/job/job_text.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "common/core/base/status_macros.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/learn/train/job/job_canonical.h"
#include "common/learn/train/job/job_config_reader.h"
#include "common/learn/train/job/job_settings.h"
#include "gmock/gmock.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"
#include "gtest/gtest.h"
#include "proto/training_job.pb.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

absl::StatusOr<proto::TrainingJob> Parse(const std::string& text,
                                         const JobSettings& settings = {},
                                         const JobSettings& builtins = {}) {
  ASSIGN_OR_RETURN(JobText read,
                   ParseJobText(text, "a.job", settings, builtins));
  return std::move(read.job);
}

// The activation of the first layer, which is dense.
std::string ActivationOf(const proto::TrainingJob& job) {
  std::string name;
  EXPECT_OK(
      ReadKind(job.model().sequential().layers(0),
               [&](absl::string_view, const google::protobuf::Message& dense) {
                 const auto* const field =
                     dense.GetDescriptor()->FindFieldByName("activation");
                 name = dense.GetReflection()->GetEnum(dense, field)->name();
                 return absl::OkStatus();
               }));
  return name;
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
  EXPECT_EQ(ActivationOf(job), "RELU");
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

TEST(JobTextTest, DeepNestingIsRefused) {
  std::string text = "model { sequential { layers { ";
  for (int i = 0; i < 20000; ++i) text += "time_distributed { layer { ";
  text += std::string(size_t{20000} * 2 + 3, '}');
  EXPECT_THAT(Parse(text), StatusIs(absl::StatusCode::kInvalidArgument,
                                    HasSubstr("nested deeper than 100")));
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
                       HasSubstr("has no field named \"unit\"; did you mean "
                                 "\"units\"?")));
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

CanonicalJob Agreed(const std::string& text, const JobSettings& settings = {},
                    const JobSettings& builtins = {}) {
  const absl::StatusOr<JobText> read =
      ParseJobText(text, "a.job", settings, builtins);
  EXPECT_OK(read) << text;
  return read.ok() ? read->agreed : CanonicalJob();
}

TEST(JobTextTest, WhatIsAgreedOnLeavesLocalFoldersOut) {
  const auto agreed = [](const std::string& data_dir,
                         const std::string& job_dir, const std::string& label,
                         const std::string& epochs) {
    return Agreed(
               "variables { name: \"data_dir\" default: \"${job_dir}/data\" }\n"
               "train { csv { path: [\"${data_dir}/a\", \"${data_dir}/b\"]\n"
               "              label: \"${label}\" } }\n"
               "callbacks { csv_logger { filename: \"${job_dir}/x\" } }\n"
               "epochs: ${epochs}\n",
               {{"data_dir", data_dir}, {"label", label}, {"epochs", epochs}},
               {{"job_dir", job_dir}})
        .text;
  };
  const std::string here = agreed("/data", ".", "y", "3");
  EXPECT_EQ(here, agreed("data", "/jobs", "y", "3"));
  EXPECT_NE(here, agreed("/data", ".", "x", "3"));
  EXPECT_NE(here, agreed("/data", ".", "y", "4"));
  EXPECT_THAT(here, HasSubstr("\nepochs: 3\n"));
}

TEST(JobTextTest, WhatIsAgreedOnIsTheJobAndNotItsSpelling) {
  const CanonicalJob plain = Agreed(
      "train { synthetic { example_count: 8 noise: 0.5 } cache: true }\n"
      "class_weight { key: 1 value: 2 }\n"
      "class_weight { key: 0 value: 1 }\n"
      "optimizer { adam {} }\n"
      "metrics { auc { curve: PR } }\n"
      "validation_freq: [1, 2]\n"
      "seed: 7\n");
  const CanonicalJob spelled = Agreed(
      "# A comment.\n"
      "variables { name: \"n\" default: \"8\" }\n"
      "seed: 0x7\n"
      "\n"
      "optimizer <\n"
      "  adam {}  # Another.\n"
      ">\n"
      "train {\n"
      "  cache: 1\n"
      "  synthetic { noise: 5e-1, example_count: ${n} };\n"
      "}\n"
      "class_weight { key: 0 value: 1 } class_weight { key: 1 value: 2.0 }\n"
      "validation_freq: 1\n"
      "metrics { auc { curve: PR } }\n"
      "validation_freq: 2\n");
  EXPECT_EQ(plain.text, spelled.text);
  EXPECT_EQ(plain.text,
            "train.synthetic.example_count: 8\n"
            "train.synthetic.noise: 0.5\n"
            "train.cache: true\n"
            "optimizer.adam {}\n"
            "metrics[0].auc.curve: PR\n"
            "seed: 7\n"
            "class_weight[0].key: 0\n"
            "class_weight[0].value: 1\n"
            "class_weight[1].key: 1\n"
            "class_weight[1].value: 2\n"
            "validation_freq[0]: 1\n"
            "validation_freq[1]: 2\n");
  EXPECT_THAT(plain.lines, ElementsAre(1, 1, 1, 4, 5, 7, 3, 3, 2, 2, 6, 6));
  EXPECT_THAT(spelled.lines,
              ElementsAre(10, 10, 9, 6, 14, 3, 12, 12, 12, 12, 13, 15));
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
        "train { npy { more_features { path: '${d}' } } }",
        "train { npy { more_labels { path: '${d}' } } }",
        "train { npy { sample_weights { path: '${d}' } } }",
        "train { cache_file: '${d}' }",
        "callbacks { csv_logger { filename: '${d}' } }",
        "callbacks { tensor_board { log_dir: '${d}' } }",
        "callbacks { model_checkpoint { filepath: '${d}' } }",
        "callbacks { model_checkpoint { directory: '${d}' } }",
        "callbacks { backup_and_restore { backup_dir: '${d}' } }",
        "strategy { parameter_server { recovery_dir: '${d}' } }",
        "evaluator { checkpoint_dir: '${d}' log_dir: '${d}' }"}) {
    EXPECT_EQ(Agreed(field, {{"d", "/x"}}).text,
              Agreed(field, {{"d", "/y"}}).text);
  }
}

TEST(JobTextTest, SuggestsTheEnumValueThatWasMeant) {
  EXPECT_THAT(
      Parse("model { sequential { layers { dense { activation: RELUU } } } }"),
      StatusIs(absl::StatusCode::kInvalidArgument,
               HasSubstr("did you mean \"RELU\"?")));
  const auto layer = [](const std::string& text) {
    return Parse(
        absl::StrCat("model { sequential { layers { ", text, " } } }"));
  };
  const std::vector<std::pair<std::string, std::string>> mistakes = {
      {"conv2d { padding: SAM }", "did you mean \"SAME\"?"},
      {"random_flip { mode: HORIZONTALLY }", "did you mean \"HORIZONTAL\"?"},
      {"resizing { interpolation: BILINEER }", "did you mean \"BILINEAR\"?"},
      {"random_zoom { fill_mode: ZERO }",
       "expected one of CONSTANT, NEAREST, REFLECT, WRAP"}};
  for (const auto& [text, hint] : mistakes) {
    EXPECT_THAT(layer(text),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(hint)))
        << text;
  }
}

TEST(JobTextTest, TakesEnumValuesInOtherSpellings) {
  const auto activation = [](const std::string& text,
                             const JobSettings& settings = {}) {
    const absl::StatusOr<proto::TrainingJob> job = Parse(
        absl::StrCat("model { sequential { layers { dense { activation: ", text,
                     " units: 3 } } } }"),
        settings);
    EXPECT_OK(job) << text;
    return job.ok() ? ActivationOf(*job) : "";
  };
  for (const std::string text :
       {"RELU", "relu", "\"relu\"", "'ReLU'", "Relu", "1"}) {
    EXPECT_EQ(activation(text), "RELU") << text;
  }
  for (const std::string text : {"leakyrelu", "\"leaky-relu\"", "LeakyReLU"}) {
    EXPECT_EQ(activation(text), "LEAKY_RELU") << text;
  }
  EXPECT_EQ(activation("${f}", {{"f", "relu"}}), "RELU");
  EXPECT_EQ(Agreed("input { auto_shard_policy: \"data\" }").text,
            Agreed("input { auto_shard_policy: DATA }").text);
}

// Protobuf's parser passes over reserved names.
TEST(JobTextTest, RefusesWeightDecayInsideARule) {
  for (const std::string rule : {"adamw", "adam", "sgd", "muon"}) {
    EXPECT_THAT(
        Parse(absl::StrCat("optimizer {\n  ", rule,
                           " { learning_rate: ${r} weight_decay: 0.5 }\n}"),
              {{"r", "0.12345"}}),
        StatusIs(absl::StatusCode::kInvalidArgument,
                 AllOf(StartsWith(absl::StrCat("a.job:2:", rule.size() + 26)),
                       HasSubstr(absl::StrCat("optimizer { ", rule,
                                              " { ... } weight_decay: ...")))));
  }
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
