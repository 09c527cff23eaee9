#include "common/dataset/batch_stages.h"

#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "common/core/base/status_macros.h"
#include "common/core/tensor/shape.h"
#include "common/dataset/row_tables.h"
#include "proto/dataset.pb.h"

namespace muster {
namespace {

// Batches rows of a table: copies each row once, directly into the batch.
class RowBatches final : public ElementStream {
 public:
  RowBatches(RowSelection selection, int64_t batch_size, bool drop_remainder)
      : selection_(std::move(selection)),
        batch_size_(static_cast<size_t>(batch_size)),
        drop_remainder_(drop_remainder) {}

  absl::StatusOr<bool> Next(Element* batch) override {
    rows_.clear();
    while (rows_.size() < batch_size_) {
      int64_t row = 0;
      ASSIGN_OR_RETURN(const bool more, selection_.rows->Next(&row));
      if (!more) break;
      rows_.push_back(row);
    }
    if (rows_.empty()) return false;
    if (drop_remainder_ && rows_.size() < batch_size_) return false;
    batch->resize(selection_.table->component_count());
    RETURN_IF_ERROR(selection_.table->Gather(rows_, absl::MakeSpan(*batch)));
    return true;
  }

 private:
  const RowSelection selection_;
  const size_t batch_size_;
  const bool drop_remainder_;
  std::vector<int64_t> rows_;
};

class ElementBatches final : public ElementStream {
 public:
  ElementBatches(std::unique_ptr<ElementStream> input, int64_t batch_size,
                 bool drop_remainder)
      : input_(std::move(input)),
        batch_size_(static_cast<size_t>(batch_size)),
        drop_remainder_(drop_remainder) {}

  absl::StatusOr<bool> Next(Element* batch) override {
    size_t count = 0;
    for (; count < batch_size_; ++count) {
      if (count == elements_.size()) elements_.emplace_back();
      ASSIGN_OR_RETURN(const bool more, input_->Next(&elements_[count]));
      if (!more) break;
    }
    if (count == 0) return false;
    if (drop_remainder_ && count < batch_size_) return false;
    RETURN_IF_ERROR(
        StackElements(absl::MakeConstSpan(elements_).subspan(0, count), batch));
    return true;
  }

 private:
  const std::unique_ptr<ElementStream> input_;
  const size_t batch_size_;
  const bool drop_remainder_;
  std::vector<Element> elements_;  // Kept to reuse the memory of their tensors.
};

std::vector<TensorType> BatchedTypes(const DatasetNode& input,
                                     int64_t batch_size, bool drop) {
  const int64_t extent = BatchExtent(input.cardinality(), batch_size, drop);
  std::vector<TensorType> types = input.element_types();
  for (TensorType& type : types) type.shape.InsertDim(0, extent);
  return types;
}

class BatchNode final : public DatasetNode {
 public:
  BatchNode(NodePointer input, int64_t batch_size, const BatchOptions& options)
      : DatasetNode(BatchedTypes(*input, batch_size, options.drop_remainder),
                    BatchCount(input->cardinality(), batch_size,
                               options.drop_remainder),
                    input->component_names()),
        input_(std::move(input)),
        batch_size_(batch_size),
        options_(options) {}

  absl::StatusOr<std::unique_ptr<ElementStream>> MakeElements(
      const PassContext& context) const override {
    ASSIGN_OR_RETURN(RowSelection selection, input_->MakeRows(context));
    if (selection.table != nullptr) {
      return std::make_unique<RowBatches>(std::move(selection), batch_size_,
                                          options_.drop_remainder);
    }
    ASSIGN_OR_RETURN(std::unique_ptr<ElementStream> elements,
                     input_->MakeElements(context));
    return std::make_unique<ElementBatches>(std::move(elements), batch_size_,
                                            options_.drop_remainder);
  }

  StageKind kind() const override { return StageKind::kBatch; }
  std::vector<NodePointer> inputs() const override { return {input_}; }
  absl::StatusOr<NodePointer> WithInputs(
      std::vector<NodePointer> inputs) const override {
    return MakeBatch(std::move(inputs[0]), batch_size_, options_);
  }
  int64_t batch_size() const override { return batch_size_; }

  absl::Status Encode(proto::Dataset* encoded) const override {
    RETURN_IF_ERROR(input_->Encode(encoded));
    proto::DatasetStage::Batch* const batch =
        encoded->add_stages()->mutable_batch();
    batch->set_batch_size(batch_size_);
    batch->set_drop_remainder(options_.drop_remainder);
    return absl::OkStatus();
  }

 private:
  const NodePointer input_;
  const int64_t batch_size_;
  const BatchOptions options_;
};

class UnbatchedElements final : public ElementStream {
 public:
  explicit UnbatchedElements(std::unique_ptr<ElementStream> input)
      : input_(std::move(input)) {}

