#ifndef TESTS_CLUSTER_COUNTERS_H_
#define TESTS_CLUSTER_COUNTERS_H_

#include <cstdint>

#include "absl/status/status.h"
#include "common/compute/variables/variable_store.h"
#include "muster.h"

// Variables that count the steps which were applied to them: a step that is
// lost, or applied twice or in part, leaves an element with a wrong number.
namespace muster {

// A dense variable, two tables and a scalar, at zero, under SGD with a learning
// rate of 1.
absl::Status CreateCounters(VariableStore& variables);

// Adds one to every element of each, in another way each: by a dense and by a
// sparse gradient of -1, by a scatter and by an assignment. Float32 counts
// integers exactly. Returns a value.
Function CountingStep();

//   kInternal  an element is not `expected`; names it
absl::Status ExpectCounted(VariableStore& variables, int64_t expected);

}  // namespace muster

#endif  // TESTS_CLUSTER_COUNTERS_H_
