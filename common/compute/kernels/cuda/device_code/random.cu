// Random numbers with the same bits as those of the host's kernels.

#include "common/compute/kernels/cuda/device_code/device_functions.h"
#include "common/compute/kernels/cuda/device_code/kernel_parameters.h"
#include "common/core/base/philox.h"
#include "common/core/device/device_language.h"

namespace muster::internal {
namespace {

// 5% of normal numbers lie outside of two standard deviations, so the
// probability that all attempts fail is 1e-43.
constexpr int kTruncationAttemptsMax = 32;

// Uses no more bits than the type has, so that the result stays in [0, 1) after
// rounding.
__device__ float UniformFor(ElementType type, uint32_t bits) {
  if (type == ElementType::kBfloat16) {
    return static_cast<float>(bits >> 24) * 0x1p-8f;
  }
  if (type == ElementType::kFloat16) {
    return static_cast<float>(bits >> 21) * 0x1p-11f;
  }
  return muster::UniformOf(bits);
}

__device__ float TruncatedNormalAt(uint64_t key, uint64_t position) {
  for (int attempt = 0; attempt < kTruncationAttemptsMax; ++attempt) {
    const PhiloxWords words = PhiloxAt(key, position, attempt);
    for (int i = 0; i < 4; i += 2) {
      const NormalPair pair = NormalsOf(words.word[i], words.word[i + 1]);
      if (fabsf(pair.first) < 2) return pair.first;
      if (fabsf(pair.second) < 2) return pair.second;
    }
  }
  return 0;
}

}  // namespace
}  // namespace muster::internal

using namespace muster::internal;  // NOLINT

extern "C" __global__ void draw_random(
    const __grid_constant__ RandomParameters p) {
  AwaitPrecedingKernel();
  const int64_t i = GlobalThread();
  if (i >= p.count) return;
  const uint64_t key = muster::FoldInWord(static_cast<uint64_t>(p.seed[0]),
                                          static_cast<uint64_t>(p.seed[1]));
  const uint64_t position = p.first + static_cast<uint64_t>(i);
  if (p.distribution == Distribution::kTruncatedNormal) {
    StoreElement(p.to, i, TruncatedNormalAt(key, position));
    return;
  }
  // Each position of the generator yields four numbers.
  const muster::PhiloxWords words = muster::PhiloxAt(key, position / 4, 0);
  const int which = static_cast<int>(position % 4);
  // Selects without an index, because an index would move the words from
  // registers to memory.
  const uint32_t low = which < 2 ? words.word[0] : words.word[2];
  const uint32_t high = which < 2 ? words.word[1] : words.word[3];
  float drawn;
  if (p.distribution == Distribution::kUniform) {
    drawn = UniformFor(p.to.type, which % 2 == 0 ? low : high);
  } else {
    const muster::NormalPair pair = muster::NormalsOf(low, high);
    drawn = which % 2 == 0 ? pair.first : pair.second;
  }
  StoreElement(p.to, i, drawn);
}

extern "C" __global__ void make_seed(const __grid_constant__ SeedParameters p) {
  AwaitPrecedingKernel();
  if (p.from == nullptr) {
    p.to[0] = static_cast<int64_t>(p.data);
    p.to[1] = 0;
    return;
  }
  const int64_t second = p.from[1];
  p.to[0] = static_cast<int64_t>(
      muster::FoldInWord(static_cast<uint64_t>(p.from[0]), p.data));
  p.to[1] = second;
}

MUSTER_SIMULATED_KERNELS(random, MUSTER_PLAIN_KERNEL(draw_random),
                         MUSTER_PLAIN_KERNEL(make_seed))
