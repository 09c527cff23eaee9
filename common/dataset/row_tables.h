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

// No batch may need more memory than this for one component; batch sizes come
// from outside.
inline constexpr int64_t kBatchBytesMax = int64_t{4} << 30;

// Makes `*tensor` a tensor of this type: itself when nobody else has it.
//   kResourceExhausted  more than kBatchBytesMax
absl::Status PrepareTensor(DType dtype, const Shape& shape, Tensor* tensor);

// Stacks elements, which have the same types, along a new outermost dimension.
//   kInvalidArgument    types differ; names the component and both types
//   kResourceExhausted  as PrepareTensor
absl::Status StackElements(absl::Span<const Element> elements, Element* batch);

// The rows of the components' outermost dimension.
class TensorTable final : public RowTable {
 public:
  struct Component {
    Tensor values;  // Of rank 1 at least, and as many rows as the others.
    // Other than 0: `values` are uint8, and come out as float32 multiplied by
    // this. A quarter of the memory to keep and to read.
    float scale = 0;
  };

  explicit TensorTable(std::vector<Component> components);

  int64_t row_count() const override { return row_count_; }
  int component_count() const override { return component_count_; }
  absl::Status Get(int64_t row, absl::Span<Tensor> element) const override;
  absl::Status Gather(absl::Span<const int64_t> rows,
                      absl::Span<Tensor> batch) const override;

 private:
  const std::vector<Component> components_;
  const int component_count_;
  int64_t row_count_;
};

// The components of several tables side by side; as long as the shortest.
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

// Elements that were kept: one at least.
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
