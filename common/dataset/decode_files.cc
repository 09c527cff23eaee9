#include "common/dataset/decode_files.h"

#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/dataset/corrupt_input.h"
#include "common/dataset/element_function.h"
#include "common/dataset/image_files.h"
#include "common/dataset/image_folder.h"
#include "common/dataset/image_function.h"
#include "common/dataset/image_listing.h"
#include "common/dataset/image_options.h"
#include "common/dataset/map_stages.h"

namespace muster {
namespace {

using Stage = proto::DatasetStage;

absl::StatusOr<LabelMode> DecodeLabelMode(Stage::LabelMode mode) {
  switch (mode) {
    case Stage::INT:
      return LabelMode::kInt;
    case Stage::CATEGORICAL:
      return LabelMode::kCategorical;
    case Stage::BINARY:
      return LabelMode::kBinary;
    case Stage::NONE:
      return LabelMode::kNone;
    default:
      return absl::InvalidArgumentError(
          absl::StrCat("label_mode is ", mode, ", which does not exist"));
  }
}

absl::StatusOr<std::shared_ptr<const ElementFunctionFactory>>
DecodeImageFunction(const NodePointer& input,
                    const Stage::ImageFunction& image) {
  const ImageOptions options = {
      .image_size = {image.height(), image.width()},
      .interpolation =
          image.nearest() ? Interpolation::kNearest : Interpolation::kBilinear,
      .color_mode = static_cast<ColorMode>(image.channels()),
      .crop_to_aspect_ratio = image.crop_to_aspect_ratio(),
      .scale = image.scale(),
      .fast_downscale = image.fast_downscale()};
  return MakeImageFunction(
      input->element_types(),
      {.index = image.component(), .is_path = image.is_path()}, options);
}

}  // namespace

absl::StatusOr<NodePointer> DecodeImageFiles(const Stage::ImageFiles& files) {
  ASSIGN_OR_RETURN(const LabelMode label_mode,
                   DecodeLabelMode(files.label_mode()));
  auto listing = std::make_shared<ImageListing>();
  listing->directory = files.directory();
  listing->class_names = {files.class_name().begin(), files.class_name().end()};
  listing->files = {files.file().begin(), files.file().end()};
  listing->labels = {files.label().begin(), files.label().end()};
  return MakeImageFiles(std::move(listing), {.label_mode = label_mode,
                                             .shuffle = files.shuffle(),
                                             .seed = files.seed()});
}

absl::StatusOr<NodePointer> DecodeBuiltInMap(const NodePointer& input,
                                             const Stage::Map& map) {
  std::shared_ptr<const ElementFunctionFactory> function;
  if (map.has_image()) {
    ASSIGN_OR_RETURN(function, DecodeImageFunction(input, map.image()));
  }
  return MakeMap(
      input, std::move(function),
      {.thread_count = map.thread_count(), .seed = map.seed()},
      map.skip_corrupt_input() ? CorruptInput::kSkip : CorruptInput::kFail);
}

}  // namespace muster
