#ifndef COMMON_LEARN_TRAIN_JOB_JOB_DEFAULTS_H_
#define COMMON_LEARN_TRAIN_JOB_JOB_DEFAULTS_H_

#include <map>
#include <string>

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

}  // namespace muster

#endif  // COMMON_LEARN_TRAIN_JOB_JOB_DEFAULTS_H_
