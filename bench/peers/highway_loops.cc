// Compares vector loops of Muster with the same loops in Highway: Adam's
// update, exp() and tanh(). Prints the CPU time of each, the ratio, and whether
// the results are bit-identical. Highway is not part of the build
// (docs/design/vector_loops.md):
//
//   apt install libhwy-dev
//   clang++ -O2 -std=c++20 -fno-math-errno -I.
//       bench/peers/highway_loops.cc -lhwy -o highway_loops

#include <time.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <vector>

#include "common/compute/functions/update.h"
#include "common/compute/kernels/cpu/vector_math.h"
#include "common/compute/kernels/vectorized.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "bench/peers/highway_loops.cc"
#include "hwy/foreach_target.h"
// Highway requires this order.
#include "hwy/highway.h"
//
#include "hwy/contrib/math/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace highway_loops {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// The counts are multiples of all vector widths.
void Adam(int64_t count, const float* g, float* w, float* m, float* v) {
  const hn::ScalableTag<float> d;
  for (int64_t i = 0; i < count; i += hn::Lanes(d)) {
    const auto gradient = hn::LoadU(d, g + i);
    auto mean = hn::LoadU(d, m + i);
    auto square = hn::LoadU(d, v + i);
    const auto weight = hn::LoadU(d, w + i);
    mean = mean + (gradient - mean) * hn::Set(d, 0.1f);
    square = square + (gradient * gradient - square) * hn::Set(d, 0.001f);
    hn::StoreU(mean, d, m + i);
    hn::StoreU(square, d, v + i);
    hn::StoreU(weight - mean * hn::Set(d, 0.001f) /
                            (hn::Sqrt(square) + hn::Set(d, 1e-7f)),
               d, w + i);
  }
}

void Exp(int64_t count, const float* x, float* y) {
  const hn::ScalableTag<float> d;
  for (int64_t i = 0; i < count; i += hn::Lanes(d)) {
    hn::StoreU(hn::Exp(d, hn::LoadU(d, x + i)), d, y + i);
  }
}

void Tanh(int64_t count, const float* x, float* y) {
  const hn::ScalableTag<float> d;
  for (int64_t i = 0; i < count; i += hn::Lanes(d)) {
    hn::StoreU(hn::Tanh(d, hn::LoadU(d, x + i)), d, y + i);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace highway_loops
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace highway_loops {

HWY_EXPORT(Adam);
HWY_EXPORT(Exp);
HWY_EXPORT(Tanh);

constexpr int64_t kCount = 16384;  // Four arrays fit into the L2 cache.
constexpr int kRepetitions = 200;

struct Arrays {
  std::vector<float> g, w, m, v;
};

Arrays NewArrays() {
  Arrays arrays;
  for (int64_t i = 0; i < kCount; ++i) {
    arrays.g.push_back(-8 + 16.0f * i / kCount);
  }
  arrays.w.assign(kCount, 1);
  arrays.m.assign(kCount, 0.1f);
  arrays.v.assign(kCount, 0.1f);
  return arrays;
}

// The same loop as UpdateEach() in common/compute/optimizers/fused_rule.h.
struct OwnAdam {
  MUSTER_INLINE static void Run(const float* g, float* w, float* m, float* v) {
    const muster::AdamCoefficients<float> coefficients = {
        .alpha = 0.001f,
        .one_minus_beta_1 = 0.1f,
        .one_minus_beta_2 = 0.001f,
        .epsilon = 1e-7f};
    MUSTER_INDEPENDENT_ITERATIONS
    for (int64_t i = 0; i < kCount; ++i) {
      float slots[2] = {m[i], v[i]};
      w[i] = muster::AdamUpdate<false>::Apply(coefficients, g[i], w[i], slots);
      m[i] = slots[0];
      v[i] = slots[1];
    }
  }
};

struct OwnExp {
  MUSTER_INLINE static void Run(const float* x, float* y) {
    MUSTER_INDEPENDENT_ITERATIONS
    for (int64_t i = 0; i < kCount; ++i) y[i] = muster::VectorExp(x[i]);
  }
};

struct OwnTanh {
  MUSTER_INLINE static void Run(const float* x, float* y) {
    MUSTER_INDEPENDENT_ITERATIONS
    for (int64_t i = 0; i < kCount; ++i) y[i] = muster::VectorTanh(x[i]);
  }
};

double CpuSeconds() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return now.tv_sec + now.tv_nsec * 1e-9;
}

// Runs `own` and `highway` alternately.
template <typename Own, typename Highway>
void Compare(const char* name, Own own, Highway highway) {
  Arrays a = NewArrays();
  Arrays b = NewArrays();
  std::vector<double> times;
  std::vector<double> ratios;
  for (int turn = 0; turn < 15; ++turn) {
    const double begin = CpuSeconds();
    for (int i = 0; i < kRepetitions; ++i) own(a);
    const double middle = CpuSeconds();
    for (int i = 0; i < kRepetitions; ++i) highway(b);
    times.push_back((middle - begin) / kRepetitions / kCount * 1e9);
    ratios.push_back((CpuSeconds() - middle) / (middle - begin));
  }
  std::sort(times.begin(), times.end());
  std::sort(ratios.begin(), ratios.end());
  int64_t different = 0;
  for (int64_t i = 0; i < kCount; ++i) different += a.w[i] != b.w[i];
  std::printf(
      "%-5s %.2f ns an element, Highway %.2fx the time, %ld of %ld "
      "elements differ\n",
      name, times[7], ratios[7], static_cast<long>(different),
      static_cast<long>(kCount));
}

}  // namespace highway_loops

int main() {
  using namespace highway_loops;
  using muster::RunVectorized;
  Compare(
      "adam",
      [](Arrays& a) {
        RunVectorized<OwnAdam>(a.g.data(), a.w.data(), a.m.data(), a.v.data());
      },
      [](Arrays& a) {
        HWY_DYNAMIC_DISPATCH(Adam)
        (kCount, a.g.data(), a.w.data(), a.m.data(), a.v.data());
      });
  Compare(
      "exp", [](Arrays& a) { RunVectorized<OwnExp>(a.g.data(), a.w.data()); },
      [](Arrays& a) {
        HWY_DYNAMIC_DISPATCH(Exp)(kCount, a.g.data(), a.w.data());
      });
  Compare(
      "tanh", [](Arrays& a) { RunVectorized<OwnTanh>(a.g.data(), a.w.data()); },
      [](Arrays& a) {
        HWY_DYNAMIC_DISPATCH(Tanh)(kCount, a.g.data(), a.w.data());
      });
  return 0;
}
#endif
