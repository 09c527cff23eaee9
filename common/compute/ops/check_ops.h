#ifndef COMMON_COMPUTE_OPS_CHECK_OPS_H_
#define COMMON_COMPUTE_OPS_CHECK_OPS_H_

#include <string>

#include "absl/strings/string_view.h"
#include "common/compute/graph/graph_builder.h"

// Checks of values while a step runs. Both return `x`; a step runs them only if
// it uses their result. In a step on a GPU, Assert() runs on the GPU. Print()
// runs on the host, which waits for the GPU at this point and logs that it
// does.
namespace muster {

struct PrintOptions {
  int summarize = 8;  // The number of elements that are shown.
};
// Writes `label`, the type and the first elements of `x` to stderr.
//
// Equivalent to: tf.print.
Value Print(Value x, absl::string_view label, PrintOptions options = {});

// Fails the step with kInvalidArgument and `message` unless all elements of
// `condition`, bool, are true.
//
// Equivalent to: tf.debugging.Assert.
Value Assert(Value x, Value condition, absl::string_view message);

}  // namespace muster

#endif  // COMMON_COMPUTE_OPS_CHECK_OPS_H_
