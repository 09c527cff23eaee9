#include "common/dataset/window_stages.h"

#include <algorithm>
#include <deque>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/core/base/status_macros.h"
#include "common/core/tensor/shape.h"
#include "common/dataset/batch_stages.h"
#include "common/dataset/row_tables.h"
#include "proto/dataset.pb.h"

namespace muster {
namespace {

class Windows final : public ElementStream {
 public:
  // `options` has a shift.
  Windows(std::unique_ptr<ElementStream> input, int64_t size,
          const SlidingWindowOptions& options)
      : input_(std::move(input)), size_(size), options_(options) {}

  absl::StatusOr<bool> Next(Element* window) override {
    RETURN_IF_ERROR(Advance());
    const int64_t span = (size_ - 1) * options_.stride + 1;
    while (!input_ended_ && static_cast<int64_t>(buffer_.size()) < span) {
      ASSIGN_OR_RETURN(const bool more, Read());
      if (!more) break;
    }
    const auto count = static_cast<int64_t>(buffer_.size());
    if (count == 0 || (options_.drop_remainder && count < span)) return false;
    rows_.clear();
    for (int64_t i = 0; i < std::min(count, span); i += options_.stride) {
      rows_.push_back(buffer_[i]);
    }
    RETURN_IF_ERROR(StackElements(rows_, window));
    has_window_ = true;
    return true;
  }

 private:
  // Appends an element to the buffer.
  absl::StatusOr<bool> Read() {
    Element element;
    ASSIGN_OR_RETURN(const bool more, input_->Next(&element));
    input_ended_ = !more;
    if (more) buffer_.push_back(std::move(element));
    return more;
  }

  // Drops the elements before the next window.
  absl::Status Advance() {
    if (!has_window_) return absl::OkStatus();
    has_window_ = false;
    for (int64_t i = 0; i < options_.shift; ++i) {
      if (buffer_.empty() && !input_ended_) {
        ASSIGN_OR_RETURN(const bool more, Read());
        if (!more) break;
      }
      if (buffer_.empty()) break;
      buffer_.pop_front();
    }
    return absl::OkStatus();
  }

  const std::unique_ptr<ElementStream> input_;
  const int64_t size_;
  const SlidingWindowOptions options_;
  std::deque<Element> buffer_;  // From the first element of a window on.
  std::vector<Element> rows_;
  bool has_window_ = false;  // The buffer's window has been returned.
  bool input_ended_ = false;
};

int64_t WindowCount(int64_t cardinality, int64_t size,
                    const SlidingWindowOptions& options) {
  if (cardinality < 0) return cardinality;
  const int64_t span = (size - 1) * options.stride + 1;
  const int64_t starts =
      options.drop_remainder ? cardinality - span + 1 : cardinality;
  return starts <= 0 ? 0 : (starts - 1) / options.shift + 1;
}

std::vector<TensorType> WindowTypes(const DatasetNode& input, int64_t size,
                                    const SlidingWindowOptions& options) {
  const bool always_full =
      options.drop_remainder || input.cardinality() == Dataset::kInfinite;
  std::vector<TensorType> types = input.element_types();
  for (TensorType& type : types) {
    type.shape.InsertDim(0, always_full ? size : Shape::kUnknown);
  }
  return types;
}

class WindowNode final : public DatasetNode {
 public:
  // `options` has a shift.
  WindowNode(NodePointer input, int64_t size,
             const SlidingWindowOptions& options)
      : DatasetNode(WindowTypes(*input, size, options),
                    WindowCount(input->cardinality(), size, options),
                    input->component_names()),
        input_(std::move(input)),
        size_(size),
        options_(options) {}

  absl::StatusOr<std::unique_ptr<ElementStream>> MakeElements(
      const PassContext& context) const override {
    ASSIGN_OR_RETURN(std::unique_ptr<ElementStream> elements,
                     input_->MakeElements(context));
    return std::make_unique<Windows>(std::move(elements), size_, options_);
  }

  StageKind kind() const override { return StageKind::kWindow; }
  std::vector<NodePointer> inputs() const override { return {input_}; }
  absl::StatusOr<NodePointer> WithInputs(
      std::vector<NodePointer> inputs) const override {
    return MakeWindow(std::move(inputs[0]), size_, options_);
  }

  absl::Status Encode(proto::Dataset* encoded) const override {
    RETURN_IF_ERROR(input_->Encode(encoded));
    proto::DatasetStage::Window* const window =
        encoded->add_stages()->mutable_window();
    window->set_size(size_);
    window->set_shift(options_.shift);
    window->set_stride(options_.stride);
    window->set_drop_remainder(options_.drop_remainder);
    return absl::OkStatus();
  }

 private:
  const NodePointer input_;
  const int64_t size_;
  const SlidingWindowOptions options_;
};

}  // namespace

absl::StatusOr<NodePointer> MakeWindow(NodePointer input, int64_t size,
                                       const SlidingWindowOptions& options) {
  SlidingWindowOptions complete = options;
  if (complete.shift == 0) complete.shift = size;
  const std::pair<const char*, int64_t> numbers[] = {
      {"size", size}, {"shift", complete.shift}, {"stride", complete.stride}};
  for (const auto& [name, value] : numbers) {
    if (value >= 1 && value <= kBatchSizeMax) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "Window: ", name, " is ", value, "; expected 1 to ", kBatchSizeMax));
  }
  for (const TensorType& type : input->element_types()) {
    if (type.shape.rank() < Shape::kRankMax) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("Window: a component is ", type.ToString(),
                     " and cannot get another dimension"));
  }
  return std::make_shared<WindowNode>(std::move(input), size, complete);
}

}  // namespace muster
