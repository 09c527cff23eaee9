#ifndef COMMON_LEARN_TRAIN_JOB_JOB_REFERENCE_H_
#define COMMON_LEARN_TRAIN_JOB_JOB_REFERENCE_H_

#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace muster {

// The default of a field of a job file, for people.
struct JobDefault {
  std::string text;          // As a job file has it: 0.001, RELU, [1, 1], none.
  bool is_required = false;  // There is no default.
};

// Returns the defaults of the hyperparameters of all layers, losses, metrics,
// initializers, regularizers, callbacks, optimizers and schedules, by the full
// names of their fields: "muster.proto.JobLayer.Dense.activation". Kinds that
// share a message have the defaults of the first of them.
std::map<std::string, JobDefault> JobDefaults();

// The fields of job files with their types, defaults and comments. Types and
// comments are those of proto/training_job.proto and its imports, defaults
// those of the tables of layers, losses, optimizers and so on.

// Returns the fields of the top level of a job file if `name` is empty;
// otherwise all fields called `name` with the fields in them, as plain text.
//   kNotFound  no field has this name; suggests one that is close
absl::StatusOr<std::string> ExplainJobField(absl::string_view name);

// Returns all fields as a Markdown page: docs/job_reference.md.
std::string JobReferencePage();

}  // namespace muster

#endif  // COMMON_LEARN_TRAIN_JOB_JOB_REFERENCE_H_
