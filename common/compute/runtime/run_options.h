#ifndef COMMON_COMPUTE_RUNTIME_RUN_OPTIONS_H_
#define COMMON_COMPUTE_RUNTIME_RUN_OPTIONS_H_

#include <cstdint>

namespace muster {

// The parameters of one run of a step, in addition to its arguments.
struct RunOptions {
  // The unique id of the step; see VariableSession::Begin().
  uint64_t step_id = 0;
  // The index of the step among those with the same id, from 0.
  int step_part = 0;
  // The only source of randomness; the same for a retry of the step, and for
  // all replicas.
  uint64_t step_seed = 0;
  // The position of the arguments' first row in the global batch; at least 0.
  // Random numbers for rows depend on this position, and so do not depend on
  // how a batch is divided.
  int64_t example_offset = 0;
};

}  // namespace muster

#endif  // COMMON_COMPUTE_RUNTIME_RUN_OPTIONS_H_
