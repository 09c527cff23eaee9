#ifndef COMMON_DATASET_IMAGES_IMAGE_FOLDER_H_
#define COMMON_DATASET_IMAGES_IMAGE_FOLDER_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/core/tensor/resize.h"
#include "common/dataset/corrupt_input.h"
#include "common/dataset/dataset.h"
#include "common/dataset/images/image_options.h"

namespace muster {

struct ImageListing;

enum class LabelMode {
  kInt,          // int64[]
  kCategorical,  // float32[classes], one-hot
  kBinary,       // float32[1], 0 or 1, for two classes
  kNone,         // Elements are {image}.
};

enum class Subset { kAll, kTraining, kValidation };

// The image options are those of ImageOptions.
struct ImageFolderOptions {
  ImageSize image_size = {256, 256};
  Interpolation interpolation = Interpolation::kBilinear;
  ColorMode color_mode = ColorMode::kRgb;
  bool crop_to_aspect_ratio = false;
  double scale = 1;
  bool fast_downscale = false;
  CorruptInput corrupt_input = CorruptInput::kFail;
  int thread_count = 2;

  LabelMode label_mode = LabelMode::kInt;
  // All class directories, in the order of their labels; empty: sorted.
  std::vector<std::string> class_names = {};
  // Each pass has a different order. Shuffles names instead of images in
  // memory: a perfect shuffle of any number of images.
  bool shuffle = true;
  // Seeds the order, and the choice of validation files.
  uint64_t seed = 0;
  // The fraction of the files used for validation, from 0 to below 1. With
  // `shuffle` they are drawn using `seed`, otherwise they are the last ones.
  double validation_split = 0;
  Subset subset = Subset::kAll;
};

// {float32[height, width, channels], label} of the images in the directories of
// `directory`, each of which is a class. It is a path, or a URL of objects:
// "s3://bucket/folder". Labels follow the sorted names of the directories,
// which are searched recursively. Files are images if their names end in .bmp,
// .gif, .jpeg, .jpg or .png; only JPEG and PNG can be decoded, whatever the
// name says. Names that begin with a dot are skipped. Directories are listed
// when the dataset is defined, and files are read as elements are drawn, where
// the pipeline runs, by `thread_count` threads at the same time.
//
// The number of elements is known, unless corrupt input is skipped.
//
// Errors of the definition:
//   kNotFound         `directory` does not exist
//   kInvalidArgument  there are no class directories, or they differ from
//                     class_names; one has no images (names it, and its
//                     content); or an option is out of range
//   others            as ObjectStore, for a URL
// Errors of its elements: as DecodeImage(), and of reading files. They name the
// path of the file.
//
// Equivalent to: keras.utils.image_dataset_from_directory, except that labels
// are int64, and that elements are not batched.
Dataset ImageFolder(absl::string_view directory,
                    const ImageFolderOptions& options = {});

// The files of a directory, listed before it is known how to choose from them:
// for a seed that is known later.
//   kNotFound, kInvalidArgument  as ImageFolder()
absl::StatusOr<std::shared_ptr<const ImageListing>> ListImageFolder(
    absl::string_view directory,
    const std::vector<std::string>& class_names = {});
// The dataset of listed files, whose classes are those of the listing.
Dataset ImageFolder(const std::shared_ptr<const ImageListing>& listing,
                    const ImageFolderOptions& options = {});

// Returns the sorted names of the class directories in `directory`: the i-th is
// the name of label i.
//   kNotFound, kInvalidArgument  as ImageFolder()
absl::StatusOr<std::vector<std::string>> ImageFolderClassNames(
    absl::string_view directory);

// Decodes `component` of each element, a string[] with the content of an image
// file, into float32[height, width, channels].
//   kInvalidArgument  an option is out of range, or there is no such component
// Errors of its elements: as DecodeImage().
//
// Equivalent to: map(tf.io.decode_image), then tf.image.resize.
Dataset DecodeImages(const Dataset& dataset, absl::string_view component_name,
                     const ImageOptions& options = {});
Dataset DecodeImages(const Dataset& dataset, int component,
                     const ImageOptions& options = {});

}  // namespace muster

#endif  // COMMON_DATASET_IMAGES_IMAGE_FOLDER_H_
