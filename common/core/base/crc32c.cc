#include "common/core/base/crc32c.h"

#include <array>
#include <cstring>

#if defined(__x86_64__)
#include <nmmintrin.h>
#endif

namespace muster {
namespace {

constexpr uint32_t kReflectedPolynomial = 0x82f63b78;

using ByteTable = std::array<uint32_t, 256>;

// tables[k][b]: the effect of byte b on the checksum k bytes later.
constexpr std::array<ByteTable, 8> MakeTables() {
  std::array<ByteTable, 8> tables{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) {
      crc = (crc >> 1) ^ ((crc & 1) != 0 ? kReflectedPolynomial : 0);
    }
    tables[0][byte] = crc;
  }
  for (int k = 1; k < 8; ++k) {
    for (uint32_t byte = 0; byte < 256; ++byte) {
      const uint32_t before = tables[k - 1][byte];
      tables[k][byte] = (before >> 8) ^ tables[0][before & 0xff];
    }
  }
  return tables;
}

constexpr std::array<ByteTable, 8> kTables = MakeTables();

uint64_t LoadWord(const uint8_t* data) {
  uint64_t word;
  std::memcpy(&word, data, sizeof(word));
  return word;
}

// RemainderByTable() and RemainderByInstruction() compute the plain remainder.
// ExtendCrc32c() inverts the checksum before and after.
uint32_t RemainderByTable(uint32_t crc, const uint8_t* data, size_t size) {
  for (; size >= 8; data += 8, size -= 8) {
    const uint64_t word = LoadWord(data) ^ crc;
    crc = 0;
    for (int k = 0; k < 8; ++k) crc ^= kTables[7 - k][(word >> (8 * k)) & 0xff];
  }
  for (; size > 0; ++data, --size) {
    crc = (crc >> 8) ^ kTables[0][(crc ^ *data) & 0xff];
  }
  return crc;
}

#if defined(__x86_64__)

// The instruction has a latency of three cycles and a throughput of one per
// cycle, so three streams run in parallel and are combined after this many
// bytes.
constexpr size_t kLaneBytes = 1360;

// The effect of kLaneBytes zeros on a remainder. It is linear, so there is one
// table per byte.
std::array<ByteTable, 4> MakeLaneShift() {
  static constexpr uint8_t kZeros[kLaneBytes] = {};
  std::array<ByteTable, 4> shift{};
  for (int byte_index = 0; byte_index < 4; ++byte_index) {
    for (uint32_t byte = 0; byte < 256; ++byte) {
      shift[byte_index][byte] =
          RemainderByTable(byte << (8 * byte_index), kZeros, kLaneBytes);
    }
  }
  return shift;
}

__attribute__((target("sse4.2"))) uint32_t RemainderByInstruction(
    uint32_t crc, const uint8_t* data, size_t size) {
  static const std::array<ByteTable, 4>& shift =
      *new std::array<ByteTable, 4>(MakeLaneShift());
  const auto shifted = [](uint32_t value) {
    return shift[0][value & 0xff] ^ shift[1][(value >> 8) & 0xff] ^
           shift[2][(value >> 16) & 0xff] ^ shift[3][value >> 24];
  };
  uint64_t lane_0 = crc;
  for (; size >= 3 * kLaneBytes;
       data += 3 * kLaneBytes, size -= 3 * kLaneBytes) {
    uint64_t lane_1 = 0;
    uint64_t lane_2 = 0;
    for (size_t i = 0; i < kLaneBytes; i += 8) {
      lane_0 = _mm_crc32_u64(lane_0, LoadWord(data + i));
      lane_1 = _mm_crc32_u64(lane_1, LoadWord(data + kLaneBytes + i));
      lane_2 = _mm_crc32_u64(lane_2, LoadWord(data + 2 * kLaneBytes + i));
    }
    lane_1 ^= shifted(static_cast<uint32_t>(lane_0));
    lane_0 = lane_2 ^ shifted(static_cast<uint32_t>(lane_1));
  }
  for (; size >= 8; data += 8, size -= 8) {
    lane_0 = _mm_crc32_u64(lane_0, LoadWord(data));
  }
  crc = static_cast<uint32_t>(lane_0);
  for (; size > 0; ++data, --size) crc = _mm_crc32_u8(crc, *data);
  return crc;
}

#endif

}  // namespace

uint32_t ExtendCrc32c(uint32_t crc, const void* data, size_t size_bytes) {
#if defined(__x86_64__)
  static const bool has_instruction = __builtin_cpu_supports("sse4.2");
  if (has_instruction) {
    return ~RemainderByInstruction(~crc, static_cast<const uint8_t*>(data),
                                   size_bytes);
  }
#endif
  return internal::ExtendCrc32cByTable(crc, data, size_bytes);
}

namespace internal {

uint32_t ExtendCrc32cByTable(uint32_t crc, const void* data,
                             size_t size_bytes) {
  return ~RemainderByTable(~crc, static_cast<const uint8_t*>(data), size_bytes);
}

}  // namespace internal
}  // namespace muster
