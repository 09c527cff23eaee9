#ifndef COMMON_COMPUTE_KERNELS_CPU_ELEMENTWISE_H_
#define COMMON_COMPUTE_KERNELS_CPU_ELEMENTWISE_H_

#include <algorithm>
#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/compute/kernels/cpu/broadcast.h"
#include "common/compute/kernels/cpu/intra_op_threads.h"
#include "common/compute/kernels/cpu/vectorized.h"
#include "common/compute/kernels/kernel.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/tensor.h"

// Kernels made from a function of one, two or three elements. The function is
// an object whose operator() is MUSTER_INLINE.
namespace muster {

// True if an elementwise kernel reads the input in the order in which it writes
// the output, so that both may share memory.
inline bool IsWalkedAlike(const TensorType& input, const TensorType& output) {
  return input.shape == output.shape &&
         SizeOf(input.dtype) == SizeOf(output.dtype);
}

// Calls body(begin, end) for parts of [0, count), on several threads if parts
// are large enough: a part fills the L2 cache.
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

template <typename F, typename In, typename Out>
class UnaryKernel : public Kernel {
 public:
  UnaryKernel(F f, const KernelSpec& spec, int thread_count = 1)
      : f_(f),
        thread_count_(thread_count),
        may_share_(IsWalkedAlike(spec.inputs[0], spec.outputs[0])) {}

  absl::Status Run(const KernelArguments& arguments) override {
    const auto in = arguments.inputs[0]->flat<In>();
    const auto out = arguments.outputs[0]->mutable_flat<Out>();
    ForEachPart(thread_count_, static_cast<int64_t>(in.size()),
                [&](int64_t begin, int64_t end) {
                  RunVectorized<Loop>(f_, end - begin, in.data() + begin,
                                      out.data() + begin);
                });
    return absl::OkStatus();
  }
  bool MayShareOutputWithInput(int) const override { return may_share_; }

 private:
  struct Loop {
    MUSTER_INLINE static void Run(F f, int64_t count, const In* in, Out* out) {
      MUSTER_INDEPENDENT_ITERATIONS
      for (int64_t i = 0; i < count; ++i) out[i] = f(in[i]);
    }
  };

  const F f_;
  const int thread_count_;
  const bool may_share_;
};

template <typename F, typename In, typename Out>
class BinaryKernel : public Kernel {
 public:
  BinaryKernel(F f, const KernelSpec& spec, int thread_count = 1)
      : f_(f),
        thread_count_(thread_count),
        walk_(spec.outputs[0].shape,
              {&spec.inputs[0].shape, &spec.inputs[1].shape}),
        may_share_{IsWalkedAlike(spec.inputs[0], spec.outputs[0]),
                   IsWalkedAlike(spec.inputs[1], spec.outputs[0])} {}

  absl::Status Run(const KernelArguments& arguments) override {
    const In* const a = arguments.inputs[0]->flat<In>().data();
    const In* const b = arguments.inputs[1]->flat<In>().data();
    Out* const out = arguments.outputs[0]->mutable_flat<Out>().data();
    const int64_t length = walk_.run_length();
    const bool a_moves = walk_.run_stride(0) != 0;
    const bool b_moves = walk_.run_stride(1) != 0;
    walk_.ForEachRun([&](int64_t begin, const int64_t* offsets) {
      if (a_moves && b_moves) {
        ForEachPart(thread_count_, length, [&](int64_t first, int64_t last) {
          RunVectorized<Both>(f_, last - first, a + offsets[0] + first,
                              b + offsets[1] + first, out + begin + first);
        });
      } else if (a_moves) {
        RunVectorized<First>(f_, length, a + offsets[0], b[offsets[1]],
                             out + begin);
      } else {
        RunVectorized<Second>(f_, length, a[offsets[0]], b + offsets[1],
                              out + begin);
      }
    });
    return absl::OkStatus();
  }
  bool MayShareOutputWithInput(int input) const override {
    return may_share_[input];
  }

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
  // Also if neither advances: the run then has one element.
  struct Second {
    MUSTER_INLINE static void Run(F f, int64_t count, In a, const In* b,
                                  Out* out) {
      MUSTER_INDEPENDENT_ITERATIONS
      for (int64_t i = 0; i < count; ++i) out[i] = f(a, b[i]);
    }
  };

  const F f_;
  const int thread_count_;
  const BroadcastWalk walk_;
  const bool may_share_[2];
};

// Registers `K<F, In, Out>` for an op whose inputs [0, input_count) have type
// In and whose output has type Out.
template <template <typename, typename, typename> typename K, typename In,
          typename Out, typename MakeFunction>
void RegisterElementwise(KernelRegistry* registry, absl::string_view op,
                         int input_count, MakeFunction make_function) {
  registry->Register(
      op,
      [=](const KernelSpec& spec,
          int thread_count) -> absl::StatusOr<std::unique_ptr<Kernel>> {
        bool fits = static_cast<int>(spec.inputs.size()) == input_count &&
                    spec.outputs[0].dtype == DTypeOf<Out>();
        for (const TensorType& input : spec.inputs) {
          fits = fits && input.dtype == DTypeOf<In>();
        }
        if (!fits) return absl::UnimplementedError("other types");
        using F = decltype(make_function(spec.attributes));
        return std::make_unique<K<F, In, Out>>(
            make_function(spec.attributes), spec,
            IntraOpThreadCount(thread_count));
      });
}

}  // namespace muster

#endif  // COMMON_COMPUTE_KERNELS_CPU_ELEMENTWISE_H_
