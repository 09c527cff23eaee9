#ifndef COMMON_CORE_BASE_NESTING_DEPTH_H_
#define COMMON_CORE_BASE_NESTING_DEPTH_H_

#include "absl/strings/string_view.h"

namespace muster {

// Limits of nesting in text and files from outside. Readers refuse what is
// nested deeper. graph_verifier.h has the limit of graphs inside each other.

// Brackets of a text: JSON, or a text-format protobuf. No valid file of Muster,
// Keras or TensorFlow needs half of it, and code that recurses over what was
// parsed needs a few hundred bytes of stack for each level.
inline constexpr int kNestingDepthMax = 256;

// Messages of a job. Jobs are sent in protobuf's binary format, whose decoder
// reads no more.
inline constexpr int kMessageDepthMax = 100;

// Models and layers inside each other. Every pass over a model recurses through
// its levels, with far larger frames than those of a parser.
inline constexpr int kModelDepthMax = 32;

// Returns how many brackets, of "{}" and "[]", are open at the deepest place of
// a JSON text. Those in texts do not count. Takes linear time and no memory, so
// that a hostile text can be refused before it is parsed.
int JsonNestingDepth(absl::string_view text);

}  // namespace muster

#endif  // COMMON_CORE_BASE_NESTING_DEPTH_H_
