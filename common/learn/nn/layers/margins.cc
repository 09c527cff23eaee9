#include "common/learn/nn/layers/margins.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/compute/graph/graph_builder.h"
#include "common/compute/ops/ops.h"
#include "common/learn/nn/config_visitor.h"
#include "common/learn/nn/layer.h"

namespace muster {
namespace {

// What messages and descriptions call the axes of one kind of margins.
struct MarginTerms {
  absl::string_view shape;        // Of the input.
  absl::string_view description;  // Of the hyperparameter.
  // What several numbers mean; completes "must be one number ...".
  absl::string_view numbers;
};

constexpr MarginTerms kMarginTerms[] = {
    {.shape = "[batch, time, channels]",
     .description = "For both ends, or one for each.",
     .numbers = "for both ends, or one for each end"},
    {.shape = "[batch, height, width, channels]",
     .description =
         "For all sides; or height, width; or top, bottom, left, right.",
     .numbers = "for all sides, two for height and width, or four for top, "
                "bottom, left and right"},
    {.shape = "[batch, depth, height, width, channels]",
     .description = "For all sides; or depth, height, width; or front, back, "
                    "top, bottom, left, right.",
     .numbers = "for all sides, three for depth, height and width, or six for "
                "front, back, top, bottom, left and right"},
};

// Visits one number for all sides, one for each axis, or two for each axis.
void VisitMargins(ConfigVisitor& visitor, ConfigName name,
                  const std::vector<Margin*>& axes) {
  const MarginTerms& terms = kMarginTerms[axes.size() - 1];
  std::vector<int64_t> all;
  for (const Margin* const axis : axes) {
    all.insert(all.end(), axis->begin(), axis->end());
  }
  if (axes.size() == 1) {
    visitor.Visit(Described(name, terms.description), all);
  } else {
    visitor.VisitPairs(Described(name, terms.description), all);
  }
  const size_t count = all.size();
  if (count != 1 && count != axes.size() && count != 2 * axes.size()) {
    visitor.Refuse(name, absl::StrCat("must be one number ", terms.numbers,
                                      ", got ", count));
    return;
  }
  for (const int64_t margin : all) {
    if (margin >= 0) continue;
    visitor.Refuse(name, absl::StrCat("must be at least 0, got ", margin));
    return;
  }
  for (size_t i = 0; i < axes.size(); ++i) {
    const size_t before = count == 1 ? 0 : count == axes.size() ? i : 2 * i;
    const size_t after = count == 2 * axes.size() ? before + 1 : before;
    *axes[i] = {all[before], all[after]};
  }
}

enum class MarginChange { kAdd, kRemove };

template <typename Margins>
class MarginLayer : public Layer {
 public:
  MarginLayer(MarginChange change, const Margins& margins,
              const MarginOptions& options)
      : Layer(options.name), change_(change), margins_(margins) {}

  std::string kind() const override {
    return absl::StrCat(adds() ? "ZeroPadding" : "Cropping",
                        Margins(0).axes().size(), "D");
  }

  void VisitConfig(ConfigVisitor& visitor) override {
    VisitMargins(visitor, adds() ? "padding" : "cropping", margins_.axes());
  }

 protected:
  Value Call(Value x, const CallContext&) override {
    const std::vector<Margin*> axes = margins_.axes();
    bool is_valid = x.shape().rank() == static_cast<int>(axes.size()) + 2;
    for (const Margin* const margin : axes) {
      is_valid = is_valid && (*margin)[0] >= 0 && (*margin)[1] >= 0;
    }
    return adds() ? Add(x, axes, is_valid) : Remove(x, axes, is_valid);
  }

 private:
  bool adds() const { return change_ == MarginChange::kAdd; }

  Value Add(Value x, const std::vector<Margin*>& axes, bool is_valid) const {
    std::vector<int64_t> padding = {0, 0};
    for (const Margin* const margin : axes) {
      padding.insert(padding.end(), margin->begin(), margin->end());
    }
    padding.insert(padding.end(), {0, 0});
    if (is_valid) return Pad(x, padding);
    return Report(x,
                  absl::StrCat("expected padding of at least 0 and an input ",
                               kMarginTerms[axes.size() - 1].shape));
  }

  Value Remove(Value x, const std::vector<Margin*>& axes, bool is_valid) const {
    const size_t rank = axes.size() + 2;
    std::vector<int64_t> begin(rank, 0);
    std::vector<int64_t> size(rank, -1);
    for (size_t axis = 1; is_valid && axis < rank - 1; ++axis) {
      const auto [before, after] = *axes[axis - 1];
      begin[axis] = before;
      size[axis] = x.shape().dim(static_cast<int>(axis)) - before - after;
      is_valid = size[axis] >= 1;  // An unknown extent is negative.
    }
    if (is_valid) return Slice(x, begin, size);
    return Report(x,
                  absl::StrCat("expected an input of rank ", rank,
                               " with known extents that are greater than the "
                               "cropping"));
  }

  Value Report(Value x, absl::string_view expected) const {
    x.builder()->ReportError(absl::InvalidArgumentError(absl::StrCat(
        kind(), " ", name(), ": ", expected, ", got ", x.type().ToString())));
    return Value();
  }

  const MarginChange change_;
  Margins margins_;
};

}  // namespace

LayerPtr ZeroPadding1D(Margins1D padding, const MarginOptions& options) {
  return std::make_shared<MarginLayer<Margins1D>>(MarginChange::kAdd, padding,
                                                  options);
}

LayerPtr ZeroPadding2D(const Margins2D& padding, const MarginOptions& options) {
  return std::make_shared<MarginLayer<Margins2D>>(MarginChange::kAdd, padding,
                                                  options);
}

LayerPtr ZeroPadding3D(const Margins3D& padding, const MarginOptions& options) {
  return std::make_shared<MarginLayer<Margins3D>>(MarginChange::kAdd, padding,
                                                  options);
}

LayerPtr Cropping1D(Margins1D cropping, const MarginOptions& options) {
  return std::make_shared<MarginLayer<Margins1D>>(MarginChange::kRemove,
                                                  cropping, options);
}

LayerPtr Cropping2D(const Margins2D& cropping, const MarginOptions& options) {
  return std::make_shared<MarginLayer<Margins2D>>(MarginChange::kRemove,
                                                  cropping, options);
}

LayerPtr Cropping3D(const Margins3D& cropping, const MarginOptions& options) {
  return std::make_shared<MarginLayer<Margins3D>>(MarginChange::kRemove,
                                                  cropping, options);
}

}  // namespace muster
