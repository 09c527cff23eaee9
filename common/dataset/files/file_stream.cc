#include "common/dataset/files/file_stream.h"

#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"
#include "common/core/tensor/tensor.h"
#include "common/dataset/interleaved_stream.h"

namespace muster {

FileStreamNode::FileStreamNode(std::vector<std::string> paths,
                               const InterleaveOptions& order,
                               Counter corrupt_input_count)
    : DatasetNode({TensorType{DType::kString, Shape()}},
                  Dataset::kUnknownCardinality),
      paths_(std::move(paths)),
      order_(order),
      corrupt_input_count_(std::move(corrupt_input_count)) {}

std::vector<std::string> FileStreamNode::PathsOf(
    absl::Span<const int> files) const {
  std::vector<std::string> chosen;
  for (const int file : files) chosen.push_back(paths_[file]);
  return chosen;
}

absl::StatusOr<std::unique_ptr<ElementStream>> FileStreamNode::MakeElements(
    const PassContext&) const {
  return std::make_unique<InterleavedStream<Element>>(
      [this, file = size_t{0}]() mutable
      -> absl::StatusOr<std::unique_ptr<ElementStream>> {
        if (file == paths_.size()) return nullptr;
        return OpenFile(paths_[file++]);
      },
      order_);
}

}  // namespace muster
