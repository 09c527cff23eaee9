#ifndef COMMON_IO_CHECKPOINT_CODING_H_
#define COMMON_IO_CHECKPOINT_CODING_H_

#include <bit>
#include <cstdint>
#include <cstring>
#include <string>

#include "absl/strings/string_view.h"

// The integers of table files. Fixed ones are little-endian. Varints have seven
// bits per byte, lowest first, as in protocol buffers.
namespace muster {

static_assert(std::endian::native == std::endian::little,
              "tensors are written in the byte order of memory");

template <typename T>
void AppendFixed(T value, std::string* out) {
  out->append(reinterpret_cast<const char*>(&value), sizeof(value));
}

// `data` must have sizeof(T) bytes.
template <typename T>
T LoadFixed(const char* data) {
  T value;
  std::memcpy(&value, data, sizeof(value));
  return value;
}

inline void AppendVarint(uint64_t value, std::string* out) {
  for (; value >= 0x80; value >>= 7) {
    out->push_back(static_cast<char>(value | 0x80));
  }
  out->push_back(static_cast<char>(value));
}

// Removes a varint from the front of `data`. Returns false if it is truncated,
// has more than 64 bits, or is not in its shortest form: no writer produces
// longer forms, and they would hide a changed bit. `data` is then unspecified.
inline bool ConsumeVarint(absl::string_view* data, uint64_t* value) {
  *value = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    if (data->empty()) return false;
    const uint64_t byte = static_cast<uint8_t>(data->front());
    data->remove_prefix(1);
    if ((shift == 63 && byte > 1) || (shift > 0 && byte == 0)) return false;
    *value |= (byte & 0x7f) << shift;
    if (byte < 0x80) return true;
  }
  return false;
}

}  // namespace muster

#endif  // COMMON_IO_CHECKPOINT_CODING_H_
