#ifndef COMMON_CORE_BASE_STRONG_INT_H_
#define COMMON_CORE_BASE_STRONG_INT_H_

#include <compare>
#include <cstddef>
#include <functional>
#include <ostream>

namespace muster {

// An integer that cannot be mistaken for another kind of integer:
//   using ClosureId = StrongInt<struct ClosureIdTag, uint64_t>;
template <typename Tag, typename T>
class StrongInt {
 public:
  using ValueType = T;

  constexpr StrongInt() = default;
  constexpr explicit StrongInt(T value) : value_(value) {}

  constexpr T value() const { return value_; }
  constexpr auto operator<=>(const StrongInt&) const = default;

  template <typename H>
  friend H AbslHashValue(H state, StrongInt id) {
    return H::combine(std::move(state), id.value_);
  }
  friend std::ostream& operator<<(std::ostream& out, StrongInt id) {
    return out << id.value_;
  }

 private:
  T value_ = 0;
};

}  // namespace muster

#endif  // COMMON_CORE_BASE_STRONG_INT_H_
