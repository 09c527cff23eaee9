#ifndef COMMON_CORE_TENSOR_FLOAT16_H_
#define COMMON_CORE_TENSOR_FLOAT16_H_

#include "common/core/base/host_device.h"

namespace muster {

// The two 16-bit floating formats: storage and conversions, without arithmetic.
// Conversions from float round to nearest even. Device kernels use them too.

// The upper half of a float32: 8 exponent bits, 7 mantissa bits.
struct bfloat16 {
  uint16_t bits = 0;

  bfloat16() = default;
  MUSTER_HOST_DEVICE explicit bfloat16(float value) {
    const uint32_t wide = BitCast<uint32_t>(value);
    if ((wide & 0x7fffffff) > 0x7f800000) {
      bits = static_cast<uint16_t>(wide >> 16) | 0x40;  // Keep NaN a NaN.
    } else {
      bits = static_cast<uint16_t>((wide + 0x7fff + ((wide >> 16) & 1)) >> 16);
    }
  }
  MUSTER_HOST_DEVICE explicit operator float() const {
    return BitCast<float>(uint32_t{bits} << 16);
  }
};

// IEEE 754 binary16: 5 exponent bits, 10 mantissa bits.
struct float16 {
  uint16_t bits = 0;

  float16() = default;
  MUSTER_HOST_DEVICE explicit float16(float value) {
    const uint32_t wide = BitCast<uint32_t>(value);
    const uint16_t sign = static_cast<uint16_t>((wide >> 16) & 0x8000);
    const uint32_t magnitude = wide & 0x7fffffff;
    if (magnitude > 0x7f800000) {
      bits = sign | 0x7e00;
    } else if (magnitude >= 0x477ff000) {  // Rounds to 65536 or more.
      bits = sign | 0x7c00;
    } else if (magnitude < 0x38800000) {  // Subnormal, or zero.
      // Adding 0.5 moves the 10 remaining bits to the end of the mantissa and
      // lets the hardware round.
      const float shifted = BitCast<float>(magnitude) + 0.5f;
      bits =
          sign | static_cast<uint16_t>(BitCast<uint32_t>(shifted) - 0x3f000000);
    } else {
      const uint32_t rounded =
          magnitude + 0xfff + ((magnitude >> 13) & 1) - 0x38000000;
      bits = sign | static_cast<uint16_t>(rounded >> 13);
    }
  }
  MUSTER_HOST_DEVICE explicit operator float() const {
    const uint32_t sign = uint32_t{bits & 0x8000u} << 16;
    const uint32_t exponent = (bits >> 10) & 0x1f;
    const uint32_t mantissa = bits & 0x3ff;
    if (exponent == 0) {  // mantissa * 2^-24
      const float magnitude = static_cast<float>(mantissa) * 0x1.0p-24f;
      return BitCast<float>(BitCast<uint32_t>(magnitude) | sign);
    }
    const uint32_t wide_exponent = exponent == 0x1f ? 0xff : exponent + 112;
    return BitCast<float>(sign | wide_exponent << 23 | mantissa << 13);
  }
};

}  // namespace muster

#endif  // COMMON_CORE_TENSOR_FLOAT16_H_
