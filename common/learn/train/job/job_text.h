#ifndef COMMON_LEARN_TRAIN_JOB_JOB_TEXT_H_
#define COMMON_LEARN_TRAIN_JOB_JOB_TEXT_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/learn/train/job/job_canonical.h"
#include "common/learn/train/job/job_settings.h"
#include "proto/training_job.pb.h"

namespace muster {

struct JobText {
  proto::TrainingJob job;
  // The job with the values of its ${name}s, except in the names of files and
  // folders: what processes that train the same job have in common, although
  // each has its own folder for the data.
  CanonicalJob agreed;
};

// Reads a job from protobuf text format and puts values in the places of its
// ${name}s: inside of strings and in the places of numbers and enum names, but
// not in comments. A name takes its value from `settings`, else from
// `builtins`, else from the default of the file's `variables`, in which the
// names of `builtins` stand for their values.
//
// `file_name` is what errors begin with.
//   kInvalidArgument  with "file:line:column: " before what is wrong: the
//                     syntax, a bracket that is not closed, a field that does
//                     not exist, a value of the wrong kind, a ${name} without
//                     a value; or a setting that the job does not know
absl::StatusOr<JobText> ParseJobText(absl::string_view text,
                                     absl::string_view file_name,
                                     const JobSettings& settings,
                                     const JobSettings& builtins);

}  // namespace muster

#endif  // COMMON_LEARN_TRAIN_JOB_JOB_TEXT_H_
