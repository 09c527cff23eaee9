#include "common/dataset/corrupt_input.h"

#include "common/core/system/log.h"
#include "common/dataset/dataset_node.h"

namespace muster {
namespace {

int64_t CountOf(const DatasetNode& node) {
  int64_t count = node.corrupt_input_count();
  for (const NodePointer& input : node.inputs()) count += CountOf(*input);
  return count;
}

}  // namespace

int64_t CorruptInputCount(const Dataset& dataset) {
  return dataset.node() == nullptr ? 0 : CountOf(*dataset.node());
}

bool IsCorruptInput(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kDataLoss:
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kUnimplemented:
    case absl::StatusCode::kResourceExhausted:
      return true;
    default:
      return false;
  }
}

void SkippedInput::Add(const absl::Status& error) {
  if (count_++ == 0) first_error_ = error;
  total_->fetch_add(1, std::memory_order_relaxed);
}

void SkippedInput::Report(absl::string_view what) {
  if (count_ == 0) return;
  LOG(WARNING) << what << ": skipped " << count_
               << " corrupt inputs in this pass; the first: "
               << first_error_.message();
  count_ = 0;
}

}  // namespace muster
