#ifndef COMMON_CORE_BASE_NESTING_DEPTH_H_
#define COMMON_CORE_BASE_NESTING_DEPTH_H_

#include "absl/strings/string_view.h"

namespace muster {

// Limits of nesting in text and files from outside the process. Readers reject
// deeper nesting. graph_verifier.h has the limit of graphs inside each other.

// Maximum depth of brackets in a text: JSON, or a text-format protobuf. No
// valid file of Muster, Keras or TensorFlow needs half of it. Code that
// recurses over the parsed text needs a few hundred bytes of stack for each
// level.
inline constexpr int kNestingDepthMax = 256;

// Maximum depth of messages inside each other in a job. A job that was read is
// converted by protobuf's binary format, whose decoder has the same limit.
inline constexpr int kMessageDepthMax = 100;

// Maximum depth of models and layers inside each other. Every pass over a model
// recurses through its levels, with far larger stack frames than those of a
// parser.
inline constexpr int kModelDepthMax = 32;

// Returns the largest number of brackets, "{}" and "[]", that are open at one
// place of a JSON text. Brackets inside strings do not count. Takes linear time
// and allocates no memory, so that a hostile text can be rejected before it is
// parsed.
int JsonNestingDepth(absl::string_view text);

}  // namespace muster

#endif  // COMMON_CORE_BASE_NESTING_DEPTH_H_
