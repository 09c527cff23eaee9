#include "common/core/base/hashes.h"

#include <nmmintrin.h>

#include <array>
#include <bit>
#include <cstddef>
#include <cstring>
#include <utility>

#if defined(__x86_64__)
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

namespace {

static_assert(std::endian::native == std::endian::little,
              "words are read as they lie in memory");

constexpr uint64_t kFactor0 = 0xc3a5c85c97cb3127;
constexpr uint64_t kFactor1 = 0xb492b66fbe98f273;
constexpr uint64_t kFactor2 = 0x9ae16a3b2f90404f;

template <typename Word>
Word Load(const char* bytes) {
  Word word;
  std::memcpy(&word, bytes, sizeof(word));
  return word;
}

uint64_t Load64(const char* bytes) { return Load<uint64_t>(bytes); }

uint64_t FoldHigh(uint64_t x) { return x ^ (x >> 47); }

// Mixes two words into one.
uint64_t Mix(uint64_t u, uint64_t v, uint64_t factor) {
  const uint64_t first = FoldHigh((u ^ v) * factor);
  return FoldHigh((v ^ first) * factor) * factor;
}

uint64_t HashUpTo16(const char* bytes, size_t size) {
  const uint64_t factor = kFactor2 + size * 2;
  if (size >= 8) {
    const uint64_t a = Load64(bytes) + kFactor2;
    const uint64_t b = Load64(bytes + size - 8);
    return Mix(std::rotr(b, 37) * factor + a, (std::rotr(a, 25) + b) * factor,
               factor);
  }
  if (size >= 4) {
    const uint64_t a = Load<uint32_t>(bytes);
    return Mix(size + (a << 3), Load<uint32_t>(bytes + size - 4), factor);
  }
  if (size == 0) return kFactor2;
  const auto byte = [&](size_t i) {
    return static_cast<uint32_t>(static_cast<uint8_t>(bytes[i]));
  };
  const uint32_t y = byte(0) + (byte(size / 2) << 8);
  const uint32_t z = static_cast<uint32_t>(size) + (byte(size - 1) << 2);
  return FoldHigh(y * kFactor2 ^ z * kFactor0) * kFactor2;
}

uint64_t HashUpTo32(const char* bytes, size_t size) {
  const uint64_t factor = kFactor2 + size * 2;
  const uint64_t a = Load64(bytes) * kFactor1;
  const uint64_t b = Load64(bytes + 8);
  const uint64_t c = Load64(bytes + size - 8) * factor;
  const uint64_t d = Load64(bytes + size - 16) * kFactor2;
  return Mix(std::rotr(a + b, 43) + std::rotr(c, 30) + d,
             a + std::rotr(b + kFactor2, 18) + c, factor);
}

uint64_t HashUpTo64(const char* bytes, size_t size) {
  const uint64_t factor = kFactor2 + size * 2;
  const uint64_t a = Load64(bytes) * kFactor2;
  const uint64_t b = Load64(bytes + 8);
  const uint64_t c = Load64(bytes + size - 8) * factor;
  const uint64_t d = Load64(bytes + size - 16) * kFactor2;
  const uint64_t y = std::rotr(a + b, 43) + std::rotr(c, 30) + d;
  const uint64_t z = Mix(y, a + std::rotr(b + kFactor2, 18) + c, factor);
  const uint64_t e = Load64(bytes + 16) * factor;
  const uint64_t f = Load64(bytes + 24);
  const uint64_t g = (y + Load64(bytes + size - 32)) * factor;
  const uint64_t h = (z + Load64(bytes + size - 24)) * factor;
  return Mix(std::rotr(e + f, 43) + std::rotr(g, 30) + h,
             e + std::rotr(f + a, 18) + g, factor);
}

struct Pair {
  uint64_t first = 0;
  uint64_t second = 0;
};

// Mixes 32 bytes into two words.
Pair MixBlock(const char* bytes, uint64_t a, uint64_t b) {
  const uint64_t x = Load64(bytes + 8);
  const uint64_t y = Load64(bytes + 16);
  const uint64_t z = Load64(bytes + 24);
  a += Load64(bytes);
  b = std::rotr(b + a + z, 21);
  const uint64_t start = a;
  a += x + y;
  b += std::rotr(a, 44);
  return {a + z, b + start};
}

// The state of a hash of more than 64 bytes.
struct LongHash {
  uint64_t x = 0;
  uint64_t y = 0;
  uint64_t z = 0;
  Pair v;
  Pair w;

