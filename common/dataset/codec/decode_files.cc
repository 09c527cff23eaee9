#include "common/dataset/codec/decode_files.h"

#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/core/base/status_macros.h"
#include "common/core/tensor/tensor_codec.h"
#include "common/dataset/corrupt_input.h"
#include "common/dataset/element_function.h"
#include "common/dataset/files/example_function.h"
#include "common/dataset/files/npy.h"
#include "common/dataset/files/record_files.h"
#include "common/dataset/files/text_lines.h"
#include "common/dataset/files/tf_records.h"
#include "common/dataset/images/image_files.h"
#include "common/dataset/images/image_folder.h"
#include "common/dataset/images/image_function.h"
#include "common/dataset/images/image_listing.h"
#include "common/dataset/images/image_options.h"
#include "common/dataset/map_stages.h"
#include "common/dataset/registered_function.h"
#include "common/io/records/example.h"
#include "common/io/records/record_format.h"
#include "proto/dataset.pb.h"

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

absl::StatusOr<std::shared_ptr<const ElementFunctionFactory>>
DecodeExampleFunction(const NodePointer& input,
                      const Stage::ExampleFunction& example) {
  std::vector<FeatureSpec> features;
  for (const Stage::ExampleFunction::Feature& feature : example.features()) {
    FeatureSpec spec = {.key = feature.key(), .padded = feature.padded()};
    ASSIGN_OR_RETURN(spec.dtype, DecodeDType(feature.dtype()));
    ASSIGN_OR_RETURN(spec.shape, DecodeShape(feature.shape(), true));
    if (feature.has_default_value()) {
      ASSIGN_OR_RETURN(spec.default_value,
                       DecodeTensor(feature.default_value()));
    }
    features.push_back(std::move(spec));
  }
  return MakeExampleFunction(input->element_types(), std::move(features));
}

absl::StatusOr<RecordCompression> DecodeCompression(
    Stage::TfRecords::Compression compression) {
  switch (compression) {
    case Stage::TfRecords::PLAIN:
      return RecordCompression::kNone;
    case Stage::TfRecords::GZIP:
      return RecordCompression::kGzip;
    case Stage::TfRecords::ZLIB:
      return RecordCompression::kZlib;
    default:
      return absl::InvalidArgumentError(absl::StrCat(
          "compression is ", compression, ", which does not exist"));
  }
}

CorruptInput DecodeCorruptInput(bool skip) {
  return skip ? CorruptInput::kSkip : CorruptInput::kFail;
}

}  // namespace

InterleaveOptions DecodeFileOrder(const Stage::FileOrder& order) {
  InterleaveOptions options;
  if (order.cycle_length() != 0) options.cycle_length = order.cycle_length();
  if (order.block_length() != 0) options.block_length = order.block_length();
  return options;
}

absl::StatusOr<NodePointer> DecodeTfRecords(const Stage::TfRecords& records) {
  TfRecordOptions options = {
      .order = DecodeFileOrder(records.order()),
      .corrupt_input = DecodeCorruptInput(records.skip_corrupt_input())};
  ASSIGN_OR_RETURN(options.compression,
                   DecodeCompression(records.compression()));
  return MakeTfRecords({records.path().begin(), records.path().end()}, options);
}

absl::StatusOr<NodePointer> DecodeTextLines(const Stage::TextLines& lines) {
  return MakeTextLines({lines.path().begin(), lines.path().end()},
                       {.skip_line_count = lines.skip_line_count(),
                        .order = DecodeFileOrder(lines.order())});
}

absl::StatusOr<NodePointer> DecodeNpy(const Stage::Npy& npy) {
  NpyOptions options = {.scale = npy.scale(),
                        .order = DecodeFileOrder(npy.order())};
  if (npy.dtype() != proto::DT_INVALID) {
    ASSIGN_OR_RETURN(options.dtype, DecodeDType(npy.dtype()));
  }
  if (npy.has_record_shape()) {
    ASSIGN_OR_RETURN(options.record_shape,
                     DecodeShape(npy.record_shape(), false));
  }
  return MakeNpy({npy.path().begin(), npy.path().end()}, options);
}

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
  } else if (map.has_registered()) {
    ASSIGN_OR_RETURN(function,
                     MakeRegisteredFunction(
                         map.registered().name(), map.registered().argument(),
                         {input->element_types(), input->component_names()}));
  } else {
    ASSIGN_OR_RETURN(function, DecodeExampleFunction(input, map.example()));
  }
  return MakeMap(input, std::move(function),
                 {.thread_count = map.thread_count(), .seed = map.seed()},
                 DecodeCorruptInput(map.skip_corrupt_input()));
}

}  // namespace muster
