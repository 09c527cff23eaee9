#ifndef COMMON_COMPUTE_RUNTIME_RUN_OPTIONS_H_
#define COMMON_COMPUTE_RUNTIME_RUN_OPTIONS_H_

#include <cstdint>

namespace muster {

// What one run of a step is told besides its arguments.
struct RunOptions {
  // Names the step for all time; see VariableSession::Begin().
  uint64_t step_id = 0;
  // Of steps that go under one id: which one, from 0.
  int step_part = 0;
  // The only source of randomness; the same for a retry of the step, and for
  // all replicas of it.
  uint64_t step_seed = 0;
  // Where the first row of the arguments stands in the global batch, of which
  // they are a part; at least 0. Rows draw random numbers by their place there,
  // so that however a batch is divided, each draws the same.
  int64_t example_offset = 0;
};

}  // namespace muster

#endif  // COMMON_COMPUTE_RUNTIME_RUN_OPTIONS_H_
