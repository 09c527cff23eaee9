#ifndef COMMON_LEARN_TRAIN_JOB_TESTING_PARSE_JOB_MESSAGE_H_
#define COMMON_LEARN_TRAIN_JOB_TESTING_PARSE_JOB_MESSAGE_H_

#include "absl/strings/string_view.h"
#include "google/protobuf/message.h"

namespace muster {

// Reads text format with fields of kinds (job_schema.h) into a message of a
// generated class. Returns false if the text does not fit the schema; protobuf
// logs why.
bool ParseJobMessage(absl::string_view text,
                     google::protobuf::Message* generated);

}  // namespace muster

#endif  // COMMON_LEARN_TRAIN_JOB_TESTING_PARSE_JOB_MESSAGE_H_
