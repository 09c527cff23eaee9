#include "common/dataset/memory_sources.h"

#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "common/core/base/status_macros.h"
#include "common/core/tensor/tensor_codec.h"
#include "common/dataset/row_tables.h"
#include "google/protobuf/repeated_field.h"
#include "proto/dataset.pb.h"
#include "proto/tensor.pb.h"

namespace muster {
namespace {

// A message may have 2 GiB at most; this leaves room for the rest of it.
constexpr size_t kEncodedBytesMax = size_t{1} << 30;

absl::Status EncodeComponents(
    const Element& components,
    google::protobuf::RepeatedPtrField<proto::Tensor>* encoded) {
  size_t bytes = 0;
  for (const Tensor& component : components) bytes += component.size_bytes();
  if (bytes > kEncodedBytesMax) {
    return absl::ResourceExhaustedError(
        absl::StrCat("a dataset of tensors in memory with ", bytes,
                     " bytes cannot be sent; the limit is ", kEncodedBytesMax,
                     "; read a file in each process instead"));
  }
  for (const Tensor& component : components) {
    *encoded->Add() = EncodeTensor(component);
  }
  return absl::OkStatus();
}

std::vector<TensorType> TypesOf(const Element& components) {
  std::vector<TensorType> types;
  for (const Tensor& component : components) types.push_back(component.type());
  return types;
}

std::vector<TensorType> RowTypesOf(const Element& components) {
  std::vector<TensorType> types = TypesOf(components);
  for (TensorType& type : types) type.shape.RemoveDim(0);
  return types;
}

class FromTensorsNode final : public TableNode {
 public:
  explicit FromTensorsNode(Element components)
      : TableNode(TypesOf(components), 1),
        components_(components),
        table_(std::make_shared<ElementTable>(
            std::vector<Element>{std::move(components)})) {}

  absl::Status Encode(proto::Dataset* encoded) const override {
    return EncodeComponents(
        components_,
        encoded->add_stages()->mutable_from_tensors()->mutable_components());
  }

 protected:
  absl::StatusOr<std::shared_ptr<const RowTable>> Table() const override {
    return table_;
  }

 private:
  const Element components_;
  const std::shared_ptr<const RowTable> table_;
};

class FromTensorSlicesNode final : public TableNode {
 public:
  explicit FromTensorSlicesNode(Element components)
      : TableNode(RowTypesOf(components), components[0].shape().dim(0)),
        components_(std::move(components)) {
    std::vector<TensorTable::Component> columns;
    for (const Tensor& component : components_) {
      columns.push_back({.values = component});
    }
    table_ = std::make_shared<TensorTable>(std::move(columns));
  }

  absl::Status Encode(proto::Dataset* encoded) const override {
    return EncodeComponents(components_, encoded->add_stages()
                                             ->mutable_from_tensor_slices()
                                             ->mutable_components());
  }

 protected:
  absl::StatusOr<std::shared_ptr<const RowTable>> Table() const override {
    return table_;
  }

 private:
  const Element components_;
  std::shared_ptr<const RowTable> table_;  // Constant after construction.
};

// Row r is start + r * step.
class RangeTable final : public RowTable {
 public:
  RangeTable(int64_t start, int64_t step, int64_t count)
      : start_(start), step_(step), count_(count) {}

  int64_t row_count() const override { return count_; }
  int component_count() const override { return 1; }
  absl::Status Get(int64_t row, absl::Span<Tensor> element) const override {
    RETURN_IF_ERROR(PrepareTensor(DType::kInt64, Shape(), &element[0]));
    element[0].mutable_flat<int64_t>()[0] = At(row);
    return absl::OkStatus();
  }
  absl::Status Gather(absl::Span<const int64_t> rows,
                      absl::Span<Tensor> batch) const override {
    RETURN_IF_ERROR(PrepareTensor(
        DType::kInt64, Shape({static_cast<int64_t>(rows.size())}), &batch[0]));
    const absl::Span<int64_t> out = batch[0].mutable_flat<int64_t>();
    for (size_t i = 0; i < rows.size(); ++i) out[i] = At(rows[i]);
    return absl::OkStatus();
  }

 private:
  // The result is in [start, stop), but the product may overflow: use unsigned
  // arithmetic.
  int64_t At(int64_t row) const {
    return static_cast<int64_t>(static_cast<uint64_t>(start_) +
                                static_cast<uint64_t>(row) *
                                    static_cast<uint64_t>(step_));
  }

  const int64_t start_;
  const int64_t step_;
  const int64_t count_;
};

class RangeNode final : public TableNode {
 public:
  RangeNode(int64_t start, int64_t stop, int64_t step, int64_t count)
      : TableNode({{DType::kInt64, Shape()}}, count),
        start_(start),
        stop_(stop),
        step_(step),
        table_(std::make_shared<RangeTable>(start, step, count)) {}

  absl::Status Encode(proto::Dataset* encoded) const override {
    proto::DatasetStage::Range* const range =
        encoded->add_stages()->mutable_range();
    range->set_start(start_);
    range->set_stop(stop_);
    range->set_step(step_);
    return absl::OkStatus();
  }

 protected:
  absl::StatusOr<std::shared_ptr<const RowTable>> Table() const override {
    return table_;
  }

 private:
  const int64_t start_;
  const int64_t stop_;
  const int64_t step_;
  const std::shared_ptr<const RowTable> table_;
};

absl::Status CheckComponents(const char* stage, const Element& components) {
  if (components.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(stage, ": no tensors; expected at least one"));
  }
  for (size_t c = 0; c < components.size(); ++c) {
    if (components[c].IsValid()) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(stage, ": tensor ", c, " is invalid"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<NodePointer> MakeFromTensors(Element components) {
  RETURN_IF_ERROR(CheckComponents("FromTensors", components));
  return std::make_shared<FromTensorsNode>(std::move(components));
}

absl::StatusOr<NodePointer> MakeFromTensorSlices(Element components) {
  RETURN_IF_ERROR(CheckComponents("FromTensorSlices", components));
  for (size_t c = 0; c < components.size(); ++c) {
    const Shape& shape = components[c].shape();
    if (shape.rank() > 0 && components[0].shape().rank() > 0 &&
        shape.dim(0) == components[0].shape().dim(0)) {
      continue;
    }
    return absl::InvalidArgumentError(absl::StrCat(
        "FromTensorSlices: tensor ", c, " is ", components[c].type().ToString(),
        " and tensor 0 is ", components[0].type().ToString(),
        "; expected the same number of rows in all"));
  }
  return std::make_shared<FromTensorSlicesNode>(std::move(components));
}

absl::StatusOr<NodePointer> MakeRange(int64_t start, int64_t stop,
                                      int64_t step) {
  if (step == 0) {
    return absl::InvalidArgumentError("Range: step is 0");
  }
  // The distance of two int64s need not fit in an int64.
  uint64_t count = 0;
  if (step > 0 && start < stop) {
    const uint64_t distance =
        static_cast<uint64_t>(stop) - static_cast<uint64_t>(start);
    count = (distance - 1) / static_cast<uint64_t>(step) + 1;
  } else if (step < 0 && start > stop) {
    const uint64_t distance =
        static_cast<uint64_t>(start) - static_cast<uint64_t>(stop);
    count = (distance - 1) / (0 - static_cast<uint64_t>(step)) + 1;
  }
  if (count > static_cast<uint64_t>(INT64_MAX)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "Range: from ", start, " to ", stop, " is too large a range"));
  }
  return std::make_shared<RangeNode>(start, stop, step,
                                     static_cast<int64_t>(count));
}

}  // namespace muster
