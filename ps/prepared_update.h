#ifndef PS_PREPARED_UPDATE_H_
#define PS_PREPARED_UPDATE_H_

#include <cstdint>
#include <memory>
#include <type_traits>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "common/compute/optimizers/update_rule.h"
#include "common/compute/variables/update_kind.h"
#include "common/core/tensor/float16.h"
#include "common/net/rpc/message.h"

namespace muster {

class ShardVariable;

// One validated update, ready to be applied.
struct PreparedUpdate {
  ShardVariable* variable = nullptr;
  UpdateKind kind = UpdateKind::kAssign;
  // The new value or gradient. For kinds with indices, one row for each entry
  // of `rows`.
  ReceivedTensor value;
  // For kinds with indices only. In ascending order; unique for gradients.
  std::vector<int64_t> rows;
  // For gradients only.
  std::shared_ptr<const UpdateRule> rule;

  // ---- Set by ShardVariable::DrawTickets().

  int64_t rule_step = 0;  // For gradients only.
  // By stripe: the number of updates of the stripe before this one;
  // kNoTicket for stripes that it does not change.
  absl::InlinedVector<int64_t, 4> tickets;
  // The slots that begin as copies of the variable and are filled by this
  // update, before it changes the variable.
  std::vector<int> slots_to_fill;
};

inline constexpr int64_t kNoTicket = -1;

// Sorts the rows of a sparse update. Sums repeated rows of a gradient, because
// an optimizer must get one gradient for each row. For other kinds, repeated
// rows keep their order. A row has `row_elements` elements.
//   Fails as ReceivedTensor::ToTensor() does.
absl::Status PutRowsInOrder(int64_t row_elements, PreparedUpdate* update);

// Returns the elements of a gradient of all rows; 0 in rows that a sparse one
// does not have. T is the type of the variable.
template <typename T>
std::vector<T> DenseGradient(const PreparedUpdate& update, int64_t row_count,
                             int64_t row_elements) {
  std::vector<T> gradient(row_count * row_elements);
  const bool is_sparse = TakesIndices(update.kind);
  const int64_t count =
      is_sparse ? static_cast<int64_t>(update.rows.size()) * row_elements
                : row_count * row_elements;
  constexpr int64_t kRunElements = 16 << 10;
  std::vector<T> scratch(kRunElements);
  update.value.VisitRuns(
      0, count, kRunElements, scratch.data(),
      [&](int64_t offset, const void* data, int64_t run_count) {
        const T* const values = static_cast<const T*>(data);
        for (int64_t i = 0; i < run_count; ++i) {
          const int64_t from = offset + i;
          const int64_t to =
              is_sparse ? update.rows[from / row_elements] * row_elements +
                              from % row_elements
                        : from;
          gradient[to] = values[i];
        }
      });
  return gradient;
}

// Adds or subtracts: target[i] += values[i], or -=. Integers wrap.
template <typename T>
void AddInto(int64_t count, const T* values, bool subtract, T* target) {
  if constexpr (std::is_same_v<T, float16> || std::is_same_v<T, bfloat16>) {
    const float sign = subtract ? -1.0f : 1.0f;
    for (int64_t i = 0; i < count; ++i) {
      target[i] = T(static_cast<float>(target[i]) +
                    sign * static_cast<float>(values[i]));
    }
  } else if constexpr (std::is_floating_point_v<T>) {
    const T sign = subtract ? T{-1} : T{1};
    for (int64_t i = 0; i < count; ++i) target[i] += sign * values[i];
  } else if constexpr (!std::is_same_v<T, bool>) {
    using Unsigned = std::make_unsigned_t<T>;
    for (int64_t i = 0; i < count; ++i) {
      const auto a = static_cast<Unsigned>(target[i]);
      const auto b = static_cast<Unsigned>(values[i]);
      target[i] = static_cast<T>(subtract ? a - b : a + b);
    }
  }
}

}  // namespace muster

#endif  // PS_PREPARED_UPDATE_H_
