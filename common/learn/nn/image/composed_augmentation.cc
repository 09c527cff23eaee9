#include "common/learn/nn/image/composed_augmentation.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/compute/graph/graph_builder.h"
#include "common/compute/ops/image_ops.h"
#include "common/compute/ops/ops.h"
#include "common/core/tensor/dtype.h"
#include "common/learn/nn/config_visitor.h"
#include "common/learn/nn/image/augmentation.h"
#include "common/learn/nn/image/color.h"
#include "common/learn/nn/image/gamma_draws.h"
#include "common/learn/nn/image/random_color.h"
#include "common/learn/nn/image/random_image.h"
#include "common/learn/nn/image/random_position.h"
#include "common/learn/nn/image/resampling.h"
#include "common/learn/nn/layer.h"

namespace muster {
namespace {

// A limit for the size of the graph.
constexpr int64_t kCountMax = 64;

struct Strength {
  UnitFactor factor;
  ValueRange range;
  Interpolation interpolation;
};

using Augmentation = std::function<Value(Value x, ImageDraws& draws)>;

Augmentation By(std::shared_ptr<AugmentationLayer> layer) {
  return [layer = std::move(layer)](Value x, ImageDraws& draws) {
    return layer->AugmentWith(x, draws);
  };
}

Augmentation ByColor(ColorChange change, const Strength& strength) {
  const RandomFactor factor(strength.factor.lower, strength.factor.upper);
  return By(std::make_shared<RandomColorLayer>(
      change, factor, RandomColorOptions{.value_range = strength.range}));
}

std::vector<Augmentation> Augmentations(const Strength& strength,
                                        bool all_ops) {
  const RandomFactor factor(strength.factor.lower, strength.factor.upper);
  const RandomResamplingOptions resampling = {.interpolation =
                                                  strength.interpolation};
  const auto bits = static_cast<int64_t>(8 * strength.factor.upper);
  const ValueRange range = strength.range;
  std::vector<Augmentation> all = {
      By(std::make_shared<RandomShearLayer>(factor, factor, resampling)),
      By(std::make_shared<RandomTranslationLayer>(factor, factor, resampling)),
      By(std::make_shared<RandomRotationLayer>(
          factor,
          RandomRotationOptions{.interpolation = strength.interpolation})),
      By(std::make_shared<RandomPosterizationLayer>(
          BitFactor(std::max<int64_t>(1, bits)),
          RandomColorOptions{.value_range = range})),
      By(std::make_shared<SolarizationLayer>(
          SolarizationOptions{.addition_factor = strength.factor,
                              .threshold_factor = strength.factor,
                              .value_range = range})),
      [range](Value x, ImageDraws&) {
        return internal::StretchContrast(x, range);
      },
      By(std::make_shared<EqualizationLayer>(
          EqualizationOptions{.value_range = range})),
  };
  if (!all_ops) return all;
  for (const ColorChange change :
       {ColorChange::kBrightness, ColorChange::kColorDegeneration,
        ColorChange::kContrast, ColorChange::kSharpness}) {
    all.push_back(ByColor(change, strength));
  }
  return all;
}

// Element `position` of a vector, as a scalar.
Value ElementOf(Value vector, int64_t position) {
  return Reshape(Slice(vector, {position}, {1}), {});
}

// Applies the augmentation whose position in the list is `choice`, a scalar;
// none if there is none. `draws_of(i)` are the draws of augmentation i.
Value Choose(const std::vector<Augmentation>& augmentations, Value choice,
             Value x, const std::function<ImageDraws(uint64_t)>& draws_of) {
  const Value before = x;
  for (size_t i = 0; i < augmentations.size(); ++i) {
    const auto change = [&]() -> std::vector<Value> {
      ImageDraws draws = draws_of(i);
      return {ReshapeLike(augmentations[i](before, draws), before)};
    };
    const auto keep = [&]() -> std::vector<Value> { return {x}; };
    const std::vector<Value> results =
        Cond(Equal(choice, static_cast<double>(i)), change, keep);
    if (results.size() != 1) return Value();
    x = results[0];
  }
  return x;
}

// `count` numbers of 0, 1, ... bound - 1 for the batch.
Value DrawChoices(int64_t count, size_t bound, ImageDraws& draws) {
  const auto limit = static_cast<double>(bound);
  return Minimum(Floor(draws.UniformOfBatch(count, 0, limit)), limit - 1);
}

// "factor must be ..."; empty if it is in [0, 1].
std::string FactorMistake(const UnitFactor& factor) {
  const std::string what = OutOfBounds(factor, 0, 1);
  return what.empty() ? "" : absl::StrCat("factor ", what);
}

}  // namespace

void RandAugmentLayer::VisitConfig(ConfigVisitor& visitor) {
  VisitValueRange(visitor, options_.value_range);
  visitor.Visit("num_ops", options_.num_ops);
  VisitFactor(visitor,
              Described("factor", "The strength; one number is [0, number]."),
              options_.factor, false);
  VisitInterpolation(visitor, options_.interpolation);
  VisitSeed(visitor);
}

std::string RandAugmentLayer::Mistake() const {
  if (options_.num_ops < 0 || options_.num_ops > kCountMax) {
    return absl::StrCat("num_ops must be in [0, ", kCountMax, "], got ",
                        options_.num_ops);
  }
  return FactorMistake(options_.factor);
}

Value RandAugmentLayer::Augment(Value x, ImageDraws& draws) {
  if (options_.num_ops == 0) return x;
  const std::vector<Augmentation> augmentations = Augmentations(
      {options_.factor, options_.value_range, options_.interpolation}, true);
  const Value choices =
      DrawChoices(options_.num_ops, augmentations.size(), draws);
  for (int64_t i = 0; i < options_.num_ops; ++i) {
    x = Choose(augmentations, ElementOf(choices, i), x,
               [&](uint64_t kind) { return draws.OfPart(kind); });
  }
  return x;
}

LayerPtr RandAugment(const RandAugmentOptions& options) {
  return std::make_shared<RandAugmentLayer>(options);
}

void AugMixLayer::VisitConfig(ConfigVisitor& visitor) {
  VisitValueRange(visitor, options_.value_range);
  visitor.Visit("num_chains", options_.num_chains);
  visitor.Visit("chain_depth", options_.chain_depth);
  VisitFactor(visitor,
              Described("factor", "The strength; one number is [0, number]."),
              options_.factor, false);
  visitor.Visit("alpha", options_.alpha);
  visitor.Visit("all_ops", options_.all_ops);
  VisitInterpolation(visitor, options_.interpolation);
  VisitSeed(visitor);
}

std::string AugMixLayer::Mistake() const {
  if (options_.num_chains < 1 || options_.num_chains > kCountMax) {
    return absl::StrCat("num_chains must be in [1, ", kCountMax, "], got ",
                        options_.num_chains);
  }
  if (options_.chain_depth < 0 ||
      options_.chain_depth * options_.num_chains > kCountMax) {
    return absl::StrCat("chain_depth must be in [0, ", kCountMax,
                        " / num_chains], got ", options_.chain_depth);
  }
  if (!(options_.alpha > 0)) {
    return absl::StrCat("alpha must be above 0, got ", options_.alpha);
  }
  return FactorMistake(options_.factor);
}

std::vector<int64_t> AugMixLayer::channel_counts() const {
  return options_.all_ops ? std::vector<int64_t>{1, 3} : std::vector<int64_t>{};
}

Value AugMixLayer::Augment(Value x, ImageDraws& draws) {
  const std::vector<Augmentation> augmentations = Augmentations(
      {options_.factor, options_.value_range, options_.interpolation},
      options_.all_ops);
  const int64_t depth = options_.chain_depth;
  const int64_t count = options_.num_chains * depth;
  const Value weights = internal::DrawDirichletOfBatch(options_.num_chains,
                                                       options_.alpha, draws);
  const Value kept =
      Reshape(internal::DrawBetaOfBatch(options_.alpha, draws), {});
  // One more than there are augmentations: none.
  const Value choices =
      count == 0 ? Value()
                 : DrawChoices(count, augmentations.size() + 1, draws);
  Value mixed = ZerosLike(x);
  for (int64_t chain = 0; chain < options_.num_chains; ++chain) {
    Value augmented = x;
    for (int64_t i = chain * depth; i < (chain + 1) * depth; ++i) {
      const ImageDraws of_place = draws.OfPart(static_cast<uint64_t>(i));
      augmented = Choose(augmentations, ElementOf(choices, i), augmented,
                         [&](uint64_t kind) { return of_place.OfPart(kind); });
    }
    mixed = mixed + augmented * ElementOf(weights, chain);
  }
  return internal::Clip(kept * x + (1.0 - kept) * mixed, options_.value_range);
}

LayerPtr AugMix(const AugMixOptions& options) {
  return std::make_shared<AugMixLayer>(options);
}

}  // namespace muster
