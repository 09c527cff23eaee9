#include "common/dataset/padded_batch_stages.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/core/base/status_macros.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"
#include "common/core/tensor/tensor_codec.h"
#include "common/dataset/batch_stages.h"
#include "common/dataset/components.h"
#include "common/dataset/row_tables.h"
#include "proto/dataset.pb.h"

namespace muster {
namespace {

using Elements = absl::Span<const Element>;

// Copies `from` to the beginning of row `row` of `to`, which has as many or
// more elements along each axis. T is a word of an element's size, or string.
template <typename T>
void CopyRow(const Tensor& from, int64_t row, const T* source, const Shape& to,
             T* target) {
  const Shape& shape = from.shape();
  const int rank = shape.rank();
  const int64_t run = rank == 0 ? 1 : shape.dim(rank - 1);
  if (shape.element_count() == 0) return;
  const int64_t run_count = shape.element_count() / run;
  for (int64_t i = 0; i < run_count; ++i) {
    int64_t offset = 0;
    int64_t stride = rank == 0 ? 1 : to.dim(rank);
    int64_t rest = i;
    for (int axis = rank - 2; axis >= 0; --axis) {
      offset += rest % shape.dim(axis) * stride;
      rest /= shape.dim(axis);
      stride *= to.dim(axis + 1);
    }
    std::copy_n(source + i * run, run, target + row * stride + offset);
  }
}

template <typename T>
void PadRows(Elements elements, size_t component, const T& padding,
             const T* (*data)(const Tensor&), T* target, const Shape& shape) {
  std::fill_n(target, shape.element_count(), padding);
  for (size_t i = 0; i < elements.size(); ++i) {
    const Tensor& value = elements[i][component];
    CopyRow(value, static_cast<int64_t>(i), data(value), shape, target);
  }
}

// Words of the size of an element, which are copied without their meaning.
template <typename Word>
void PadWords(Elements elements, size_t component, const Tensor& padding,
              Tensor* out) {
  Word word = 0;
  std::memcpy(&word, padding.raw_data(), sizeof(word));
  PadRows<Word>(
      elements, component, word,
      [](const Tensor& tensor) {
        return reinterpret_cast<const Word*>(tensor.raw_data());
      },
      reinterpret_cast<Word*>(out->mutable_raw_data()), out->shape());
}

void Pad(Elements elements, size_t component, const Tensor& padding,
         Tensor* out) {
  if (out->dtype() == DType::kString) {
    return PadRows<std::string>(
        elements, component, padding.flat<std::string>()[0],
        [](const Tensor& tensor) { return tensor.flat<std::string>().data(); },
        out->mutable_flat<std::string>().data(), out->shape());
  }
  switch (SizeOf(out->dtype())) {
    case 1:
      return PadWords<uint8_t>(elements, component, padding, out);
    case 2:
      return PadWords<uint16_t>(elements, component, padding, out);
    case 4:
      return PadWords<uint32_t>(elements, component, padding, out);
    default:
      return PadWords<uint64_t>(elements, component, padding, out);
  }
}

// How elements become rows of equal shapes.
class Padding {
 public:
  Padding(std::vector<TensorType> types, std::vector<Tensor> values,
          int64_t length_multiple)
      : types_(std::move(types)),
        values_(std::move(values)),
        length_multiple_(length_multiple) {}

  // Stacks the elements. Unknown extents become those of the longest element,
  // rounded up, or `length` along the outermost axis.
  absl::Status Stack(Elements elements, int64_t length, Element* batch) const {
    batch->resize(types_.size());
    for (size_t c = 0; c < types_.size(); ++c) {
      ASSIGN_OR_RETURN(Shape shape, RowShape(elements, c, length));
      shape.InsertDim(0, static_cast<int64_t>(elements.size()));
      Tensor& out = (*batch)[c];
      RETURN_IF_ERROR(PrepareTensor(types_[c].dtype, shape, &out));
      Pad(elements, c, values_[c], &out);
    }
    return absl::OkStatus();
  }

