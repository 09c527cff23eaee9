#include "common/learn/train/job/job_data_files.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/core/base/random.h"
#include "common/core/base/status_macros.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/resize.h"
#include "common/core/tensor/shape.h"
#include "common/core/tensor/tensor.h"
#include "common/dataset/corrupt_input.h"
#include "common/dataset/files/record_files.h"
#include "common/dataset/images/image_folder.h"
#include "common/dataset/images/image_options.h"
#include "common/io/records/example.h"
#include "common/io/records/record_format.h"
#include "proto/training_job.pb.h"

namespace muster {
namespace {

using proto::JobData;
using Feature = JobData::TfRecord::Feature;

absl::Status Missing(absl::string_view field) {
  return absl::InvalidArgumentError(
      absl::StrCat(field, " is missing; expected one at least"));
}

CorruptInput BuildCorruptInput(JobData::CorruptInput policy) {
  return policy == JobData::SKIP ? CorruptInput::kSkip : CorruptInput::kFail;
}

ImageOptions BuildImage(const JobData::Image& image) {
  ImageOptions options;
  if (image.has_height()) options.image_size.height = image.height();
  if (image.has_width()) options.image_size.width = image.width();
  if (image.interpolation() == JobData::Image::NEAREST) {
    options.interpolation = Interpolation::kNearest;
  }
  if (image.color_mode() == JobData::Image::GRAYSCALE) {
    options.color_mode = ColorMode::kGrayscale;
  } else if (image.color_mode() == JobData::Image::RGBA) {
    options.color_mode = ColorMode::kRgba;
  }
  if (image.has_scale()) options.scale = image.scale();
  options.crop_to_aspect_ratio = image.crop_to_aspect_ratio();
  options.fast_downscale = image.fast_downscale();
  if (image.has_thread_count()) options.thread_count = image.thread_count();
  return options;
}

// An image's bytes are one string, which is decoded later.
absl::StatusOr<FeatureSpec> BuildFeature(const Feature& feature) {
  FeatureSpec spec = {.key = feature.key(), .padded = feature.padded()};
  ASSIGN_OR_RETURN(spec.shape,
                   Shape::Create(std::vector<int64_t>(feature.shape().begin(),
                                                      feature.shape().end()),
                                 true));
  switch (feature.type()) {
    case Feature::INT64:
      spec.dtype = DType::kInt64;
      break;
    case Feature::IMAGE:
    case Feature::STRING:
      spec.dtype = DType::kString;
      break;
    default:
      spec.dtype = DType::kFloat32;
      break;
  }
  if (feature.type() == Feature::STRING && feature.has_default_value()) {
    return absl::InvalidArgumentError(
        absl::StrCat("tf_record.features: the string \"", feature.key(),
                     "\" has a default, which is a number; expected none"));
  }
  if (feature.type() == Feature::IMAGE &&
      (feature.shape_size() > 0 || feature.has_default_value())) {
    return absl::InvalidArgumentError(
        absl::StrCat("tf_record.features: the image \"", feature.key(),
                     "\" has a shape or a default; expected none"));
  }
  if (feature.has_default_value()) {
    spec.default_value =
        Tensor::Full(spec.dtype, Shape(), feature.default_value());
  }
  return spec;
}

// An array of the job, and the field that names its files.
struct NamedArray {
  std::string field;
  Dataset rows;
};

using Paths = google::protobuf::RepeatedPtrField<std::string>;

absl::StatusOr<NamedArray> OpenNpy(std::string field, const Paths& paths,
                                   const NpyOptions& options) {
  if (paths.empty()) return Missing(field);
  Dataset rows = NpyDataset({paths.begin(), paths.end()}, options);
  RETURN_IF_ERROR(rows.status());
  return NamedArray{std::move(field), std::move(rows)};
}

// Whole numbers are class numbers, which losses take as int64.
absl::StatusOr<NamedArray> OpenNpyLabels(const std::string& field,
                                         const Paths& paths,
                                         NpyOptions options) {
  ASSIGN_OR_RETURN(NamedArray labels, OpenNpy(field, paths, options));
  if (!IsInteger(labels.rows.element_types()[0].dtype)) return labels;
  options.dtype = DType::kInt64;
  return OpenNpy(field, paths, options);
}

absl::StatusOr<std::vector<NamedArray>> NpyFeatures(const JobData::Npy& npy) {
  NpyOptions options = {.scale = npy.scale(),
                        .order = BuildFileOrder(npy.order())};
  std::vector<NamedArray> arrays;
  ASSIGN_OR_RETURN(arrays.emplace_back(),
                   OpenNpy("npy.features", npy.features(), options));
  options.scale = 0;
  for (int i = 0; i < npy.more_features_size(); ++i) {
    ASSIGN_OR_RETURN(arrays.emplace_back(),
                     OpenNpy(absl::StrCat("npy.more_features[", i, "]"),
                             npy.more_features(i).path(), options));
  }
  return arrays;
}

// Elements with a row of each array.
absl::StatusOr<Dataset> ZipArrays(const std::vector<NamedArray>& arrays) {
  std::vector<Dataset> columns;
  const int64_t row_count = arrays.front().rows.Cardinality();
  for (const NamedArray& array : arrays) {
    if (array.rows.Cardinality() != row_count) {
      return absl::InvalidArgumentError(absl::StrCat(
          arrays.front().field, " have ", row_count, " rows and ", array.field,
          " ", array.rows.Cardinality(), "; expected as many in each"));
    }
    columns.push_back(array.rows);
  }
  return columns.size() == 1 ? columns.front() : Dataset::Zip(columns);
}

}  // namespace

InterleaveOptions BuildFileOrder(const JobData::FileOrder& order) {
  InterleaveOptions options;
  if (order.cycle_length() != 0) options.cycle_length = order.cycle_length();
  if (order.block_length() != 0) options.block_length = order.block_length();
  return options;
}

absl::StatusOr<std::function<Dataset(uint64_t)>> BuildImageFolder(
    const JobData::ImageFolder& folder) {
  if (folder.directory().empty()) return Missing("image_folder.directory");
  const ImageOptions image = BuildImage(folder.image());
  ImageFolderOptions options = {
      .image_size = image.image_size,
      .interpolation = image.interpolation,
      .color_mode = image.color_mode,
      .crop_to_aspect_ratio = image.crop_to_aspect_ratio,
      .scale = image.scale,
      .fast_downscale = image.fast_downscale,
      .corrupt_input = BuildCorruptInput(folder.corrupt_input()),
      .thread_count = image.thread_count,
      .class_names = {folder.class_names().begin(), folder.class_names().end()},
      .shuffle = folder.shuffle(),
      .validation_split = folder.validation_split()};
  if (folder.label_mode() == JobData::ImageFolder::CATEGORICAL) {
    options.label_mode = LabelMode::kCategorical;
  } else if (folder.label_mode() == JobData::ImageFolder::BINARY) {
    options.label_mode = LabelMode::kBinary;
  }
  if (folder.subset() == JobData::ImageFolder::TRAINING) {
    options.subset = Subset::kTraining;
  } else if (folder.subset() == JobData::ImageFolder::VALIDATION) {
    options.subset = Subset::kValidation;
  }
  ASSIGN_OR_RETURN(const std::shared_ptr<const ImageListing> listing,
                   ListImageFolder(folder.directory(), options.class_names));
  std::optional<uint64_t> own_seed;
  if (folder.has_seed()) own_seed = folder.seed();
  return [listing, options, own_seed](uint64_t seed) {
    ImageFolderOptions seeded = options;
    seeded.seed = own_seed.value_or(FoldIn(seed, "image_folder"));
    return ImageFolder(listing, seeded);
  };
}

absl::StatusOr<Dataset> BuildTfRecord(const JobData::TfRecord& record) {
  if (record.path().empty()) return Missing("tf_record.path");
  TfRecordOptions options = {
      .order = BuildFileOrder(record.order()),
      .corrupt_input = BuildCorruptInput(record.corrupt_input())};
  if (record.compression() == JobData::TfRecord::GZIP) {
    options.compression = RecordCompression::kGzip;
  } else if (record.compression() == JobData::TfRecord::ZLIB) {
    options.compression = RecordCompression::kZlib;
  }
  std::vector<FeatureSpec> features;
  for (const Feature& feature : record.features()) {
    ASSIGN_OR_RETURN(features.emplace_back(), BuildFeature(feature));
  }
  Dataset dataset = ParseExample(
      TfRecordDataset({record.path().begin(), record.path().end()}, options),
      features, {.corrupt_input = options.corrupt_input});
  for (int i = 0; i < record.features_size(); ++i) {
    if (record.features(i).type() != Feature::IMAGE) continue;
    ImageOptions image = BuildImage(record.features(i).image());
    image.corrupt_input = options.corrupt_input;
    dataset = DecodeImages(dataset, i, image);
  }
  return dataset;
}

absl::StatusOr<Dataset> BuildNpyFeatures(const JobData::Npy& npy) {
  ASSIGN_OR_RETURN(const std::vector<NamedArray> features, NpyFeatures(npy));
  return ZipArrays(features);
}

absl::StatusOr<Dataset> BuildNpy(const JobData::Npy& npy) {
  ASSIGN_OR_RETURN(std::vector<NamedArray> arrays, NpyFeatures(npy));
  const NpyOptions options = {.order = BuildFileOrder(npy.order())};
  ASSIGN_OR_RETURN(arrays.emplace_back(),
                   OpenNpyLabels("npy.labels", npy.labels(), options));
  for (int i = 0; i < npy.more_labels_size(); ++i) {
    ASSIGN_OR_RETURN(arrays.emplace_back(),
                     OpenNpyLabels(absl::StrCat("npy.more_labels[", i, "]"),
                                   npy.more_labels(i).path(), options));
  }
  for (int i = 0; i < npy.sample_weights_size(); ++i) {
    ASSIGN_OR_RETURN(arrays.emplace_back(),
                     OpenNpy(absl::StrCat("npy.sample_weights[", i, "]"),
                             npy.sample_weights(i).path(), options));
  }
  return ZipArrays(arrays);
}

}  // namespace muster
