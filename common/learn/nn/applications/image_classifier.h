#ifndef COMMON_LEARN_NN_APPLICATIONS_IMAGE_CLASSIFIER_H_
#define COMMON_LEARN_NN_APPLICATIONS_IMAGE_CLASSIFIER_H_

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/core/tensor/shape.h"
#include "common/learn/nn/activations.h"
#include "common/learn/nn/config_visitor.h"
#include "common/learn/nn/layer_ptr.h"

namespace muster::applications {

// The pooling after the last convolution if `include_top` is false.
enum class Pooling { kNone, kAverage, kMax };

// Names, defaults and meaning are those of keras.applications.
struct ImageClassifierOptions {
  // [height, width, channels]. Height and width must be at least 32; without a
  // top they may be unknown.
  Shape input_shape = {224, 224, 3};
  // If true, dense layers follow, the last one with `classes` units.
  bool include_top = true;
  Pooling pooling = Pooling::kNone;
  int64_t classes = 1000;
  Activation classifier_activation = Activation::kSoftmax;
  std::string name = "";  // Empty: Keras' name of the model.

  void VisitConfig(ConfigVisitor& visitor);
};

namespace internal {

// Visits what all models have.
template <typename Options>
void VisitClassifier(ConfigVisitor& visitor, Options& options) {
  static constexpr absl::string_view kPoolings[] = {"none", "average", "max"};
  std::vector<int64_t> extents(options.input_shape.dims().begin(),
                               options.input_shape.dims().end());
  const ConfigName input_shape =
      Described("input_shape", "Height, width, channels.");
  visitor.Visit(input_shape, extents);
  const absl::StatusOr<Shape> shape =
      Shape::Create(extents, /*allow_unknown=*/true);
  if (shape.ok()) {
    options.input_shape = *shape;
  } else {
    visitor.Refuse(input_shape, shape.status().message());
  }
  visitor.Visit("include_top", options.include_top);
  visitor.Visit(Described("pooling", "Without a top."), options.pooling,
                kPoolings);
  visitor.Visit("classes", options.classes);
  visitor.Visit("classifier_activation", options.classifier_activation);
  visitor.Visit("name", options.name);
}

// Returns OK if the options of the model `name` are within their ranges.
//   kInvalidArgument  input_shape or classes are out of range; names the model
absl::Status CheckImageClassifier(absl::string_view name,
                                  const Shape& input_shape, bool include_top,
                                  int64_t classes);

// The extent of the output of a layer of stride 2; Shape::kUnknown stays.
int64_t HalfRoundedUp(int64_t extent);
// The padding before a convolution of stride 2 whose windows have an odd
// `kernel_size`. Aligns the windows like a symmetric padding by half the
// window, for even and odd extents; unknown ones count as even.
std::array<int64_t, 2> MarginsBeforeStride(int64_t extent, int64_t kernel_size);

// The input or output of a block. Extents are Shape::kUnknown if those of the
// model's input are.
struct FeatureMap {
  LayerOutput output;
  int64_t height = 0;
  int64_t width = 0;
  int64_t channels = 0;
};

struct GlobalPoolingNames {
  std::string average = "";
  std::string max = "";
};
// Pools the output of the last convolution; kNone returns it unchanged.
LayerOutput PoolGlobally(const LayerOutput& x, Pooling pooling,
                         const GlobalPoolingNames& names = {});

}  // namespace internal
}  // namespace muster::applications

#endif  // COMMON_LEARN_NN_APPLICATIONS_IMAGE_CLASSIFIER_H_
