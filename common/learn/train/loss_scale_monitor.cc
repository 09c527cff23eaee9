#include "common/learn/train/loss_scale_monitor.h"

#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/core/system/metrics.h"

namespace muster {
namespace {

constexpr MetricInfo kLossScale = {
    "muster_loss_scale",
    "The scale of the loss in the last step, where losses are scaled."};

}  // namespace

std::optional<std::string> LossScaleMonitor::OnStep(double scale, int epoch,
                                                    int64_t step) {
  GetGauge(kLossScale)->Set(scale);
  const bool was_skipped = scale < scale_;
  const bool falls_below_min =
      was_skipped && scale < kScaleMin && scale_ >= kScaleMin;
  if (was_skipped) {
    ++skipped_count_;
  } else {
    skipped_count_ = 0;
    next_warning_ = kSkippedStepsMax;
  }
  std::string warning;
  if (falls_below_min) {
    warning = absl::StrCat(
        "step ", step_, " of epoch ", epoch_ + 1,
        " was skipped, and the scale of the loss fell to ", scale,
        ": gradients are not finite however small the loss is, so values "
        "overflow float16 before. Scale the inputs, lower the learning rate, "
        "or use mixed_bfloat16");
  } else if (skipped_count_ == next_warning_) {
    warning =
        absl::StrCat("step ", step_, " of epoch ", epoch_ + 1,
                     " was skipped, the last of ", skipped_count_,
                     " in a row whose gradients were not finite; the scale "
                     "of the loss fell to ",
                     scale);
  }
  if (skipped_count_ == next_warning_) next_warning_ *= 2;
  scale_ = scale;
  epoch_ = epoch;
  step_ = step;
  if (warning.empty()) return std::nullopt;
  return warning;
}

}  // namespace muster
