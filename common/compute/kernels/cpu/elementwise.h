#ifndef COMMON_COMPUTE_KERNELS_CPU_ELEMENTWISE_H_
#define COMMON_COMPUTE_KERNELS_CPU_ELEMENTWISE_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "common/compute/kernels/cpu/broadcast.h"
#include "common/compute/kernels/cpu/intra_op_threads.h"
#include "common/compute/kernels/kernel.h"
#include "common/compute/kernels/vectorized.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/tensor.h"

// Kernels that apply a function to one, two or three elements. The function is
// an object whose operator() is MUSTER_INLINE.
namespace muster {

// True if an elementwise kernel reads the input in the order in which it writes
// the output, so that both may share memory.
inline bool IsWalkedAlike(const TensorType& input, const TensorType& output) {
  return input.shape == output.shape &&
         SizeOf(input.dtype) == SizeOf(output.dtype);
}

// Calls body(begin, end) for parts of [0, count), on several threads if each
// part is large enough to fill the L2 cache.
template <typename Body>
void ForEachPart(int thread_count, int64_t count, Body body) {
  constexpr int64_t kPartMin = 1 << 18;
  const int threads =
      static_cast<int>(std::min<int64_t>(thread_count, count / kPartMin));
  if (threads <= 1) {
    body(int64_t{0}, count);
    return;
  }
  RunParts(threads, [&](int part) {
    // Parts begin at cache lines.
    const auto part_begin = [&](int i) {
      return i == threads ? count : count / threads * i / 64 * 64;
    };
    body(part_begin(part), part_begin(part + 1));
  });
}

namespace internal {

// The code that the kernels of all functions and types share, so that it is
// compiled once.
class UnaryKernelBase : public Kernel {
 public:
  UnaryKernelBase(const KernelSpec& spec, int thread_count);

  absl::Status Run(const KernelArguments& arguments) final;
  bool MayShareOutputWithInput(int) const final { return may_share_; }

 private:
  virtual void Compute(int64_t count, const uint8_t* in,
                       uint8_t* out) const = 0;

  const int thread_count_;
  const size_t in_size_;
  const size_t out_size_;
  const bool may_share_;
};

class BinaryKernelBase : public Kernel {
 public:
  BinaryKernelBase(const KernelSpec& spec, int thread_count);

  absl::Status Run(const KernelArguments& arguments) final;
  bool MayShareOutputWithInput(int input) const final {
    return may_share_[input];
  }

 private:
  // Compute `count` elements. Operands that the function's name includes have
  // `count` elements, the other operand has one.
  virtual void ComputeBoth(int64_t count, const uint8_t* a, const uint8_t* b,
                           uint8_t* out) const = 0;
  virtual void ComputeFirst(int64_t count, const uint8_t* a, const uint8_t* b,
                            uint8_t* out) const = 0;
  virtual void ComputeSecond(int64_t count, const uint8_t* a, const uint8_t* b,
                             uint8_t* out) const = 0;

  const int thread_count_;
  const size_t in_size_;
  const size_t out_size_;
  const BroadcastWalk walk_;
  const bool may_share_[2];
};

// Registers kernels for an op with `input_count` inputs of type `in` and an
// output of type `out`.
using MakeElementwise = std::function<std::unique_ptr<Kernel>(
    const KernelSpec& spec, int thread_count)>;
void RegisterElementwise(KernelRegistry* registry, absl::string_view op,
                         int input_count, DType in, DType out,
                         MakeElementwise make);

}  // namespace internal

template <typename F, typename In, typename Out>
class UnaryKernel : public internal::UnaryKernelBase {
 public:
  UnaryKernel(F f, const KernelSpec& spec, int thread_count = 1)
      : UnaryKernelBase(spec, thread_count), f_(f) {}

 private:
  struct Loop {
    MUSTER_INLINE static void Run(F f, int64_t count, const In* in, Out* out) {
      MUSTER_INDEPENDENT_ITERATIONS
      for (int64_t i = 0; i < count; ++i) out[i] = f(in[i]);
    }
  };

  void Compute(int64_t count, const uint8_t* in, uint8_t* out) const override {
    RunVectorized<Loop>(f_, count, reinterpret_cast<const In*>(in),
                        reinterpret_cast<Out*>(out));
  }

  const F f_;
};

template <typename F, typename In, typename Out>
class BinaryKernel : public internal::BinaryKernelBase {
 public:
  BinaryKernel(F f, const KernelSpec& spec, int thread_count = 1)
      : BinaryKernelBase(spec, thread_count), f_(f) {}

 private:
  struct Both {
    MUSTER_INLINE static void Run(F f, int64_t count, const In* a, const In* b,
                                  Out* out) {
      MUSTER_INDEPENDENT_ITERATIONS
      for (int64_t i = 0; i < count; ++i) out[i] = f(a[i], b[i]);
    }
  };
  struct First {
    MUSTER_INLINE static void Run(F f, int64_t count, const In* a, In b,
                                  Out* out) {
      MUSTER_INDEPENDENT_ITERATIONS
      for (int64_t i = 0; i < count; ++i) out[i] = f(a[i], b);
    }
  };
  struct Second {
    MUSTER_INLINE static void Run(F f, int64_t count, In a, const In* b,
                                  Out* out) {
      MUSTER_INDEPENDENT_ITERATIONS
      for (int64_t i = 0; i < count; ++i) out[i] = f(a, b[i]);
    }
  };

  static const In* Elements(const uint8_t* data) {
    return reinterpret_cast<const In*>(data);
  }

  void ComputeBoth(int64_t count, const uint8_t* a, const uint8_t* b,
                   uint8_t* out) const override {
    RunVectorized<Both>(f_, count, Elements(a), Elements(b),
                        reinterpret_cast<Out*>(out));
  }
  void ComputeFirst(int64_t count, const uint8_t* a, const uint8_t* b,
                    uint8_t* out) const override {
    RunVectorized<First>(f_, count, Elements(a), *Elements(b),
                         reinterpret_cast<Out*>(out));
  }
  void ComputeSecond(int64_t count, const uint8_t* a, const uint8_t* b,
                     uint8_t* out) const override {
    RunVectorized<Second>(f_, count, *Elements(a), Elements(b),
                          reinterpret_cast<Out*>(out));
  }

  const F f_;
};

// Registers `K<F, In, Out>` for an op whose inputs [0, input_count) have type
// In and whose output has type Out. F is the type of make_function(attributes).
template <template <typename, typename, typename> typename K, typename In,
          typename Out, typename MakeFunction>
void RegisterElementwise(KernelRegistry* registry, absl::string_view op,
                         int input_count, MakeFunction make_function) {
  internal::RegisterElementwise(
      registry, op, input_count, DTypeOf<In>(), DTypeOf<Out>(),
      [make_function](const KernelSpec& spec,
                      int thread_count) -> std::unique_ptr<Kernel> {
        using F = decltype(make_function(spec.attributes));
        return std::make_unique<K<F, In, Out>>(make_function(spec.attributes),
                                               spec, thread_count);
      });
}

}  // namespace muster

#endif  // COMMON_COMPUTE_KERNELS_CPU_ELEMENTWISE_H_