 private:
  absl::StatusOr<Shape> RowShape(Elements elements, size_t c,
                                 int64_t length) const {
    const Shape& wanted = types_[c].shape;
    Shape shape = wanted;
    for (int axis = 0; axis < wanted.rank(); ++axis) {
      int64_t longest = 0;
      for (const Element& element : elements) {
        const Tensor& value = element[c];
        if (value.dtype() != types_[c].dtype ||
            value.shape().rank() != wanted.rank()) {
          return Unexpected(c, value);
        }
        longest = std::max(longest, value.shape().dim(axis));
      }
      if (wanted.dim(axis) == Shape::kUnknown) {
        const int64_t multiple = length_multiple_;
        const int64_t rounded = (longest + multiple - 1) / multiple * multiple;
        shape.set_dim(axis, axis == 0 && length >= 0 ? length : rounded);
      }
      if (longest > shape.dim(axis)) {
        return absl::InvalidArgumentError(absl::StrCat(
            "component ", c, " of an element has ", longest,
            " elements along axis ", axis, ", which must be padded to ",
            shape.dim(axis), "; expected no more"));
      }
    }
    return shape;
  }

  absl::Status Unexpected(size_t c, const Tensor& value) const {
    return absl::InvalidArgumentError(
        absl::StrCat("component ", c, " is ", value.type().ToString(),
                     "; expected ", types_[c].ToString()));
  }

  const std::vector<TensorType> types_;
  const std::vector<Tensor> values_;  // Scalars.
  const int64_t length_multiple_;
};

using PaddingPointer = std::shared_ptr<const Padding>;

// Returns the types of rows: those of the components, with the extents of
// `padded_shapes`.
absl::StatusOr<std::vector<TensorType>> RowTypes(
    absl::string_view stage, const DatasetNode& input,
    const std::vector<Shape>& padded_shapes) {
  std::vector<TensorType> types = input.element_types();
  if (!padded_shapes.empty() && padded_shapes.size() != types.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat(stage, ": ", padded_shapes.size(),
                     " padded shapes; expected one for each of ", types.size(),
                     " components"));
  }
  for (size_t c = 0; c < types.size(); ++c) {
    if (types[c].shape.rank() >= Shape::kRankMax) {
      return absl::InvalidArgumentError(
          absl::StrCat(stage, ": a component is ", types[c].ToString(),
                       " and cannot get another dimension"));
    }
    if (padded_shapes.empty()) continue;
    if (padded_shapes[c].rank() != types[c].shape.rank()) {
      return absl::InvalidArgumentError(absl::StrCat(
          stage, ": component ", c, " is ", types[c].ToString(),
          " and has the padded shape ", padded_shapes[c].ToString(),
          "; expected the same rank"));
    }
    types[c].shape = padded_shapes[c];
  }
  return types;
}

absl::StatusOr<std::vector<Tensor>> PaddingValues(
    absl::string_view stage, const std::vector<TensorType>& types,
    std::vector<Tensor> values) {
  if (values.empty()) {
    for (const TensorType& type : types) {
      values.push_back(Tensor::Zeros(type.dtype, Shape()));
    }
  }
  for (size_t c = 0; c < types.size(); ++c) {
    if (values.size() == types.size() &&
        values[c].type() == TensorType{types[c].dtype, Shape()}) {
      continue;
    }
    return absl::InvalidArgumentError(absl::StrCat(
        stage,
        ": the padding values do not fit the components; expected one "
        "scalar for each of ",
        types.size(), ", and ", DTypeName(types[c].dtype), "[] for component ",
        c));
  }
  return values;
}

absl::StatusOr<int> PositionOf(absl::string_view stage,
                               const DatasetNode& input,
                               const std::string& name) {
  const absl::StatusOr<int> found = FindComponentIn(
      input.component_names(), input.element_types().size(), name);
  if (found.ok()) return found;
  return absl::InvalidArgumentError(
      absl::StrCat(stage, ": ", found.status().message()));
}

// Moves what is given by name to where it would be given by position.
template <typename Options>
absl::StatusOr<Options> ByPosition(absl::string_view stage,
                                   const DatasetNode& input, Options options) {
  const std::vector<TensorType>& types = input.element_types();
  if ((!options.named_padded_shapes.empty() &&
       !options.padded_shapes.empty()) ||
      (!options.named_padding_values.empty() &&
       !options.padding_values.empty())) {
    return absl::InvalidArgumentError(
        absl::StrCat(stage,
                     ": padding is given by name and by position; "
                     "expected one of them"));
  }
  for (const auto& [name, shape] : options.named_padded_shapes) {
    ASSIGN_OR_RETURN(const int c, PositionOf(stage, input, name));
    for (size_t i = options.padded_shapes.size(); i < types.size(); ++i) {
      options.padded_shapes.push_back(types[i].shape);
    }
    options.padded_shapes[c] = shape;
  }
  for (const auto& [name, value] : options.named_padding_values) {
    ASSIGN_OR_RETURN(const int c, PositionOf(stage, input, name));
    for (size_t i = options.padding_values.size(); i < types.size(); ++i) {
      options.padding_values.push_back(Tensor::Zeros(types[i].dtype, Shape()));
    }
    options.padding_values[c] = value;
  }
  options.named_padded_shapes.clear();
  options.named_padding_values.clear();
  return options;
}

std::vector<TensorType> BatchTypes(std::vector<TensorType> types,
                                   int64_t rows) {
  for (TensorType& type : types) type.shape.InsertDim(0, rows);
  return types;
}

template <typename Options, typename Encoded>
void EncodePadding(const Options& options, Encoded* encoded) {
  for (const Shape& shape : options.padded_shapes) {
    *encoded->add_padded_shapes() = EncodeShape(shape);
  }
  for (const Tensor& value : options.padding_values) {
    *encoded->add_padding_values() = EncodeTensor(value);
  }
  encoded->set_drop_remainder(options.drop_remainder);
}

class PaddedBatches final : public ElementStream {
 public:
  PaddedBatches(std::unique_ptr<ElementStream> input, PaddingPointer padding,
                int64_t batch_size, bool drop_remainder)
      : input_(std::move(input)),
        padding_(std::move(padding)),
        batch_size_(static_cast<size_t>(batch_size)),
        drop_remainder_(drop_remainder) {}

