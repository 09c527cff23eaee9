#include "common/dataset/images/image_files.h"

#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "common/core/base/random.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"
#include "common/core/tensor/tensor.h"
#include "proto/dataset.pb.h"

namespace muster {
namespace {

using ListingPointer = std::shared_ptr<const ImageListing>;

std::vector<TensorType> TypesOf(LabelMode mode, int64_t class_count) {
  const TensorType path = {DType::kString, Shape()};
  switch (mode) {
    case LabelMode::kInt:
      return {path, {DType::kInt64, Shape()}};
    case LabelMode::kCategorical:
      return {path, {DType::kFloat32, Shape({class_count})}};
    case LabelMode::kBinary:
      return {path, {DType::kFloat32, Shape({1})}};
    case LabelMode::kNone:
      break;
  }
  return {path};
}

Tensor LabelTensor(LabelMode mode, int64_t label, int64_t class_count) {
  switch (mode) {
    case LabelMode::kCategorical: {
      Tensor tensor = Tensor::Zeros(DType::kFloat32, Shape({class_count}));
      tensor.mutable_flat<float>()[label] = 1;
      return tensor;
    }
    case LabelMode::kBinary:
      return Tensor::FromValues<float>(Shape({1}), {static_cast<float>(label)});
    default:
      return Tensor::Scalar<int64_t>(label);
  }
}

class ImageFileStream final : public ElementStream {
 public:
  // `order`: the numbers of the files of one pass.
  ImageFileStream(ListingPointer listing, LabelMode label_mode,
                  std::vector<int32_t> order)
      : listing_(std::move(listing)),
        label_mode_(label_mode),
        order_(std::move(order)) {}

  absl::StatusOr<bool> Next(Element* element) override {
    if (next_ == order_.size()) return false;
    const int32_t file = order_[next_++];
    element->clear();
    element->push_back(Tensor::Scalar<std::string>(
        absl::StrCat(listing_->directory, "/", listing_->files[file])));
    if (label_mode_ != LabelMode::kNone) {
      element->push_back(
          LabelTensor(label_mode_, listing_->labels[file],
                      static_cast<int64_t>(listing_->class_names.size())));
    }
    return true;
  }

 private:
  const ListingPointer listing_;
  const LabelMode label_mode_;
  const std::vector<int32_t> order_;
  size_t next_ = 0;
};

proto::DatasetStage::LabelMode EncodeLabelMode(LabelMode mode) {
  switch (mode) {
    case LabelMode::kInt:
      return proto::DatasetStage::INT;
    case LabelMode::kCategorical:
      return proto::DatasetStage::CATEGORICAL;
    case LabelMode::kBinary:
      return proto::DatasetStage::BINARY;
    case LabelMode::kNone:
      break;
  }
  return proto::DatasetStage::NONE;
}

class ImageFilesNode final : public DatasetNode {
 public:
  ImageFilesNode(ListingPointer listing, const ImageFilesOptions& options)
      : DatasetNode(TypesOf(options.label_mode,
                            static_cast<int64_t>(listing->class_names.size())),
                    static_cast<int64_t>(listing->files.size())),
        listing_(std::move(listing)),
        options_(options) {}

  absl::StatusOr<std::unique_ptr<ElementStream>> MakeElements(
      const PassContext& context) const override {
    std::vector<int32_t> order(listing_->files.size());
    std::iota(order.begin(), order.end(), 0);
    if (options_.shuffle) {
      RandomStream random(FoldIn(FoldIn(options_.seed, "image_files"),
                                 static_cast<uint64_t>(context.epoch)));
      for (size_t i = order.size(); i > 1; --i) {
        std::swap(order[i - 1], order[random.Below(i)]);
      }
    }
    return std::make_unique<ImageFileStream>(listing_, options_.label_mode,
                                             std::move(order));
  }

  StageKind kind() const override { return StageKind::kFiles; }
  int file_count() const override {
    return static_cast<int>(listing_->files.size());
  }
  absl::StatusOr<NodePointer> WithFiles(
      absl::Span<const int> files) const override {
    auto chosen = std::make_shared<ImageListing>();
    chosen->directory = listing_->directory;
    chosen->class_names = listing_->class_names;
    for (const int file : files) {
      chosen->files.push_back(listing_->files[file]);
      chosen->labels.push_back(listing_->labels[file]);
    }
    return MakeImageFiles(std::move(chosen), options_);
  }

  absl::Status Encode(proto::Dataset* encoded) const override {
    proto::DatasetStage::ImageFiles* const files =
        encoded->add_stages()->mutable_image_files();
    files->set_directory(listing_->directory);
    *files->mutable_class_name() = {listing_->class_names.begin(),
                                    listing_->class_names.end()};
    *files->mutable_file() = {listing_->files.begin(), listing_->files.end()};
    *files->mutable_label() = {listing_->labels.begin(),
                               listing_->labels.end()};
    files->set_label_mode(EncodeLabelMode(options_.label_mode));
    files->set_shuffle(options_.shuffle);
    files->set_seed(options_.seed);
    return absl::OkStatus();
  }

 private:
  const ListingPointer listing_;
  const ImageFilesOptions options_;
};

}  // namespace

absl::StatusOr<NodePointer> MakeImageFiles(ListingPointer listing,
                                           const ImageFilesOptions& options) {
  const size_t class_count = listing->class_names.size();
  if (listing->files.empty() ||
      listing->files.size() > static_cast<size_t>(kImageCountMax) ||
      listing->labels.size() != listing->files.size()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "ImageFolder ", listing->directory, ": ", listing->files.size(),
        " images with ", listing->labels.size(), " labels; expected 1 to ",
        kImageCountMax, ", and a label for each"));
  }
  for (const int32_t label : listing->labels) {
    if (label >= 0 && static_cast<size_t>(label) < class_count) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("ImageFolder ", listing->directory, ": label ", label,
                     " of ", class_count, " classes"));
  }
  if (options.label_mode == LabelMode::kBinary && class_count != 2) {
    return absl::InvalidArgumentError(
        absl::StrCat("ImageFolder ", listing->directory, ": binary labels of ",
                     class_count, " classes; expected 2"));
  }
  return std::make_shared<ImageFilesNode>(std::move(listing), options);
}

}  // namespace muster
