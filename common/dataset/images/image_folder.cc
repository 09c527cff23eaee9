#include "common/dataset/images/image_folder.h"

#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/core/base/random.h"
#include "common/core/base/status_macros.h"
#include "common/dataset/dataset_node.h"
#include "common/dataset/images/image_files.h"
#include "common/dataset/images/image_function.h"
#include "common/dataset/images/image_listing.h"
#include "common/dataset/map_stages.h"

namespace muster {
namespace {

ImageOptions ImageOptionsOf(const ImageFolderOptions& options) {
  return {.image_size = options.image_size,
          .interpolation = options.interpolation,
          .color_mode = options.color_mode,
          .crop_to_aspect_ratio = options.crop_to_aspect_ratio,
          .scale = options.scale,
          .fast_downscale = options.fast_downscale,
          .corrupt_input = options.corrupt_input,
          .thread_count = options.thread_count};
}

// Keeps the files of the requested subset.
absl::Status TakeSubset(const ImageFolderOptions& options,
                        ImageListing* listing) {
  const bool splits = options.validation_split != 0;
  if (!(options.validation_split >= 0 && options.validation_split < 1) ||
      splits != (options.subset != Subset::kAll)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "ImageFolder: validation_split is ", options.validation_split,
        options.subset == Subset::kAll ? " without a subset" : " with a subset",
        "; expected a number in [0, 1), and a subset where it is not 0"));
  }
  if (!splits) return absl::OkStatus();
  const size_t count = listing->files.size();
  if (options.shuffle) {
    RandomStream random(FoldIn(options.seed, "validation_split"));
    for (size_t i = count; i > 1; --i) {
      const size_t j = random.Below(i);
      std::swap(listing->files[i - 1], listing->files[j]);
      std::swap(listing->labels[i - 1], listing->labels[j]);
    }
  }
  const size_t validation_count = static_cast<size_t>(
      options.validation_split * static_cast<double>(count));
  const size_t training_count = count - validation_count;
  size_t begin = 0;
  size_t end = training_count;
  if (options.subset == Subset::kValidation) {
    begin = training_count;
    end = count;
  }
  if (begin == end) {
    return absl::InvalidArgumentError(absl::StrCat(
        "ImageFolder: a validation_split of ", options.validation_split,
        " leaves nothing of ", count, " images"));
  }
  listing->files = {listing->files.begin() + begin,
                    listing->files.begin() + end};
  listing->labels = {listing->labels.begin() + begin,
                     listing->labels.begin() + end};
  return absl::OkStatus();
}

absl::StatusOr<NodePointer> MakeImages(NodePointer input,
                                       const ImageComponent& component,
                                       const ImageOptions& options) {
  ASSIGN_OR_RETURN(auto function, MakeImageFunction(input->element_types(),
                                                    component, options));
  return MakeMap(std::move(input), std::move(function),
                 {.thread_count = options.thread_count}, options.corrupt_input);
}

absl::StatusOr<NodePointer> MakeImageFolder(ImageListing listing,
                                            const ImageFolderOptions& options) {
  RETURN_IF_ERROR(TakeSubset(options, &listing));
  ASSIGN_OR_RETURN(
      NodePointer files,
      MakeImageFiles(std::make_shared<ImageListing>(std::move(listing)),
                     {.label_mode = options.label_mode,
                      .shuffle = options.shuffle,
                      .seed = options.seed}));
  return MakeImages(std::move(files), {.index = 0, .is_path = true},
                    ImageOptionsOf(options));
}

}  // namespace

Dataset ImageFolder(absl::string_view directory,
                    const ImageFolderOptions& options) {
  const auto listing = ListImageFolder(directory, options.class_names);
  if (!listing.ok()) {
    return Dataset(absl::StatusOr<NodePointer>(listing.status()));
  }
  return ImageFolder(*listing, options);
}

absl::StatusOr<std::shared_ptr<const ImageListing>> ListImageFolder(
    absl::string_view directory, const std::vector<std::string>& class_names) {
  ASSIGN_OR_RETURN(ImageListing listing, ListImages(directory, class_names));
  return std::make_shared<const ImageListing>(std::move(listing));
}

Dataset ImageFolder(const std::shared_ptr<const ImageListing>& listing,
                    const ImageFolderOptions& options) {
  return Dataset(MakeImageFolder(*listing, options));
}

absl::StatusOr<std::vector<std::string>> ImageFolderClassNames(
    absl::string_view directory) {
  return ListClassNames(directory);
}

Dataset DecodeImages(const Dataset& dataset, int component,
                     const ImageOptions& options) {
  if (!dataset.status().ok()) return dataset;
  return Dataset(MakeImages(dataset.node(), {.index = component}, options));
}

Dataset DecodeImages(const Dataset& dataset, absl::string_view component_name,
                     const ImageOptions& options) {
  if (!dataset.status().ok()) return dataset;
  const absl::StatusOr<int> component =
      dataset.element_spec().Find(component_name);
  if (component.ok()) return DecodeImages(dataset, *component, options);
  return Dataset(absl::InvalidArgumentError(
      absl::StrCat("DecodeImages: ", component.status().message())));
}

}  // namespace muster