  absl::StatusOr<bool> Next(Element* batch) override {
    size_t count = 0;
    for (; count < batch_size_; ++count) {
      if (count == elements_.size()) elements_.emplace_back();
      ASSIGN_OR_RETURN(const bool more, input_->Next(&elements_[count]));
      if (!more) break;
    }
    if (count == 0 || (drop_remainder_ && count < batch_size_)) return false;
    RETURN_IF_ERROR(padding_->Stack(Elements(elements_).subspan(0, count),
                                    /*length=*/-1, batch));
    return true;
  }

 private:
  const std::unique_ptr<ElementStream> input_;
  const PaddingPointer padding_;
  const size_t batch_size_;
  const bool drop_remainder_;
  std::vector<Element> elements_;  // Kept to reuse the memory of their tensors.
};

class PaddedBatchNode final : public DatasetNode {
 public:
  PaddedBatchNode(NodePointer input, std::vector<TensorType> types,
                  int64_t cardinality, PaddingPointer padding,
                  int64_t batch_size, const PaddedBatchOptions& options)
      : DatasetNode(std::move(types), cardinality, input->component_names()),
        input_(std::move(input)),
        padding_(std::move(padding)),
        batch_size_(batch_size),
        options_(options) {}

  absl::StatusOr<std::unique_ptr<ElementStream>> MakeElements(
      const PassContext& context) const override {
    ASSIGN_OR_RETURN(std::unique_ptr<ElementStream> elements,
                     input_->MakeElements(context));
    return std::make_unique<PaddedBatches>(
        std::move(elements), padding_, batch_size_, options_.drop_remainder);
  }

  StageKind kind() const override { return StageKind::kBatch; }
  std::vector<NodePointer> inputs() const override { return {input_}; }
  absl::StatusOr<NodePointer> WithInputs(
      std::vector<NodePointer> inputs) const override {
    return MakePaddedBatch(std::move(inputs[0]), batch_size_, options_);
  }
  int64_t batch_size() const override { return batch_size_; }

  absl::Status Encode(proto::Dataset* encoded) const override {
    RETURN_IF_ERROR(input_->Encode(encoded));
    proto::DatasetStage::PaddedBatch* const batch =
        encoded->add_stages()->mutable_padded_batch();
    batch->set_batch_size(batch_size_);
    batch->set_length_multiple(options_.length_multiple);
    EncodePadding(options_, batch);
    return absl::OkStatus();
  }