  // Mixes 64 bytes in. The last block uses different factors.
  void Add(const char* bytes, uint64_t factor, uint64_t w_factor,
           uint64_t v_factor) {
    x = std::rotr(x + y + v.first + Load64(bytes + 8), 37) * factor;
    y = std::rotr(y + v.second + Load64(bytes + 48), 42) * factor;
    x ^= w.second * w_factor;
    y += v.first * v_factor + Load64(bytes + 40);
    z = std::rotr(z + w.first, 33) * factor;
    v = MixBlock(bytes, v.second * factor, x + w.first);
    w = MixBlock(bytes + 32, z + w.second, y + Load64(bytes + 16));
    std::swap(z, x);
  }
};

uint64_t HashLong(const char* bytes, size_t size) {
  constexpr uint64_t kSeed = 81;
  LongHash hash;
  hash.x = kSeed * kFactor2 + Load64(bytes);
  hash.y = kSeed * kFactor1 + 113;
  hash.z = FoldHigh(hash.y * kFactor2 + 113) * kFactor2;
  const size_t rest = (size - 1) & 63;
  const char* const end = bytes + (size - 1 - rest);
  for (const char* block = bytes; block != end; block += 64) {
    hash.Add(block, kFactor1, 1, 1);
  }
  const uint64_t factor = kFactor1 + ((hash.z & 0xff) << 1);
  hash.w.first += rest;
  hash.v.first += hash.w.first;
  hash.w.first += hash.v.first;
  // The last 64 bytes overlap the block before.
  hash.Add(bytes + size - 64, factor, 9, 9);
  return Mix(Mix(hash.v.first, hash.w.first, factor) +
                 FoldHigh(hash.y) * kFactor0 + hash.z,
             Mix(hash.v.second, hash.w.second, factor) + hash.x, factor);
}

struct SipState {
  uint64_t v0;
  uint64_t v1;
  uint64_t v2;
  uint64_t v3;

  void Round() {
    v0 += v1;
    v2 += v3;
    v1 = std::rotl(v1, 13) ^ v0;
    v3 = std::rotl(v3, 16) ^ v2;
    v0 = std::rotl(v0, 32);
    v2 += v1;
    v0 += v3;
    v1 = std::rotl(v1, 17) ^ v2;
    v3 = std::rotl(v3, 21) ^ v0;
    v2 = std::rotl(v2, 32);
  }
  void Add(uint64_t word) {
    v3 ^= word;
    Round();
    Round();
    v0 ^= word;
  }
};

}  // namespace

uint64_t Fingerprint64(absl::string_view bytes) {
  if (bytes.size() <= 16) return HashUpTo16(bytes.data(), bytes.size());
  if (bytes.size() <= 32) return HashUpTo32(bytes.data(), bytes.size());
  if (bytes.size() <= 64) return HashUpTo64(bytes.data(), bytes.size());
  return HashLong(bytes.data(), bytes.size());
}

uint64_t CombinedFingerprint(uint64_t first, uint64_t second) {
  // MurmurHash's, as in TensorFlow.
  constexpr uint64_t kFactor = 0xC6A4A7935BD1E995u;
  const uint64_t mixed = FoldHigh(second * kFactor) * kFactor;
  return FoldHigh(FoldHigh(((first ^ kFactor) ^ mixed) * kFactor) * kFactor);
}

uint64_t SipHash(const SipHashKey& key, absl::string_view bytes) {
  SipState state = {.v0 = key.low ^ 0x736f6d6570736575,
                    .v1 = key.high ^ 0x646f72616e646f6d,
                    .v2 = key.low ^ 0x6c7967656e657261,
                    .v3 = key.high ^ 0x7465646279746573};
  size_t i = 0;
  for (; i + 8 <= bytes.size(); i += 8) state.Add(Load64(bytes.data() + i));
  uint64_t last = static_cast<uint64_t>(bytes.size()) << 56;
  if (i < bytes.size()) std::memcpy(&last, bytes.data() + i, bytes.size() - i);
  state.Add(last);
  state.v2 ^= 0xff;
  for (int round = 0; round < 4; ++round) state.Round();
  return state.v0 ^ state.v1 ^ state.v2 ^ state.v3;
}

}  // namespace muster
