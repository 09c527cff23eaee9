#ifndef COMMON_CORE_DEVICE_TESTING_SAME_SHAPE_H_
#define COMMON_CORE_DEVICE_TESTING_SAME_SHAPE_H_

#include <type_traits>

// Compares Muster's declaration of a library's function with the library's own.
namespace muster {
namespace internal {

template <typename T, typename = void>
inline constexpr bool kIsComplete = false;
template <typename T>
inline constexpr bool kIsComplete<T, std::void_t<decltype(sizeof(T))>> =
    !std::is_void_v<T> && !std::is_function_v<T>;

// True if two types are passed alike. Pointers point to objects of one size, or
// at least one of them points to an object that its header does not define.
template <typename Ours, typename Theirs>
constexpr bool IsPassedAlike() {
  if constexpr (std::is_pointer_v<Ours> || std::is_pointer_v<Theirs>) {
    using Own = std::remove_pointer_t<Ours>;
    using Other = std::remove_pointer_t<Theirs>;
    if constexpr (std::is_pointer_v<Ours> != std::is_pointer_v<Theirs>) {
      return false;
    } else if constexpr (kIsComplete<Own> && kIsComplete<Other>) {
      return sizeof(Own) == sizeof(Other);
    } else {
      return true;
    }
  } else if constexpr (std::is_void_v<Ours> || std::is_void_v<Theirs>) {
    return std::is_void_v<Ours> && std::is_void_v<Theirs>;
  } else {
    return sizeof(Ours) == sizeof(Theirs) && alignof(Ours) == alignof(Theirs) &&
           std::is_class_v<Ours> == std::is_class_v<Theirs> &&
           std::is_floating_point_v<Ours> == std::is_floating_point_v<Theirs>;
  }
}

template <typename Ours, typename Theirs>
struct SameShape : std::false_type {};
template <typename R, typename... Ps, typename OtherR, typename... OtherPs>
requires(sizeof...(Ps) ==
         sizeof...(OtherPs)) struct SameShape<R(Ps...), OtherR(OtherPs...)>
    : std::bool_constant<IsPassedAlike<R, OtherR>() &&
                         (IsPassedAlike<Ps, OtherPs>() && ...)> {
};

}  // namespace internal

// True if a caller that has `Ours`, a function type, calls a function of type
// `Theirs` correctly: results and parameters are passed alike, one by one.
template <typename Ours, typename Theirs>
inline constexpr bool kHaveSameShape = internal::SameShape<Ours, Theirs>::value;

}  // namespace muster

#endif  // COMMON_CORE_DEVICE_TESTING_SAME_SHAPE_H_
