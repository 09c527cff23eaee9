#ifndef PROTO_TRAINING_JOB_SCHEMA_H_
#define PROTO_TRAINING_JOB_SCHEMA_H_

#include <cstddef>

namespace muster {

// A serialized google.protobuf.FileDescriptorSet of training_job.proto and its
// imports, with comments.
extern const unsigned char kTrainingJobSchema[];
extern const size_t kTrainingJobSchemaSize;

}  // namespace muster

#endif  // PROTO_TRAINING_JOB_SCHEMA_H_
