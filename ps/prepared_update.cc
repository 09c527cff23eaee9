#include "ps/prepared_update.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/types/span.h"
#include "common/core/base/status_macros.h"
#include "common/core/tensor/tensor.h"

namespace muster {
namespace {

// Returns the order that sorts the rows; stable for equal rows.
std::vector<int64_t> SortedOrder(absl::Span<const int64_t> rows) {
  std::vector<int64_t> order(rows.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int64_t a, int64_t b) { return rows[a] < rows[b]; });
  return order;
}

}  // namespace

absl::Status PutRowsInOrder(int64_t row_elements, PreparedUpdate* update) {
  const bool sum_repeats = IsGradient(update->kind);
  const std::vector<int64_t>& rows = update->rows;
  const auto is_out_of_order = [&](int64_t a, int64_t b) {
    return sum_repeats ? a >= b : a > b;
  };
  if (std::adjacent_find(rows.begin(), rows.end(), is_out_of_order) ==
      rows.end()) {
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(const Tensor values, update->value.ToTensor());
  Tensor ordered(values.dtype(), values.shape());
  std::vector<int64_t> ordered_rows;
  VisitNumber(values.dtype(), [&]<typename T>() {
    const T* from = values.flat<T>().data();
    T* to = ordered.mutable_flat<T>().data();
    for (int64_t index : SortedOrder(rows)) {
      const T* row = from + index * row_elements;
      if (sum_repeats && !ordered_rows.empty() &&
          ordered_rows.back() == rows[index]) {
        AddInto(row_elements, row, /*subtract=*/false, to - row_elements);
        continue;
      }
      std::copy(row, row + row_elements, to);
      to += row_elements;
      ordered_rows.push_back(rows[index]);
    }
  });
  const int64_t count = static_cast<int64_t>(ordered_rows.size());
  update->value = ReceivedTensor::FromTensor(ordered.SliceRows(0, count));
  update->rows = std::move(ordered_rows);
  return absl::OkStatus();
}

}  // namespace muster
