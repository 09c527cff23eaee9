#include "common/learn/train/job/job_schema.h"

#include <memory>
#include <string>

#include "common/learn/train/job/testing/parse_job_message.h"
#include "gmock/gmock.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "proto/training_job.pb.h"

namespace muster {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

const FieldDescriptor& FieldOf(const std::string& message,
                               const std::string& field) {
  return *JobSchema()
              .FindMessageTypeByName("muster.proto." + message)
              ->FindFieldByName(field);
}

TEST(JobSchemaTest, KindsOutliveAMessageOfAGeneratedClass) {
  const std::string text =
      "model { sequential { layers { bidirectional { layer { lstm { units: 4 "
      "activation: TANH } } } } layers { dense { units: 2 } } } } "
      "loss { huber { delta: 2 reduction: SUM } } "
      "callbacks { csv_logger { filename: \"a.csv\" } }";
  proto::TrainingJob job;
  ASSERT_TRUE(ParseJobMessage(text, &job));
  const proto::TrainingJob copy = job;
  const std::unique_ptr<Message> with_kinds = WithKinds(copy);
  EXPECT_THAT(with_kinds->ShortDebugString(), ::testing::StrEq(text));
}

TEST(JobSchemaTest, ATextThatDoesNotFitIsRefused) {
  proto::JobCallback callback;
  EXPECT_FALSE(ParseJobMessage("early_stoping {}", &callback));
  EXPECT_FALSE(ParseJobMessage("early_stopping { patienc: 1 }", &callback));
  // What is an int in the options has 32 bits.
  EXPECT_TRUE(
      ParseJobMessage("early_stopping { patience: 2147483647 }", &callback));
  EXPECT_FALSE(
      ParseJobMessage("early_stopping { patience: 2147483648 }", &callback));
}

TEST(JobSchemaTest, AHyperparameterHasPresence) {
  proto::JobLoss loss;
  ASSERT_TRUE(ParseJobMessage("huber { delta: 0 }", &loss));
  EXPECT_EQ(WithKinds(loss)->ShortDebugString(), "huber { delta: 0 }");
  ASSERT_TRUE(ParseJobMessage("huber {}", &loss));
  EXPECT_EQ(WithKinds(loss)->ShortDebugString(), "huber { }");
}

TEST(JobSchemaTest, TheLastKindCounts) {
  proto::JobLoss loss;
  ASSERT_TRUE(ParseJobMessage("hinge {}", &loss));
  proto::JobLoss other;
  ASSERT_TRUE(ParseJobMessage("poisson {}", &other));
  loss.MergeFrom(other);
  EXPECT_EQ(WithKinds(loss)->ShortDebugString(), "poisson { }");
}

TEST(JobSchemaTest, FieldsHaveTheTypesOfTheOptions) {
  EXPECT_EQ(FieldOf("JobLayer.Dense", "units").type(),
            FieldDescriptor::TYPE_INT64);
  EXPECT_EQ(FieldOf("JobLayer.Dense", "kernel_initializer").message_type(),
            JobSchema().FindMessageTypeByName("muster.proto.JobInitializer"));
  EXPECT_TRUE(FieldOf("JobLayer.StackedRnnCells", "cells").is_repeated());
  const auto& modes = *FieldOf("JobCallback.EarlyStopping", "mode").enum_type();
  ASSERT_EQ(modes.value_count(), 3);
  EXPECT_EQ(modes.value(1)->name(), "MIN");
}

TEST(JobSchemaTest, DescriptionsAreTheCommentsOfFields) {
  google::protobuf::SourceLocation location;
  ASSERT_TRUE(
      FieldOf("JobLayer.Dropout", "noise_shape").GetSourceLocation(&location));
  EXPECT_EQ(location.leading_comments, "-1: the input's extent.");
  ASSERT_TRUE(JobSchema()
                  .FindMessageTypeByName("muster.proto.JobLayer.MixUp")
                  ->GetSourceLocation(&location));
  EXPECT_THAT(location.leading_comments, ::testing::HasSubstr("no labels"));
}

}  // namespace
}  // namespace muster
