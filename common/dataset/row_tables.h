#ifndef COMMON_DATASET_ROW_TABLES_H_
#define COMMON_DATASET_ROW_TABLES_H_

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/core/tensor/tensor.h"
#include "common/dataset/dataset_node.h"

namespace muster {

// The maximum memory of one component of a batch; batch sizes come from
// outside.
inline constexpr int64_t kBatchBytesMax = int64_t{4} << 30;

// Gives `*tensor` this type, reusing it if it has no other owner.
//   kResourceExhausted  more than kBatchBytesMax
absl::Status PrepareTensor(DType dtype, const Shape& shape, Tensor* tensor);

// Stacks elements of equal types along a new outermost dimension.
//   kInvalidArgument    types differ; names the component and both types
//   kResourceExhausted  as PrepareTensor
absl::Status StackElements(absl::Span<const Element> elements, Element* batch);

// The rows of the components along their outermost dimension.
class TensorTable final : public RowTable {
 public:
  struct Component {
    Tensor values;  // Of rank 1 or more; all have equally many rows.
    // Other than 0: `values` are uint8, and are returned as float32 multiplied
    // by this. Takes a quarter of the memory and of the reads.
    float scale = 0;
  };

  explicit TensorTable(std::vector<Component> components);

  int64_t row_count() const override { return row_count_; }
  int component_count() const override { return component_count_; }
  absl::Status Get(int64_t row, absl::Span<Tensor> element) const override;
  absl::Status Gather(absl::Span<const int64_t> rows,
                      absl::Span<Tensor> batch) const override;
  std::shared_ptr<const RowTable> Select(
      absl::Span<const int> components) const override;

 private:
  const std::vector<Component> components_;
  const int component_count_;
  int64_t row_count_;
};

// The components of several tables side by side; as long as the shortest one.
class ZippedTable final : public RowTable {
 public:
  explicit ZippedTable(std::vector<std::shared_ptr<const RowTable>> tables);

  int64_t row_count() const override { return row_count_; }
  int component_count() const override { return component_count_; }
  bool is_stored() const override;
  absl::Status Get(int64_t row, absl::Span<Tensor> element) const override;
  absl::Status Gather(absl::Span<const int64_t> rows,
                      absl::Span<Tensor> batch) const override;

 private:
  const std::vector<std::shared_ptr<const RowTable>> tables_;
  int component_count_ = 0;
  int64_t row_count_ = 0;
};

// Cached elements; at least one.
class ElementTable final : public RowTable {
 public:
  explicit ElementTable(std::vector<Element> elements)
      : elements_(std::move(elements)),
        component_count_(static_cast<int>(elements_[0].size())) {}

  int64_t row_count() const override {
    return static_cast<int64_t>(elements_.size());
  }
  int component_count() const override { return component_count_; }
  absl::Status Get(int64_t row, absl::Span<Tensor> element) const override;
  absl::Status Gather(absl::Span<const int64_t> rows,
                      absl::Span<Tensor> batch) const override;

 private:
  const std::vector<Element> elements_;
  const int component_count_;
};

}  // namespace muster

#endif  // COMMON_DATASET_ROW_TABLES_H_