  absl::StatusOr<bool> Next(Element* element) override {
    while (next_ == row_count_) {
      ASSIGN_OR_RETURN(const bool more, input_->Next(&batch_));
      if (!more) return false;
      next_ = 0;
      row_count_ = batch_.empty() ? 0 : batch_[0].shape().dim(0);
      for (size_t c = 1; c < batch_.size(); ++c) {
        if (batch_[c].shape().dim(0) == row_count_) continue;
        return absl::InvalidArgumentError(absl::StrCat(
            "Unbatch: component 0 has ", row_count_, " rows and component ", c,
            " has ", batch_[c].shape().dim(0)));
      }
    }
    element->resize(batch_.size());
    for (size_t c = 0; c < batch_.size(); ++c) {
      Shape shape = batch_[c].shape();
      shape.RemoveDim(0);
      (*element)[c] =
          batch_[c].SliceRows(next_, next_ + 1).Reshaped(std::move(shape));
    }
    ++next_;
    return true;
  }

 private:
  const std::unique_ptr<ElementStream> input_;
  Element batch_;
  int64_t next_ = 0;
  int64_t row_count_ = 0;
};

class UnbatchNode final : public DatasetNode {
 public:
  UnbatchNode(NodePointer input, std::vector<TensorType> types)
      : DatasetNode(std::move(types), CardinalityOf(*input),
                    input->component_names()),
        input_(std::move(input)) {}

  absl::StatusOr<std::unique_ptr<ElementStream>> MakeElements(
      const PassContext& context) const override {
    ASSIGN_OR_RETURN(std::unique_ptr<ElementStream> elements,
                     input_->MakeElements(context));
    return std::make_unique<UnbatchedElements>(std::move(elements));
  }

  StageKind kind() const override { return StageKind::kUnbatch; }
  std::vector<NodePointer> inputs() const override { return {input_}; }
  absl::StatusOr<NodePointer> WithInputs(
      std::vector<NodePointer> inputs) const override {
    return MakeUnbatch(std::move(inputs[0]));
  }

  absl::Status Encode(proto::Dataset* encoded) const override {
    RETURN_IF_ERROR(input_->Encode(encoded));
    encoded->add_stages()->mutable_unbatch();
    return absl::OkStatus();
  }

 private:
  static int64_t CardinalityOf(const DatasetNode& input) {
    const int64_t cardinality = input.cardinality();
    if (cardinality <= 0) return cardinality;
    const int64_t rows = input.element_types()[0].shape.dim(0);
    int64_t product;
    if (rows < 0 || __builtin_mul_overflow(cardinality, rows, &product)) {
      return Dataset::kUnknownCardinality;
    }
    return product;
  }

  const NodePointer input_;
};

}  // namespace

int64_t BatchCount(int64_t cardinality, int64_t batch_size,
                   bool drop_remainder) {
  if (cardinality < 0) return cardinality;
  const int64_t whole = cardinality / batch_size;
  return whole + (drop_remainder || cardinality % batch_size == 0 ? 0 : 1);
}

// tf.data leaves the extent unknown unless remainders are dropped. An infinite
// dataset has no remainder, and neither has one whose size is a multiple.
int64_t BatchExtent(int64_t cardinality, int64_t batch_size,
                    bool drop_remainder) {
  const bool always_full = drop_remainder ||
                           cardinality == Dataset::kInfinite ||
                           (cardinality > 0 && cardinality % batch_size == 0);
  return always_full ? batch_size : Shape::kUnknown;
}

absl::StatusOr<NodePointer> MakeBatch(NodePointer input, int64_t batch_size,
                                      const BatchOptions& options) {
  if (batch_size < 1 || batch_size > kBatchSizeMax) {
    return absl::InvalidArgumentError(
        absl::StrCat("Batch: batch_size is ", batch_size, "; expected 1 to ",
                     kBatchSizeMax));
  }
  for (const TensorType& type : input->element_types()) {
    if (type.shape.rank() < Shape::kRankMax) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("Batch: a component is ", type.ToString(),
                     " and cannot get another dimension"));
  }
  return std::make_shared<BatchNode>(std::move(input), batch_size, options);
}

absl::StatusOr<NodePointer> MakeUnbatch(NodePointer input) {
  std::vector<TensorType> types = input->element_types();
  if (types.empty()) {
    return absl::InvalidArgumentError("Unbatch: elements have no components");
  }
  for (TensorType& type : types) {
    if (type.shape.rank() == 0) {
      return absl::InvalidArgumentError(absl::StrCat(
          "Unbatch: a component is ", type.ToString(), " and has no rows"));
    }
    type.shape.RemoveDim(0);
  }
  return std::make_shared<UnbatchNode>(std::move(input), std::move(types));
}

}  // namespace muster
