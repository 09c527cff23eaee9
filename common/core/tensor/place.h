#ifndef COMMON_CORE_TENSOR_PLACE_H_
#define COMMON_CORE_TENSOR_PLACE_H_

#include <cstdint>

namespace muster {

enum class PlaceKind : uint8_t {
  kHost,        // Memory of this process.
  kPinnedHost,  // Host memory that devices access directly.
  kDevice,      // Memory of a GPU. The host passes its address on, and must not
                // read or write it.
};

// The place of memory.
struct Place {
  PlaceKind kind = PlaceKind::kHost;
  // For kDevice, the number of the physical device in this process; otherwise
  // -1.
  int16_t device = -1;

  // True if the host may read and write the memory.
  bool is_host() const { return kind != PlaceKind::kDevice; }
  bool operator==(const Place&) const = default;
};

}  // namespace muster

#endif  // COMMON_CORE_TENSOR_PLACE_H_
