#include "common/dataset/images/image_function.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/core/base/status_macros.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"
#include "common/dataset/row_tables.h"
#include "common/io/image/decode_image.h"
#include "common/io/image/image.h"
#include "common/io/storage/disk.h"
#include "common/io/storage/open_input.h"
#include "proto/dataset.pb.h"

namespace muster {
namespace {

// Reads the whole file into reused memory. Errors name the path.
absl::Status ReadImageFile(const std::string& path, std::string* content) {
  ASSIGN_OR_RETURN(const std::unique_ptr<ReadableFile> file, OpenInput(path));
  if (file->size_bytes() > kImageFileBytesMax) {
    return absl::ResourceExhaustedError(
        absl::StrCat(path, ": has ", file->size_bytes(),
                     " bytes; the limit is ", kImageFileBytesMax));
  }
  content->resize(static_cast<size_t>(file->size_bytes()));
  return file->ReadAt(
      0, absl::MakeSpan(reinterpret_cast<uint8_t*>(content->data()),
                        content->size()));
}

// The largest centered region with the aspect ratio of `size`, as in Keras.
PixelView CropToForm(const PixelView& view, const ImageSize& size) {
  const auto shorter = [](int64_t extent, int64_t other, int64_t other_size) {
    const double exact = static_cast<double>(other) *
                         static_cast<double>(extent) /
                         static_cast<double>(other_size);
    return static_cast<int64_t>(exact);
  };
  PixelView part = view;
  part.height = std::clamp<int64_t>(
      shorter(size.height, view.width, size.width), 1, view.height);
  part.width = std::clamp<int64_t>(
      shorter(size.width, view.height, size.height), 1, view.width);
  part.pixels += (view.height - part.height) / 2 * view.row_bytes +
                 (view.width - part.width) / 2 * view.channels;
  return part;
}

class ImageFunction final : public ElementFunction {
 public:
  ImageFunction(const ImageComponent& component, const ImageOptions& options)
      : component_(component),
        options_(options),
        resizer_(options.interpolation, options.image_size.height,
                 options.image_size.width, static_cast<float>(options.scale)) {}

  absl::Status Run(uint64_t, Element* argument, Element* result) override {
    const std::string& string =
        (*argument)[component_.index].flat<std::string>()[0];
    result->resize(argument->size());
    Tensor* const image = &(*result)[component_.index];
    if (!component_.is_path) {
      RETURN_IF_ERROR(Decode(string, image));
    } else {
      RETURN_IF_ERROR(ReadImageFile(string, &content_));
      const absl::Status status = Decode(content_, image);
      if (!status.ok()) {
        return absl::Status(status.code(),
                            absl::StrCat(string, ": ", status.message()));
      }
    }
    for (size_t c = 0; c < argument->size(); ++c) {
      if (static_cast<int>(c) == component_.index) continue;
      (*result)[c] = std::move((*argument)[c]);
    }
    return absl::OkStatus();
  }

 private:
  absl::Status Decode(absl::string_view content, Tensor* tensor) {
    const int channels = static_cast<int>(options_.color_mode);
    DecodeImageOptions decode = {.channels = channels};
    if (options_.fast_downscale) {
      decode.height_min = options_.image_size.height;
      decode.width_min = options_.image_size.width;
    }
    RETURN_IF_ERROR(DecodeImage(content, decode, &image_));
    PixelView view = {.pixels = image_.pixels.data(),
                      .height = image_.height,
                      .width = image_.width,
                      .channels = channels,
                      .row_bytes = image_.width * channels};
    if (options_.crop_to_aspect_ratio) {
      view = CropToForm(view, options_.image_size);
    }
    RETURN_IF_ERROR(PrepareTensor(DType::kFloat32,
                                  Shape({options_.image_size.height,
                                         options_.image_size.width, channels}),
                                  tensor));
    resizer_.Resize(view, tensor->mutable_flat<float>());
    return absl::OkStatus();
  }

  const ImageComponent component_;
  const ImageOptions options_;
  ImageResizer resizer_;
  // Kept to reuse their memory.
  std::string content_;
  Image image_;
};

class ImageFunctionFactory final : public ElementFunctionFactory {
 public:
  ImageFunctionFactory(std::vector<TensorType> result_types,
                       const ImageComponent& component,
                       const ImageOptions& options)
      : result_types_(std::move(result_types)),
        component_(component),
        options_(options) {}

  absl::StatusOr<std::unique_ptr<ElementFunction>> Create() const override {
    return std::make_unique<ImageFunction>(component_, options_);
  }
  const char* name() const override { return "DecodeImage"; }
  std::vector<std::string> ResultNames(
      const std::vector<std::string>& argument_names) const override {
    return argument_names;
  }
  const Graph* graph() const override { return nullptr; }
  const std::vector<TensorType>& result_types() const override {
    return result_types_;
  }
  bool Encode(proto::DatasetStage::Map* map) const override {
    proto::DatasetStage::ImageFunction* const image = map->mutable_image();
    image->set_component(component_.index);
    image->set_is_path(component_.is_path);
    image->set_height(options_.image_size.height);
    image->set_width(options_.image_size.width);
    image->set_channels(static_cast<int>(options_.color_mode));
    image->set_nearest(options_.interpolation == Interpolation::kNearest);
    image->set_crop_to_aspect_ratio(options_.crop_to_aspect_ratio);
    image->set_scale(options_.scale);
    image->set_fast_downscale(options_.fast_downscale);
    return true;
  }

 private:
  const std::vector<TensorType> result_types_;
  const ImageComponent component_;
  const ImageOptions options_;
};

}  // namespace

absl::StatusOr<std::shared_ptr<const ElementFunctionFactory>> MakeImageFunction(
    const std::vector<TensorType>& argument_types,
    const ImageComponent& component, const ImageOptions& options) {
  const ImageSize& size = options.image_size;
  const int channels = static_cast<int>(options.color_mode);
  if (size.height < 1 || size.width < 1 || size.height > kImageExtentMax ||
      size.width > kImageExtentMax || !std::isfinite(options.scale) ||
      (channels != 1 && channels != 3 && channels != 4)) {
    return absl::InvalidArgumentError(
        absl::StrCat("DecodeImage: image_size ", size.height, "x", size.width,
                     ", ", channels, " channels, scale ", options.scale,
                     "; expected extents of 1 to ", kImageExtentMax,
                     ", 1, 3 or 4 channels and a finite scale"));
  }
  const bool exists =
      component.index >= 0 &&
      static_cast<size_t>(component.index) < argument_types.size();
  if (!exists ||
      argument_types[component.index] != TensorType{DType::kString, Shape()}) {
    return absl::InvalidArgumentError(absl::StrCat(
        "DecodeImage: component ", component.index, " of ",
        argument_types.size(), " is ",
        exists ? argument_types[component.index].ToString() : "not there",
        "; expected string[]"));
  }
  std::vector<TensorType> result_types = argument_types;
  result_types[component.index] = {DType::kFloat32,
                                   Shape({size.height, size.width, channels})};
  return std::make_shared<ImageFunctionFactory>(std::move(result_types),
                                                component, options);
}

}  // namespace muster
