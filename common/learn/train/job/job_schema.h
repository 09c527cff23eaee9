#ifndef COMMON_LEARN_TRAIN_JOB_JOB_SCHEMA_H_
#define COMMON_LEARN_TRAIN_JOB_JOB_SCHEMA_H_

#include <memory>

#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"
#include "common/learn/nn/config_visitor.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"

namespace muster {

// The schema of job files: proto/training_job.proto, whose messages JobLayer,
// JobLoss, JobMetric, JobCallback, JobApplication, JobInitializer,
// JobRegularizer and JobConstraint get a oneof `kind` with a field for each
// entry of their table (kLayerKinds, kLossKinds, ...). The field's message has
// a field for each hyperparameter that the VisitConfig() of the kind lists,
// with the description that it gives. Built when it is first used.
//
// Classes that protoc generates keep the fields of kinds as unknown fields:
// these are read from the message that WithKinds() returns. Thread-safe.

// Calls see(message, kind, visit) for each kind that job files have: the
// message that gets the kind, "JobLayer"; the name of the kind, "dense"; and
// visit(visitor), which shows the hyperparameters with their defaults.
void ForEachJobKind(absl::FunctionRef<
                    void(absl::string_view message, absl::string_view kind,
                         absl::FunctionRef<void(ConfigVisitor& visitor)> visit)>
                        use);

// Returns the schema, comments included.
const google::protobuf::DescriptorPool& JobSchema();

// Returns an empty message of the schema: "TrainingJob", "JobLayer".
std::unique_ptr<google::protobuf::Message> NewJobMessage(
    absl::string_view type);

// Returns a copy of a message of a job whose type is the schema's.
std::unique_ptr<google::protobuf::Message> WithKinds(
    const google::protobuf::Message& message);

// Copies a message of the schema into one of a generated class of this name.
void CopyFromKinds(const google::protobuf::Message& message,
                   google::protobuf::Message* generated);

}  // namespace muster

#endif  // COMMON_LEARN_TRAIN_JOB_JOB_SCHEMA_H_
