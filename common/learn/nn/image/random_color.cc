#include "common/learn/nn/image/random_color.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/compute/graph/graph_builder.h"
#include "common/compute/ops/ops.h"
#include "common/core/tensor/dtype.h"
#include "common/learn/nn/config_visitor.h"
#include "common/learn/nn/image/augmentation.h"
#include "common/learn/nn/image/color.h"
#include "common/learn/nn/layer.h"

namespace muster {
namespace {

constexpr double kKerasEpsilon = 1e-7;  // keras.config.epsilon().
constexpr int64_t kBinsMax = 65536;

// "factor must be in ..."; empty if it is.
template <typename Factor>
std::string Named(const char* name, const Factor& factor, double lower,
                  double upper) {
  const std::string what = OutOfBounds(factor, lower, upper);
  return what.empty() ? "" : absl::StrCat(name, " ", what);
}

Value DrawnFactor(ImageDraws& draws, const RandomFactor& factor) {
  return draws.Uniform(factor.lower, factor.upper);
}

// True for each image with a probability that is drawn from the factor.
template <typename Factor>
Value IsChanged(ImageDraws& draws, const Factor& factor) {
  const Value probability = draws.Uniform(factor.lower, factor.upper);
  return draws.Uniform(0, 1) < probability;
}

// Changes each image by what is drawn from the factor.
Value Changed(ColorChange change, const RandomFactor& factor,
              const ValueRange& range, Value x, ImageDraws& draws) {
  switch (change) {
    case ColorChange::kBrightness:
      return internal::AdjustBrightness(
          x, DrawnFactor(draws, factor) * (range.upper - range.lower), range);
    case ColorChange::kContrast:
      return internal::AdjustContrast(
          x, draws.Uniform(1 - factor.lower, 1 + factor.upper), range);
    case ColorChange::kSaturation: {
      const Value drawn = DrawnFactor(draws, factor);
      return internal::AdjustSaturation(x, drawn / (1 - drawn + kKerasEpsilon),
                                        range);
    }
    case ColorChange::kHue: {
      const Value sign = draws.Sign();
      return internal::AdjustHue(x, sign * DrawnFactor(draws, factor) * 0.5,
                                 range);
    }
    case ColorChange::kColorDegeneration:
      return internal::DegenerateColor(x, DrawnFactor(draws, factor), range);
    case ColorChange::kInvert:
      return Select(IsChanged(draws, factor), range.upper - x, x);
    case ColorChange::kSharpness:
      return internal::Sharpen(x, DrawnFactor(draws, factor) * 2.0, range);
  }
  return Value();
}

// Visits a factor that may be absent.
template <typename Factor>
void VisitOptionalFactor(ConfigVisitor& visitor, ConfigName name,
                         std::optional<Factor>& factor) {
  if (!visitor.IsPresent(name, factor.has_value())) return;
  Factor present = factor.value_or(Factor(0.0));
  VisitFactor(visitor, name, present);
  factor = present;
}

// As Changed(), if there is a factor.
template <typename Factor>
Value ChangedIfSet(ColorChange change, const std::optional<Factor>& factor,
                   const ValueRange& range, Value x, ImageDraws& draws) {
  if (!factor.has_value()) return x;
  return Changed(change, RandomFactor(factor->lower, factor->upper), range, x,
                 draws);
}

LayerPtr Make(ColorChange change, const RandomFactor& factor,
              const RandomColorOptions& options) {
  return std::make_shared<RandomColorLayer>(change, factor, options);
}

LayerPtr Make(ColorChange change, const UnitFactor& factor,
              const RandomColorOptions& options) {
  return Make(change, RandomFactor(factor.lower, factor.upper), options);
}

}  // namespace

std::string RandomColorLayer::kind() const {
  switch (change_) {
    case ColorChange::kBrightness:
      return "RandomBrightness";
    case ColorChange::kContrast:
      return "RandomContrast";
    case ColorChange::kSaturation:
      return "RandomSaturation";
    case ColorChange::kHue:
      return "RandomHue";
    case ColorChange::kColorDegeneration:
      return "RandomColorDegeneration";
    case ColorChange::kInvert:
      return "RandomInvert";
    case ColorChange::kSharpness:
      return "RandomSharpness";
  }
  return "";
}

bool RandomColorLayer::has_unit_factor() const {
  return change_ == ColorChange::kContrast || change_ == ColorChange::kHue ||
         change_ == ColorChange::kInvert || change_ == ColorChange::kSharpness;
}

void RandomColorLayer::VisitConfig(ConfigVisitor& visitor) {
  const bool is_required = change_ != ColorChange::kInvert;
  if (has_unit_factor()) {
    UnitFactor factor(factor_.lower, factor_.upper);
    VisitFactor(
        visitor,
        Described("factor",
                  "One number or two; one number is [-number, number], or [0, "
                  "number] of contrast, hue, inversion and sharpness."),
        factor, is_required);
    factor_ = RandomFactor(factor.lower, factor.upper);
  } else {
    VisitFactor(
        visitor,
        Described("factor",
                  "One number or two; one number is [-number, number], or [0, "
                  "number] of contrast, hue, inversion and sharpness."),
        factor_);
  }
  VisitValueRange(visitor, range_);
  VisitSeed(visitor);
}

std::string RandomColorLayer::Mistake() const {
  return Named("factor", factor_, has_unit_factor() ? 0 : -1, 1);
}

std::vector<int64_t> RandomColorLayer::channel_counts() const {
  switch (change_) {
    case ColorChange::kSaturation:
    case ColorChange::kHue:
      return {3};
    case ColorChange::kColorDegeneration:
      return {1, 3};
    default:
      return {};
  }
}

Value RandomColorLayer::Augment(Value x, ImageDraws& draws) {
  return Changed(change_, factor_, range_, x, draws);
}

LayerPtr RandomBrightness(const RandomFactor& factor,
                          const RandomColorOptions& options) {
  return Make(ColorChange::kBrightness, factor, options);
}

LayerPtr RandomContrast(const UnitFactor& factor,
                        const RandomColorOptions& options) {
  return Make(ColorChange::kContrast, factor, options);
}

LayerPtr RandomSaturation(const RandomFactor& factor,
                          const RandomColorOptions& options) {
  return Make(ColorChange::kSaturation, factor, options);
}

LayerPtr RandomHue(const UnitFactor& factor,
                   const RandomColorOptions& options) {
  return Make(ColorChange::kHue, factor, options);
}

LayerPtr RandomColorDegeneration(const RandomFactor& factor,
                                 const RandomColorOptions& options) {
  return Make(ColorChange::kColorDegeneration, factor, options);
}

LayerPtr RandomInvert(const UnitFactor& factor,
                      const RandomColorOptions& options) {
  return Make(ColorChange::kInvert, factor, options);
}

LayerPtr RandomSharpness(const UnitFactor& factor,
                         const RandomColorOptions& options) {
  return Make(ColorChange::kSharpness, factor, options);
}

void RandomColorJitterLayer::VisitConfig(ConfigVisitor& visitor) {
  visitor.Describe(
      "Factors as those of the layers of one change; absent: no such change.");
  VisitValueRange(visitor, options_.value_range);
  VisitOptionalFactor(visitor, "brightness_factor", options_.brightness_factor);
  VisitOptionalFactor(visitor, "contrast_factor", options_.contrast_factor);
  VisitOptionalFactor(visitor, "saturation_factor", options_.saturation_factor);
  VisitOptionalFactor(visitor, "hue_factor", options_.hue_factor);
  VisitSeed(visitor);
}

std::string RandomColorJitterLayer::Mistake() const {
  const auto mistake = [](const char* name, const auto& factor, double lower) {
    return factor.has_value() ? Named(name, *factor, lower, 1) : std::string();
  };
  for (const std::string& what :
       {mistake("brightness_factor", options_.brightness_factor, -1),
        mistake("contrast_factor", options_.contrast_factor, 0),
        mistake("saturation_factor", options_.saturation_factor, -1),
        mistake("hue_factor", options_.hue_factor, 0)}) {
    if (!what.empty()) return what;
  }
  return "";
}

std::vector<int64_t> RandomColorJitterLayer::channel_counts() const {
  const bool needs_colors =
      options_.saturation_factor.has_value() || options_.hue_factor.has_value();
  return needs_colors ? std::vector<int64_t>{3} : std::vector<int64_t>{};
}

Value RandomColorJitterLayer::Augment(Value x, ImageDraws& draws) {
  const ValueRange& range = options_.value_range;
  x = ChangedIfSet(ColorChange::kBrightness, options_.brightness_factor, range,
                   x, draws);
  x = ChangedIfSet(ColorChange::kContrast, options_.contrast_factor, range, x,
                   draws);
  x = ChangedIfSet(ColorChange::kSaturation, options_.saturation_factor, range,
                   x, draws);
  return ChangedIfSet(ColorChange::kHue, options_.hue_factor, range, x, draws);
}

LayerPtr RandomColorJitter(const RandomColorJitterOptions& options) {
  return std::make_shared<RandomColorJitterLayer>(options);
}

void EqualizationLayer::VisitConfig(ConfigVisitor& visitor) {
  visitor.Visit("bins", bins_);
  VisitValueRange(visitor, range_);
  const std::string mistake = Mistake();
  if (!mistake.empty()) visitor.Refuse("bins", mistake.substr(5));
}

std::string EqualizationLayer::Mistake() const {
  if (bins_ >= 2 && bins_ <= kBinsMax) return "";
  return absl::StrCat("bins must be in [2, ", kBinsMax, "], got ", bins_);
}

Value EqualizationLayer::Augment(Value x, ImageDraws&) {
  return internal::Equalize(x, bins_, range_);
}

LayerPtr Equalization(const EqualizationOptions& options) {
  return std::make_shared<EqualizationLayer>(options);
}

void RandomGrayscaleLayer::VisitConfig(ConfigVisitor& visitor) {
  visitor.Visit("factor", factor_);
  VisitSeed(visitor, {"seed", ""});
}

std::string RandomGrayscaleLayer::Mistake() const {
  if (factor_ >= 0 && factor_ <= 1) return "";
  return absl::StrCat("factor must be in [0, 1], got ", factor_);
}

Value RandomGrayscaleLayer::Augment(Value x, ImageDraws& draws) {
  return Select(draws.Uniform(0, 1) < factor_, internal::Grayscale(x), x);
}

LayerPtr RandomGrayscale(double factor, const RandomGrayscaleOptions& options) {
  return std::make_shared<RandomGrayscaleLayer>(factor, options);
}

void RandomPosterizationLayer::VisitConfig(ConfigVisitor& visitor) {
  std::vector<int64_t> bits = {factor_.lower, factor_.upper};
  visitor.Visit(Described("factor", "Bits; one number is [1, number]."), bits);
  if (bits.size() == 1) {
    factor_ = BitFactor(bits[0]);
  } else if (bits.size() == 2) {
    factor_ = BitFactor(bits[0], bits[1]);
  } else {
    visitor.Refuse("factor", "must be one number of bits, or two");
  }
  VisitValueRange(visitor, range_);
  VisitSeed(visitor);
}

std::string RandomPosterizationLayer::Mistake() const {
  if (factor_.lower >= 1 && factor_.lower <= factor_.upper &&
      factor_.upper <= 8) {
    return "";
  }
  return absl::StrCat("factor must be in [1, 8], got [", factor_.lower, ", ",
                      factor_.upper, "]");
}

Value RandomPosterizationLayer::Augment(Value x, ImageDraws& draws) {
  const Value drawn = draws.Uniform(static_cast<double>(factor_.lower),
                                    static_cast<double>(factor_.upper));
  return internal::Posterize(x, Floor(drawn), range_);
}

LayerPtr RandomPosterization(const BitFactor& factor,
                             const RandomColorOptions& options) {
  return std::make_shared<RandomPosterizationLayer>(factor, options);
}

void SolarizationLayer::VisitConfig(ConfigVisitor& visitor) {
  VisitFactor(visitor,
              Described("addition_factor", "One number is [0, number]."),
              options_.addition_factor, false);
  VisitFactor(visitor,
              Described("threshold_factor", "One number is [0, number]."),
              options_.threshold_factor, false);
  VisitValueRange(visitor, options_.value_range);
  VisitSeed(visitor);
}

std::string SolarizationLayer::Mistake() const {
  const auto check = [](const char* name, const UnitFactor& factor) {
    const bool is_valid =
        factor.lower >= 0 && factor.lower <= factor.upper && factor.upper <= 1;
    return is_valid ? std::string()
                    : absl::StrCat(name, " must be in [0, 1], got [",
                                   factor.lower, ", ", factor.upper, "]");
  };
  const std::string addition =
      check("addition_factor", options_.addition_factor);
  return addition.empty() ? check("threshold_factor", options_.threshold_factor)
                          : addition;
}

Value SolarizationLayer::Augment(Value x, ImageDraws& draws) {
  const UnitFactor& addition = options_.addition_factor;
  const UnitFactor& threshold = options_.threshold_factor;
  const Value added = draws.Uniform(addition.lower, addition.upper * 255);
  return internal::Solarize(
      x, added, draws.Uniform(threshold.lower, threshold.upper * 255),
      options_.value_range);
}

LayerPtr Solarization(const SolarizationOptions& options) {
  return std::make_shared<SolarizationLayer>(options);
}

void AutoContrastLayer::VisitConfig(ConfigVisitor& visitor) {
  VisitValueRange(visitor, range_);
}

Value AutoContrastLayer::Call(Value x, const CallContext&) {
  if (x.shape().rank() != 4) {
    x.builder()->ReportError(absl::InvalidArgumentError(
        absl::StrCat("AutoContrast ", name(),
                     ": expected images [batch, height, width, channels], not ",
                     x.type().ToString())));
    return Value();
  }
  if (!IsFloating(x.dtype())) x = Cast(x, DType::kFloat32);
  return internal::StretchContrast(x, range_);
}

LayerPtr AutoContrast(const AutoContrastOptions& options) {
  return std::make_shared<AutoContrastLayer>(options);
}

void RandomGaussianBlurLayer::VisitConfig(ConfigVisitor& visitor) {
  VisitFactor(
      visitor,
      Described("factor",
                "One number or two; one number is [-number, number], or [0, "
                "number] of contrast, hue, inversion and sharpness."),
      factor_, false);
  std::vector<int64_t> size(options_.kernel_size.begin(),
                            options_.kernel_size.end());
  visitor.Visit("kernel_size", size);
  if (size.size() == 1) size.push_back(size.front());
  if (size.size() == 2) {
    options_.kernel_size = {size[0], size[1]};
  } else {
    visitor.Refuse("kernel_size", "must be one number or two");
  }
  VisitFactor(visitor, "sigma", options_.sigma, false);
  VisitValueRange(visitor, options_.value_range);
  VisitSeed(visitor);
}

std::string RandomGaussianBlurLayer::Mistake() const {
  for (const int64_t size : options_.kernel_size) {
    if (size >= 1 && size % 2 == 1) continue;
    return absl::StrCat("kernel_size must be odd and at least 1, got ", size);
  }
  const std::string factor = Named("factor", factor_, 0, 1);
  return factor.empty() ? Named("sigma", options_.sigma, 0, 1) : factor;
}

Value RandomGaussianBlurLayer::Augment(Value x, ImageDraws& draws) {
  // Keras adds it, too: a deviation of 0 would divide by 0.
  constexpr double kLeastSigma = 1e-6;
  const Value is_changed = IsChanged(draws, factor_);
  const Value sigma =
      draws.UniformOfBatch(2, options_.sigma.lower, options_.sigma.upper) +
      kLeastSigma;
  const Value blurred = internal::GaussianBlur(x, options_.kernel_size, sigma);
  return internal::Clip(Select(is_changed, blurred, x), options_.value_range);
}

LayerPtr RandomGaussianBlur(const UnitFactor& factor,
                            const RandomGaussianBlurOptions& options) {
  return std::make_shared<RandomGaussianBlurLayer>(factor, options);
}

}  // namespace muster
