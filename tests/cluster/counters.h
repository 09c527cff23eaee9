#ifndef TESTS_CLUSTER_COUNTERS_H_
#define TESTS_CLUSTER_COUNTERS_H_

#include <cstdint>

#include "absl/status/status.h"
#include "common/compute/variables/variable_store.h"
#include "muster.h"

// Variables that count the steps applied to them. A step that is lost, applied
// twice, or applied partially leaves an element with a wrong value.
namespace muster {

// Creates a dense variable, two tables and a scalar, initialized with zero,
// with SGD at a learning rate of 1.
absl::Status CreateCounters(VariableStore& variables);

// Sets every element to zero by assignments.
absl::Status ResetCounters(VariableStore& variables);

// Returns a step that adds one to every element, in a different way for each
// variable: by a dense and a sparse gradient of -1, by a scatter and by an
// assignment. Float32 counts integers exactly. The step returns a value.
Function CountingStep();

// Checks that every element is `expected`.
//   kInternal  an element differs; the message names it
absl::Status ExpectCounted(VariableStore& variables, int64_t expected);

}  // namespace muster

#endif  // TESTS_CLUSTER_COUNTERS_H_
