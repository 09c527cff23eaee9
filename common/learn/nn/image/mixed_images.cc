#include "common/learn/nn/image/mixed_images.h"

#include <cstdint>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/compute/graph/graph_builder.h"
#include "common/compute/ops/ops.h"
#include "common/core/base/random.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"
#include "common/learn/nn/config_visitor.h"
#include "common/learn/nn/image/augmentation.h"
#include "common/learn/nn/image/color.h"
#include "common/learn/nn/image/gamma_draws.h"
#include "common/learn/nn/layer.h"

namespace muster {
namespace {

// Keeps the parameter of the beta distribution above 0, as Keras does.
constexpr double kBetaParameterOffset = 1e-6;

std::string MistakeIn(const MixUpOptions& options) {
  if (options.alpha > 0) return "";
  return absl::StrCat("alpha must be above 0, got ", options.alpha);
}

std::string MistakeIn(const CutMixOptions& options) {
  const std::string what = OutOfBounds(options.factor, 0, 1);
  return what.empty() ? "" : absl::StrCat("factor ", what);
}

// What is drawn for a batch, and how its images and labels are mixed with it.
struct Mixture {
  Value images;
  Value weight;  // [batch, 1, 1, 1]: how much of a label remains.
  Value order;
};

Mixture Mix(Value images, const MixUpOptions& options, ImageDraws& draws) {
  const Value order = internal::DrawOrder(draws);
  const Value weight =
      internal::DrawBeta(ScalarLike(images, options.alpha), draws);
  return {.images = internal::Blend(images, weight, order),
          .weight = weight,
          .order = order};
}

Mixture Mix(Value images, const CutMixOptions& options, ImageDraws& draws) {
  const Value alpha =
      draws.UniformOfBatch(1, options.factor.lower, options.factor.upper) +
      kBetaParameterOffset;
  const Value share =
      Sqrt(1.0 - internal::DrawBeta(Reshape(alpha, {1, 1, 1, 1}), draws));
  const auto interval = [&](int64_t extent) {
    const auto whole = static_cast<double>(extent);
    const Value length = share * whole;
    const Value start = draws.Uniform(0, 1) * (whole - length);
    return std::pair<Value, Value>(start, start + length);
  };
  internal::Box box;
  std::tie(box.left, box.right) = interval(images.shape().dim(2));
  std::tie(box.top, box.bottom) = interval(images.shape().dim(1));
  const Value order = internal::DrawOrder(draws);
  return {.images = internal::PasteBox(images, box, order),
          .weight = internal::ShareOutside(images, box),
          .order = order};
}

// The results of a function whose arguments are wrong.
std::vector<Value> Refuse(absl::Span<const Value> batch, absl::string_view name,
                          absl::string_view why) {
  std::string types;
  for (const Value& component : batch) {
    absl::StrAppend(&types, types.empty() ? "" : ", ",
                    component.type().ToString());
  }
  if (!batch.empty()) {
    batch[0].builder()->ReportError(absl::InvalidArgumentError(
        absl::StrCat(name, ": ", why, "; the components are ", types)));
  }
  return {};
}

bool AreImages(Value x) {
  const Shape& shape = x.shape();
  return x.dtype() != DType::kString && shape.rank() == 4 &&
         shape.dim(1) >= 1 && shape.dim(2) >= 1;
}

template <typename Options>
BatchFunction MixBatches(absl::string_view name, const Options& options) {
  return [name, options](absl::Span<const Value> batch) {
    const std::string mistake = MistakeIn(options);
    if (!mistake.empty()) return Refuse(batch, name, mistake);
    if (batch.size() < 2 || !AreImages(batch[0])) {
      return Refuse(batch, name,
                    "expected images [batch, height, width, channels] of known "
                    "height and width, and their labels");
    }
    if (!IsFloating(batch[1].dtype()) || batch[1].shape().rank() != 2) {
      return Refuse(batch, name,
                    "expected labels [batch, classes] of a floating dtype; "
                    "make class numbers one-hot before");
    }
    const DType dtype = batch[0].dtype();
    const Value images =
        dtype == DType::kFloat64 ? batch[0] : Cast(batch[0], DType::kFloat32);
    ImageDraws draws(images, FoldIn(options.seed, name));
    const Mixture mixture = Mix(images, options, draws);
    std::vector<Value> result(batch.begin(), batch.end());
    result[0] = mixture.images;
    result[1] = internal::Blend(
        batch[1], Cast(Reshape(mixture.weight, {-1, 1}), batch[1].dtype()),
        mixture.order);
    return result;
  };
}

}  // namespace

BatchFunction OneHotLabels(int64_t class_count) {
  return [class_count](absl::Span<const Value> batch) {
    constexpr absl::string_view kName = "OneHotLabels";
    if (class_count < 1) {
      return Refuse(
          batch, kName,
          absl::StrCat("expected one class at least, not ", class_count));
    }
    const bool has_numbers =
        batch.size() >= 2 && IsInteger(batch[1].dtype()) &&
        (batch[1].shape().rank() == 1 ||
         (batch[1].shape().rank() == 2 && batch[1].shape().dim(1) == 1));
    if (!has_numbers) {
      return Refuse(batch, kName,
                    "expected class numbers [batch] or [batch, 1] of an "
                    "integer dtype as component 1");
    }
    std::vector<Value> result(batch.begin(), batch.end());
    result[1] =
        OneHot(Cast(Reshape(batch[1], {-1}), DType::kInt64), class_count);
    return result;
  };
}

void MixUpLayer::VisitConfig(ConfigVisitor& visitor) {
  visitor.Describe(
      "Mixes images and no labels, as Keras' layer in a model does. The field "
      "mix_up of the data mixes both.");
  visitor.Visit("alpha", alpha_);
  VisitSeed(visitor);
}

std::string MixUpLayer::Mistake() const {
  return MistakeIn(MixUpOptions{.alpha = alpha_});
}

Value MixUpLayer::Augment(Value x, ImageDraws& draws) {
  return Mix(x, MixUpOptions{.alpha = alpha_}, draws).images;
}

LayerPtr MixUp(const MixUpOptions& options) {
  return std::make_shared<MixUpLayer>(options);
}

BatchFunction MixUpBatches(const MixUpOptions& options) {
  return MixBatches("MixUp", options);
}

void CutMixLayer::VisitConfig(ConfigVisitor& visitor) {
  visitor.Describe(
      "Mixes images and no labels, as Keras' layer in a model does. The field "
      "cut_mix of the data mixes both.");
  VisitFactor(visitor, Described("factor", "One number is [0, number]."),
              factor_, false);
  VisitSeed(visitor);
}

std::string CutMixLayer::Mistake() const {
  return MistakeIn(CutMixOptions{.factor = factor_});
}

Value CutMixLayer::Augment(Value x, ImageDraws& draws) {
  return Mix(x, CutMixOptions{.factor = factor_}, draws).images;
}

LayerPtr CutMix(const CutMixOptions& options) {
  return std::make_shared<CutMixLayer>(options);
}

BatchFunction CutMixBatches(const CutMixOptions& options) {
  return MixBatches("CutMix", options);
}

namespace internal {

Value Blend(Value x, Value weight, Value order) {
  return weight * x + (1.0 - weight) * Gather(x, order);
}

Value PasteBox(Value images, const Box& box, Value order) {
  return Erase(images, box, Gather(images, order));
}

Value ShareOutside(Value images, const Box& box) {
  const auto pixels =
      static_cast<double>(images.shape().dim(1) * images.shape().dim(2));
  return 1.0 - (box.right - box.left) * (box.bottom - box.top) / pixels;
}

// The rank of each of as many random numbers. Of equal ones the first comes
// first.
// Counts the numbers before each one: ArgSort() needs a known extent, and the
// size of a batch is unknown.
Value DrawOrder(ImageDraws& draws) {
  const Value numbers = draws.Uniform(0, 1);
  const Value column = Reshape(numbers, {-1, 1});
  const Value row = Reshape(numbers, {1, -1});
  const Value position = CumSum(Cast(OnesLike(column), DType::kInt32));
  const Value comes_first = LogicalOr(
      row < column,
      LogicalAnd(Equal(row, column), Reshape(position, {1, -1}) < position));
  return Sum(Cast(comes_first, DType::kInt32), {1});
}

}  // namespace internal

}  // namespace muster