 private:
  const NodePointer input_;
  const PaddingPointer padding_;
  const int64_t batch_size_;
  const PaddedBatchOptions options_;
};

class BucketedBatches final : public ElementStream {
 public:
  BucketedBatches(std::unique_ptr<ElementStream> input, PaddingPointer padding,
                  const BucketOptions& options)
      : input_(std::move(input)),
        padding_(std::move(padding)),
        options_(options),
        buckets_(options.batch_sizes.size()) {}

  absl::StatusOr<bool> Next(Element* batch) override {
    while (!is_ended_) {
      Element element;
      ASSIGN_OR_RETURN(const bool more, input_->Next(&element));
      if (!more) {
        is_ended_ = true;
        break;
      }
      ASSIGN_OR_RETURN(const size_t bucket, BucketOf(element));
      buckets_[bucket].push_back(std::move(element));
      if (static_cast<int64_t>(buckets_[bucket].size()) ==
          options_.batch_sizes[bucket]) {
        RETURN_IF_ERROR(Empty(bucket, batch));
        return true;
      }
    }
    for (; !options_.drop_remainder && next_rest_ < buckets_.size();
         ++next_rest_) {
      if (buckets_[next_rest_].empty()) continue;
      RETURN_IF_ERROR(Empty(next_rest_, batch));
      return true;
    }
    return false;
  }

 private:
  absl::StatusOr<size_t> BucketOf(const Element& element) const {
    const Tensor& value = element[options_.component];
    if (value.shape().rank() == 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("BucketBySequenceLength: component ", options_.component,
                       " of an element is a scalar and has no length"));
    }
    const auto& boundaries = options_.boundaries;
    return std::upper_bound(boundaries.begin(), boundaries.end(),
                            value.shape().dim(0)) -
           boundaries.begin();
  }

  absl::Status Empty(size_t bucket, Element* batch) {
    // As tf.data, to the greatest length that is in the bucket. The last bucket
    // has none.
    const bool is_bounded =
        options_.pad_to_bucket_boundary && bucket < options_.boundaries.size();
    const int64_t length = is_bounded ? options_.boundaries[bucket] - 1 : -1;
    RETURN_IF_ERROR(padding_->Stack(buckets_[bucket], length, batch));
    buckets_[bucket].clear();
    return absl::OkStatus();
  }

  const std::unique_ptr<ElementStream> input_;
  const PaddingPointer padding_;
  const BucketOptions options_;
  std::vector<std::vector<Element>> buckets_;
  bool is_ended_ = false;
  size_t next_rest_ = 0;
};

class BucketNode final : public DatasetNode {
 public:
  BucketNode(NodePointer input, std::vector<TensorType> types,
             int64_t cardinality, PaddingPointer padding,
             const BucketOptions& options)
      : DatasetNode(std::move(types), cardinality, input->component_names()),
        input_(std::move(input)),
        padding_(std::move(padding)),
        options_(options) {}

  absl::StatusOr<std::unique_ptr<ElementStream>> MakeElements(
      const PassContext& context) const override {
    ASSIGN_OR_RETURN(std::unique_ptr<ElementStream> elements,
                     input_->MakeElements(context));
    return std::make_unique<BucketedBatches>(std::move(elements), padding_,
                                             options_);
  }

  StageKind kind() const override { return StageKind::kBatch; }
  std::vector<NodePointer> inputs() const override { return {input_}; }
  absl::StatusOr<NodePointer> WithInputs(
      std::vector<NodePointer> inputs) const override {
    return MakeBucketBySequenceLength(std::move(inputs[0]), options_);
  }
  // The largest.
  int64_t batch_size() const override {
    return *std::max_element(options_.batch_sizes.begin(),
                             options_.batch_sizes.end());
  }

  absl::Status Encode(proto::Dataset* encoded) const override {
    RETURN_IF_ERROR(input_->Encode(encoded));
    proto::DatasetStage::BucketBySequenceLength* const buckets =
        encoded->add_stages()->mutable_bucket_by_sequence_length();
    buckets->set_component(options_.component);
    *buckets->mutable_boundaries() = {options_.boundaries.begin(),
                                      options_.boundaries.end()};
    *buckets->mutable_batch_sizes() = {options_.batch_sizes.begin(),
                                       options_.batch_sizes.end()};
    buckets->set_pad_to_bucket_boundary(options_.pad_to_bucket_boundary);
    EncodePadding(options_, buckets);
    return absl::OkStatus();
  }

 private:
  const NodePointer input_;
  const PaddingPointer padding_;
  const BucketOptions options_;
};

