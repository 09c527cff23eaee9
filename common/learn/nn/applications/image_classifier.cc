#include "common/learn/nn/applications/image_classifier.h"

#include <array>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "common/learn/nn/config_visitor.h"
#include "common/learn/nn/layer.h"
#include "common/learn/nn/layers/pooling.h"

namespace muster::applications {

void ImageClassifierOptions::VisitConfig(ConfigVisitor& visitor) {
  internal::VisitClassifier(visitor, *this);
}

namespace internal {

absl::Status CheckImageClassifier(absl::string_view name,
                                  const Shape& input_shape, bool include_top,
                                  int64_t classes) {
  const auto is_extent = [&](int64_t extent) {
    return extent >= 32 || (extent == Shape::kUnknown && !include_top);
  };
  if (input_shape.rank() != 3 || !is_extent(input_shape.dim(0)) ||
      !is_extent(input_shape.dim(1)) || input_shape.dim(2) < 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        name, ": input_shape is ", input_shape.ToString(),
        "; expected [height, width, channels], height and width of at least 32",
        include_top ? "" : " or unknown"));
  }
  if (classes < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, ": expected at least one class, got ", classes));
  }
  return absl::OkStatus();
}

int64_t HalfRoundedUp(int64_t extent) {
  return extent == Shape::kUnknown ? extent : (extent + 1) / 2;
}

std::array<int64_t, 2> MarginsBeforeStride(int64_t extent,
                                           int64_t kernel_size) {
  const bool is_odd = extent != Shape::kUnknown && extent % 2 == 1;
  return {kernel_size / 2 - (is_odd ? 0 : 1), kernel_size / 2};
}

LayerOutput PoolGlobally(const LayerOutput& x, Pooling pooling,
                         const GlobalPoolingNames& names) {
  switch (pooling) {
    case Pooling::kNone:
      return x;
    case Pooling::kAverage:
      return GlobalAveragePooling2D({.name = names.average})(x);
    case Pooling::kMax:
      return GlobalMaxPooling2D({.name = names.max})(x);
  }
  return x;
}

}  // namespace internal
}  // namespace muster::applications
