#include "common/core/base/nesting_depth.h"

#include <algorithm>
#include <cstddef>

#include "absl/strings/string_view.h"

namespace muster {

int JsonNestingDepth(absl::string_view text) {
  int depth = 0;
  int deepest = 0;
  bool is_quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '"') is_quoted = !is_quoted;
    if (is_quoted) {
      if (c == '\\') ++i;
    } else if (c == '{' || c == '[') {
      deepest = std::max(deepest, ++depth);
    } else if (c == '}' || c == ']') {
      --depth;
    }
  }
  return deepest;
}

}  // namespace muster
