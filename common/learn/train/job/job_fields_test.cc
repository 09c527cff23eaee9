#include "common/learn/train/job/job_fields.h"

#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/learn/train/job/job_schema.h"
#include "gmock/gmock.h"
#include "google/protobuf/descriptor.h"
#include "gtest/gtest.h"
#include "proto/training_job.pb.h"

namespace muster {
namespace {

namespace pb = google::protobuf;
using ::testing::HasSubstr;

const pb::Descriptor& Job() {
  return *JobSchema().FindMessageTypeByName("muster.proto.TrainingJob");
}

// The first mistake as "line:column: message"; empty if there is none.
std::string MistakeOf(const std::string& text,
                      const pb::Descriptor& type = Job()) {
  const JobFields fields = CheckJobFields(text, type);
  if (!fields.mistake.has_value()) return "";
  return absl::StrCat(fields.mistake->line, ":", fields.mistake->column, ": ",
                      fields.mistake->message);
}

void CollectTypes(const pb::Descriptor& type,
                  std::set<const pb::Descriptor*>* types) {
  if (!types->insert(&type).second) return;
  for (int i = 0; i < type.field_count(); ++i) {
    const pb::Descriptor* const inner = type.field(i)->message_type();
    if (inner != nullptr) CollectTypes(*inner, types);
  }
}

// Protobuf's parser skips reserved names and their values.
TEST(JobFieldsTest, RefusesEveryReservedNameOfTheSchema) {
  std::set<const pb::Descriptor*> types;
  CollectTypes(Job(), &types);
  int reserved_count = 0;
  for (const pb::Descriptor* const type : types) {
    for (int i = 0; i < type->reserved_name_count(); ++i) {
      ++reserved_count;
      EXPECT_THAT(MistakeOf(absl::StrCat(type->reserved_name(i), ": 1"), *type),
                  HasSubstr(absl::StrCat("has no field named \"",
                                         type->reserved_name(i), "\"")))
          << type->full_name();
    }
  }
  EXPECT_GT(reserved_count, 0);
}

TEST(JobFieldsTest, NamesTheMessageThatHasTheField) {
  for (const std::string rule : {"adam", "adamw", "sgd", "muon"}) {
    EXPECT_EQ(
        MistakeOf(
            absl::StrCat("optimizer { ", rule, " {\n  weight_decay: 0.5 } }")),
        absl::StrCat("1:2: optimizer.", rule,
                     " has no field named \"weight_decay\"; it is a field of "
                     "optimizer, beside ",
                     rule, ": optimizer { ", rule,
                     " { ... } weight_decay: ... }"));
  }
  EXPECT_THAT(MistakeOf("train { batch_size: 3 }"),
              HasSubstr("it is a field of the job, beside train: train { ... } "
                        "batch_size: ..."));
  EXPECT_THAT(MistakeOf("optimizer { learning_rate: 3 }"),
              HasSubstr("it is a field of optimizer.sgd, optimizer.adam, "));
  EXPECT_THAT(MistakeOf("train { path: 'a' }"),
              HasSubstr("it is a field of train.csv, train.tf_record"));
}

TEST(JobFieldsTest, ReadsAllOfTheSyntax) {
  EXPECT_EQ(
      MistakeOf("# A comment: unknown { }\n"
                "seed: 0x7; epochs: 3,\n"
                "train < csv: { path: [\"a\" 'b', \"c\"] scale: -1e3f } >\n"
                "validation_freq: [1, 2] metrics: [{ auc {} }, {}]\n"
                "callbacks: []\n"
                "class_weight { key: 1 value: inf }\n"),
      "");
  // What is no syntax is left to protobuf's parser.
  for (const std::string text : {"", "{", "seed 7 }", "seed: }", "train: 3",
                                 "input { auto_shard_policy: }", "\"a\"",
                                 "train { csv { path: \"a } }"}) {
    EXPECT_EQ(MistakeOf(text), "") << text;
  }
}

TEST(JobFieldsTest, ReadsNamesOfEnumValuesInOtherSpellings) {
  const auto read = [](const std::string& value) {
    return CheckJobFields(absl::StrCat("input {\tauto_shard_policy: ", value,
                                       "}  # the end"),
                          Job())
        .text;
  };
  EXPECT_EQ(read("data"), "input {\tauto_shard_policy: DATA}  # the end");
  EXPECT_EQ(read("\"Data\""), "input {\tauto_shard_policy: DATA  }  # the end");
  EXPECT_EQ(read("-1"), "input {\tauto_shard_policy: -1}  # the end");
  const auto activation = [](const std::string& value) {
    return CheckJobFields(
        absl::StrCat("model { sequential { layers { dense { activation: ",
                     value, " units: 3 } } } }"),
        Job());
  };
  for (const std::string value : {"leaky_relu", "'leaky_relu'", "leaky-relu",
                                  "LeakyReLU", "\"LEAKYRELU\"", "14"}) {
    proto::TrainingJob job;
    const JobFields fields = activation(value);
    EXPECT_FALSE(fields.mistake.has_value()) << value;
    const bool is_name = fields.text.find("LEAKY_RELU") != std::string::npos;
    EXPECT_TRUE(is_name || fields.text.find(": 14 ") != std::string::npos)
        << fields.text;
    EXPECT_EQ(fields.text.find("units") - value.size(),
              activation("").text.find("units"))
        << fields.text;
  }
}

TEST(JobFieldsTest, RefusesValuesThatAnEnumDoesNotHave) {
  EXPECT_EQ(MistakeOf("input { auto_shard_policy: Dato }"),
            "0:27: input: auto_shard_policy has no value \"Dato\"; did you "
            "mean \"DATA\"?");
  EXPECT_THAT(MistakeOf("input { auto_shard_policy: 17 }"),
              HasSubstr("has no value \"17\"; expected one of AUTO, FILE, "));
  EXPECT_THAT(MistakeOf("input { auto_shard_policy: '' }"),
              HasSubstr("has no value \"\""));
}

TEST(JobFieldsTest, RefusesMessagesThatAreNestedTooDeep) {
  std::string text = "model { sequential { layers { ";
  for (int i = 0; i < 5000; ++i) text += "time_distributed { layer { ";
  for (int i = 0; i < 5000; ++i) text += "} } ";
  EXPECT_THAT(MistakeOf(text + "} } }"), HasSubstr("nested deeper than 100"));
}

}  // namespace
}  // namespace muster
