#ifndef PROTO_TRAINING_JOB_SCHEMA_H_
#define PROTO_TRAINING_JOB_SCHEMA_H_

#include <cstddef>

namespace muster {

// training_job.proto and what it imports, comments included: a serialized
// google.protobuf.FileDescriptorSet.
extern const unsigned char kTrainingJobSchema[];
extern const size_t kTrainingJobSchemaSize;

}  // namespace muster

#endif  // PROTO_TRAINING_JOB_SCHEMA_H_
