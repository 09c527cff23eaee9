#ifndef COMMON_LEARN_TRAIN_JOB_JOB_CANONICAL_H_
#define COMMON_LEARN_TRAIN_JOB_JOB_CANONICAL_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "google/protobuf/message.h"
#include "google/protobuf/text_format.h"

namespace muster {

// A job in the form in which processes that train it together compare it: two
// files with other comments, white space, order of fields or spelling of
// numbers have the same.
struct CanonicalJob {
  // A line for each value that is set, in the order of the schema:
  //
  //   model.sequential.layers[0].dense.units: 128
  //   optimizer.adam {}
  //
  // Without `variables`, whose values stand where they are used.
  std::string text;
  // For each line of `text`, the line of the file that it comes from, from 1.
  // Empty for a job that comes from no file.
  std::vector<int> lines;
};

// `job` is a TrainingJob of the schema (job_schema.h). `locations` are those of
// the text that it was parsed from; null if it was not parsed.
CanonicalJob CanonicalForm(
    const google::protobuf::Message& job,
    const google::protobuf::TextFormat::ParseInfoTree* locations);

// Replaces the value of the field whose line begins with "`path`: ". Changes
// nothing if the job has no such field.
void SetCanonicalValue(absl::string_view path, absl::string_view value,
                       CanonicalJob* job);

}  // namespace muster

#endif  // COMMON_LEARN_TRAIN_JOB_JOB_CANONICAL_H_
