#include "common/compute/ops/window_options.h"

#include <string>
#include <vector>

namespace muster::internal {

Attributes WindowAttributes(const std::array<int64_t, 2>& strides,
                            const std::array<int64_t, 2>& dilations,
                            const Padding2D& padding) {
  Attributes attributes = {
      {"strides", std::vector<int64_t>(strides.begin(), strides.end())},
      {"dilations", std::vector<int64_t>(dilations.begin(), dilations.end())}};
  switch (padding.kind) {
    case PaddingKind::kValid:
      attributes.Set("padding", std::string("VALID"));
      break;
    case PaddingKind::kSame:
      attributes.Set("padding", std::string("SAME"));
      break;
    case PaddingKind::kExplicit:
      attributes.Set("padding", std::string("EXPLICIT"));
      attributes.Set("explicit_padding",
                     std::vector<int64_t>{padding.top, padding.bottom,
                                          padding.left, padding.right});
      break;
  }
  return attributes;
}

}  // namespace muster::internal
