#ifndef COMMON_LEARN_NN_IMAGE_INTERPOLATION_H_
#define COMMON_LEARN_NN_IMAGE_INTERPOLATION_H_

#include "absl/strings/string_view.h"
#include "common/compute/ops/image_ops.h"
#include "common/learn/nn/config_visitor.h"

namespace muster {

// "bilinear" or "nearest".
inline void VisitInterpolation(ConfigVisitor& visitor, Interpolation& value) {
  static constexpr absl::string_view kNames[] = {"bilinear", "nearest"};
  visitor.Visit("interpolation", value, kNames);
}

}  // namespace muster

#endif  // COMMON_LEARN_NN_IMAGE_INTERPOLATION_H_
