#include "common/core/tensor/window.h"

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/core/base/status_macros.h"
#include "common/core/tensor/shape.h"

namespace muster {
namespace {

// Products of two extents cannot overflow, and oneDNN uses int.
constexpr int64_t kExtentMax = std::numeric_limits<int32_t>::max();

template <size_t kCount>
absl::Status ReadList(const Attributes& attributes, absl::string_view name,
                      int64_t min, std::array<int64_t, kCount>* list) {
  if (!attributes.Has(name)) return absl::OkStatus();
  ASSIGN_OR_RETURN(const std::vector<int64_t> values,
                   attributes.Get<std::vector<int64_t>>(name));
  if (values.size() != kCount) {
    return absl::InvalidArgumentError(
        absl::StrCat("attribute \"", name, "\" must hold ", kCount,
                     " numbers, not ", values.size()));
  }
  for (size_t i = 0; i < kCount; ++i) {
    if (values[i] < min || values[i] > kExtentMax) {
      return absl::InvalidArgumentError(
          absl::StrCat("attribute \"", name, "\" holds ", values[i],
                       "; it must lie in [", min, ", 2^31)"));
    }
    (*list)[i] = values[i];
  }
  return absl::OkStatus();
}

absl::StatusOr<PaddingKind> ParsePadding(absl::string_view padding) {
  if (padding == "VALID") return PaddingKind::kValid;
  if (padding == "SAME") return PaddingKind::kSame;
  if (padding == "EXPLICIT") return PaddingKind::kExplicit;
  return absl::InvalidArgumentError(
      absl::StrCat("attribute \"padding\" must be VALID, SAME or EXPLICIT, "
                   "not \"",
                   padding, "\""));
}

}  // namespace

absl::StatusOr<WindowOptions> WindowOptions::FromAttributes(
    const Attributes& attributes) {
  WindowOptions options;
  RETURN_IF_ERROR(ReadList(attributes, "strides", 1, &options.strides));
  RETURN_IF_ERROR(ReadList(attributes, "dilations", 1, &options.dilations));
  if (attributes.Has("padding")) {
    ASSIGN_OR_RETURN(const std::string padding,
                     attributes.Get<std::string>("padding"));
    ASSIGN_OR_RETURN(options.padding, ParsePadding(padding));
  }
  RETURN_IF_ERROR(
      ReadList(attributes, "explicit_padding", 0, &options.explicit_padding));
  return options;
}

absl::StatusOr<WindowAxis> PlaceWindows(const WindowOptions& options, int axis,
                                        int64_t input_extent,
                                        int64_t window_extent) {
  WindowAxis placed = {.input_extent = input_extent,
                       .output_extent = Shape::kUnknown,
                       .window_extent = window_extent,
                       .stride = options.strides[axis],
                       .dilation = options.dilations[axis]};
  if (std::max(input_extent, window_extent) > kExtentMax) {
    return absl::InvalidArgumentError(
        absl::StrCat("a spatial extent of ", input_extent, " or a window of ",
                     window_extent, " is 2^31 or more"));
  }
  if (window_extent == 0) {
    return absl::InvalidArgumentError("a window has no elements");
  }
  if (input_extent == Shape::kUnknown || window_extent == Shape::kUnknown) {
    return placed;
  }
  const int64_t span = placed.span();
  if (options.padding == PaddingKind::kSame) {
    placed.output_extent = (input_extent + placed.stride - 1) / placed.stride;
    const int64_t covered = (placed.output_extent - 1) * placed.stride + span;
    const int64_t padding = std::max<int64_t>(covered - input_extent, 0);
    placed.padding_before = padding / 2;
    placed.padding_after = padding - placed.padding_before;
    return placed;
  }
  if (options.padding == PaddingKind::kExplicit) {
    placed.padding_before = options.explicit_padding[2 * axis];
    placed.padding_after = options.explicit_padding[2 * axis + 1];
  }
  const int64_t padded =
      input_extent + placed.padding_before + placed.padding_after;
  if (span > padded) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a window spans ", span, " elements along ",
        axis == 0 ? "the height" : "the width", ", which has ", padded,
        padded == input_extent ? "" : " with its padding"));
  }
  placed.output_extent = (padded - span) / placed.stride + 1;
  return placed;
}

}  // namespace muster
