#ifndef COMMON_CORE_BASE_NESTING_DEPTH_H_
#define COMMON_CORE_BASE_NESTING_DEPTH_H_

#include "absl/strings/string_view.h"

namespace muster {

// Files that are nested deeper than this are refused. No valid file of Muster,
// Keras or TensorFlow needs half of it, and code that recurses over what was
// parsed needs a few hundred bytes of stack for each level.
inline constexpr int kNestingDepthMax = 256;

// Returns how many brackets, of "{}" and "[]", are open at the deepest place of
// a JSON text. Those in texts do not count. Takes linear time and no memory, so
// that a hostile text can be refused before it is parsed.
int JsonNestingDepth(absl::string_view text);

}  // namespace muster

#endif  // COMMON_CORE_BASE_NESTING_DEPTH_H_