absl::Status CheckBatchSize(absl::string_view stage, int64_t batch_size) {
  if (batch_size >= 1 && batch_size <= kBatchSizeMax) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(stage, ": a batch size is ",
                                                 batch_size, "; expected 1 to ",
                                                 kBatchSizeMax));
}

absl::Status CheckBuckets(const DatasetNode& input,
                          const BucketOptions& options) {
  const auto refuse = [](const auto&... pieces) {
    return absl::InvalidArgumentError(
        absl::StrCat("BucketBySequenceLength: ", pieces...));
  };
  const std::vector<TensorType>& types = input.element_types();
  if (options.component < 0 ||
      options.component >= static_cast<int>(types.size()) ||
      types[options.component].shape.rank() == 0) {
    return refuse("component ", options.component, " must be one of the ",
                  types.size(), " components, and not a scalar");
  }
  int64_t last = 0;
  for (const int64_t boundary : options.boundaries) {
    if (boundary <= last) {
      return refuse("boundary ", boundary, " follows ", last,
                    "; expected positive boundaries in ascending order");
    }
    last = boundary;
  }
  if (options.batch_sizes.size() != options.boundaries.size() + 1) {
    return refuse(options.batch_sizes.size(), " batch sizes for ",
                  options.boundaries.size(),
                  " boundaries; expected one more than boundaries");
  }
  for (const int64_t batch_size : options.batch_sizes) {
    RETURN_IF_ERROR(CheckBatchSize("BucketBySequenceLength", batch_size));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<NodePointer> MakePaddedBatch(NodePointer input,
                                            int64_t batch_size,
                                            const PaddedBatchOptions& named) {
  constexpr absl::string_view kStage = "PaddedBatch";
  ASSIGN_OR_RETURN(const PaddedBatchOptions options,
                   ByPosition(kStage, *input, named));
  RETURN_IF_ERROR(CheckBatchSize(kStage, batch_size));
  if (options.length_multiple < 1 || options.length_multiple > kBatchSizeMax) {
    return absl::InvalidArgumentError(absl::StrCat(
        "PaddedBatch: length_multiple is ", options.length_multiple,
        "; expected 1 to ", kBatchSizeMax));
  }
  ASSIGN_OR_RETURN(const std::vector<TensorType> rows,
                   RowTypes(kStage, *input, options.padded_shapes));
  ASSIGN_OR_RETURN(std::vector<Tensor> values,
                   PaddingValues(kStage, rows, options.padding_values));
  const auto padding = std::make_shared<const Padding>(rows, std::move(values),
                                                       options.length_multiple);
  const bool drop = options.drop_remainder;
  std::vector<TensorType> types =
      BatchTypes(rows, BatchExtent(input->cardinality(), batch_size, drop));
  const int64_t count = BatchCount(input->cardinality(), batch_size, drop);
  return std::make_shared<PaddedBatchNode>(std::move(input), std::move(types),
                                           count, padding, batch_size, options);
}

absl::StatusOr<NodePointer> MakeBucketBySequenceLength(
    NodePointer input, const BucketOptions& named) {
  constexpr absl::string_view kStage = "BucketBySequenceLength";
  ASSIGN_OR_RETURN(BucketOptions options, ByPosition(kStage, *input, named));
  if (!options.component_name.empty()) {
    ASSIGN_OR_RETURN(options.component,
                     PositionOf(kStage, *input, options.component_name));
    options.component_name.clear();
  }
  RETURN_IF_ERROR(CheckBuckets(*input, options));
  ASSIGN_OR_RETURN(const std::vector<TensorType> rows,
                   RowTypes(kStage, *input, options.padded_shapes));
  ASSIGN_OR_RETURN(std::vector<Tensor> values,
                   PaddingValues(kStage, rows, options.padding_values));
  const auto padding = std::make_shared<const Padding>(rows, std::move(values),
                                                       /*length_multiple=*/1);
  const int64_t cardinality = input->cardinality() == Dataset::kInfinite
                                  ? Dataset::kInfinite
                                  : Dataset::kUnknownCardinality;
  std::vector<TensorType> types = BatchTypes(rows, Shape::kUnknown);
  return std::make_shared<BucketNode>(std::move(input), std::move(types),
                                      cardinality, padding, options);
}

}  // namespace muster
