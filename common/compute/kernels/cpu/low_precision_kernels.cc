#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "common/compute/kernels/cpu/register_cpu_kernels.h"
#include "common/compute/kernels/kernel.h"
#include "common/compute/kernels/vectorized.h"
#include "common/core/base/status_macros.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/float16.h"
#include "common/core/tensor/shape.h"
#include "common/core/tensor/tensor.h"

// Computes bfloat16 and float16 with float32 kernels: converts the operands,
// runs the kernel and rounds the results. Used for ops without a kernel of
// their dtype; matrix products have a bfloat16 kernel (matmul_kernels.cc).
namespace muster {
namespace {

using internal::KernelOr;

bool IsLowPrecision(DType dtype) {
  return dtype == DType::kBfloat16 || dtype == DType::kFloat16;
}

// Calls visit.operator()<T>() for a dtype of low precision.
template <typename Visitor>
void VisitLowPrecision(DType dtype, Visitor&& visit) {
  if (dtype == DType::kBfloat16) {
    visit.template operator()<bfloat16>();
  } else {
    visit.template operator()<float16>();
  }
}

template <typename T>
struct Widen {
  MUSTER_INLINE static void Run(int64_t count, const T* in, float* out) {
    MUSTER_INDEPENDENT_ITERATIONS
    for (int64_t i = 0; i < count; ++i) out[i] = static_cast<float>(in[i]);
  }
};

template <typename T>
struct Round {
  MUSTER_INLINE static void Run(int64_t count, const float* in, T* out) {
    MUSTER_INDEPENDENT_ITERATIONS
    for (int64_t i = 0; i < count; ++i) out[i] = T(in[i]);
  }
};

// Fills `out` from the elements of `in` that begin at `begin`.
void WidenInto(const Tensor& in, int64_t begin, Tensor* out) {
  VisitLowPrecision(in.dtype(), [&]<typename T>() {
    RunVectorized<Widen<T>>(out->element_count(), in.flat<T>().data() + begin,
                            out->mutable_flat<float>().data());
  });
}

// Writes all of `in` to the elements of `out` that begin at `begin`.
void RoundInto(const Tensor& in, int64_t begin, Tensor* out) {
  VisitLowPrecision(out->dtype(), [&]<typename T>() {
    RunVectorized<Round<T>>(in.element_count(), in.flat<float>().data(),
                            out->mutable_flat<T>().data() + begin);
  });
}

class WidenKernel : public Kernel {
 public:
  absl::Status Run(const KernelArguments& arguments) override {
    WidenInto(*arguments.inputs[0], 0, arguments.outputs[0]);
    return absl::OkStatus();
  }
};

class RoundKernel : public Kernel {
 public:
  absl::Status Run(const KernelArguments& arguments) override {
    RoundInto(*arguments.inputs[0], 0, arguments.outputs[0]);
    return absl::OkStatus();
  }
};

KernelOr MakeCast(const KernelSpec& spec, int) {
  const DType from = spec.inputs[0].dtype;
  const DType to = spec.outputs[0].dtype;
  if (IsLowPrecision(from) && to == DType::kFloat32) {
    return std::make_unique<WidenKernel>();
  }
  if (from == DType::kFloat32 && IsLowPrecision(to)) {
    return std::make_unique<RoundKernel>();
  }
  return absl::UnimplementedError("other types");
}

TensorType Widened(const TensorType& type) {
  return IsLowPrecision(type.dtype) ? TensorType{DType::kFloat32, type.shape}
                                    : type;
}

KernelSpec Widened(KernelSpec spec) {
  for (TensorType& type : spec.inputs) type = Widened(type);
  for (TensorType& type : spec.outputs) type = Widened(type);
  return spec;
}

// Converts whole tensors.
class WidenedKernel : public Kernel {
 public:
  WidenedKernel(const KernelSpec& spec, std::unique_ptr<Kernel> kernel)
      : spec_(spec), kernel_(std::move(kernel)) {
    for (const TensorType& type : spec.inputs) inputs_.push_back(Room(type));
    for (const TensorType& type : spec.outputs) outputs_.push_back(Room(type));
    input_pointers_.resize(inputs_.size());
    output_pointers_.resize(outputs_.size());
  }

  absl::Status Run(const KernelArguments& arguments) override {
    for (size_t i = 0; i < inputs_.size(); ++i) {
      input_pointers_[i] = arguments.inputs[i];
      if (!inputs_[i].IsValid()) continue;
      WidenInto(*arguments.inputs[i], 0, &inputs_[i]);
      input_pointers_[i] = &inputs_[i];
    }
    for (size_t i = 0; i < outputs_.size(); ++i) {
      output_pointers_[i] =
          outputs_[i].IsValid() ? &outputs_[i] : arguments.outputs[i];
    }
    KernelArguments widened = arguments;
    widened.inputs = input_pointers_;
    widened.outputs = output_pointers_;
    RETURN_IF_ERROR(kernel_->Run(widened));
    for (size_t i = 0; i < outputs_.size(); ++i) {
      if (!outputs_[i].IsValid()) continue;
      RoundInto(outputs_[i], 0, arguments.outputs[i]);
    }
    return absl::OkStatus();
  }

  size_t scratch_bytes() const override { return kernel_->scratch_bytes(); }

  // The kernel reads the whole input before it writes the output.
  bool MayShareOutputWithInput(int input) const override {
    return outputs_.size() == 1 && spec_.inputs[input] == spec_.outputs[0] &&
           IsLowPrecision(spec_.outputs[0].dtype);
  }

 private:
  // Returns an invalid tensor for operands that need no conversion.
  static Tensor Room(const TensorType& type) {
    return IsLowPrecision(type.dtype) ? Tensor(DType::kFloat32, type.shape)
                                      : Tensor();
  }

  const KernelSpec spec_;
  const std::unique_ptr<Kernel> kernel_;
  std::vector<Tensor> inputs_;
  std::vector<Tensor> outputs_;
  std::vector<const Tensor*> input_pointers_;
  std::vector<Tensor*> output_pointers_;
};

// Converts blocks that fit into the L1 cache.
class BlockedKernel : public Kernel {
 public:
  static constexpr int64_t kBlockSize = 2048;

  BlockedKernel(size_t input_count, int64_t count,
                std::unique_ptr<Kernel> block, std::unique_ptr<Kernel> rest)
      : count_(count),
        block_(input_count, kBlockSize, std::move(block)),
        rest_(input_count, count % kBlockSize, std::move(rest)) {}

  absl::Status Run(const KernelArguments& arguments) override {
    int64_t begin = 0;
    for (; begin + kBlockSize <= count_; begin += kBlockSize) {
      RETURN_IF_ERROR(block_.Run(arguments, begin));
    }
    return begin < count_ ? rest_.Run(arguments, begin) : absl::OkStatus();
  }

  bool MayShareOutputWithInput(int) const override { return true; }

 private:
  struct Block {
    Block(size_t input_count, int64_t size, std::unique_ptr<Kernel> kernel)
        : kernel(std::move(kernel)),
          output(DType::kFloat32, {size}),
          output_pointer(&output) {
      for (size_t i = 0; i < input_count; ++i) {
        inputs.emplace_back(DType::kFloat32, Shape{size});
      }
      for (const Tensor& input : inputs) input_pointers.push_back(&input);
    }
    Block(const Block&) = delete;
    Block& operator=(const Block&) = delete;

    absl::Status Run(const KernelArguments& arguments, int64_t begin) {
      for (size_t i = 0; i < inputs.size(); ++i) {
        WidenInto(*arguments.inputs[i], begin, &inputs[i]);
      }
      KernelArguments widened = arguments;
      widened.inputs = input_pointers;
      widened.outputs = {&output_pointer, 1};
      RETURN_IF_ERROR(kernel->Run(widened));
      RoundInto(output, begin, arguments.outputs[0]);
      return absl::OkStatus();
    }

    const std::unique_ptr<Kernel> kernel;
    std::vector<Tensor> inputs;
    Tensor output;
    std::vector<const Tensor*> input_pointers;
    Tensor* output_pointer;
  };

  const int64_t count_;
  Block block_;
  Block rest_;
};

bool HasLowPrecision(const std::vector<TensorType>& types) {
  return std::any_of(types.begin(), types.end(), [](const TensorType& type) {
    return IsLowPrecision(type.dtype);
  });
}

// True if all operands have the shape of the output.
bool IsFlat(const KernelSpec& spec) {
  return spec.is_elementwise &&
         std::all_of(
             spec.inputs.begin(), spec.inputs.end(),
             [&](const TensorType& type) { return type == spec.outputs[0]; });
}

KernelOr MakeWidened(const KernelRegistry& registry, const KernelSpec& spec,
                     int thread_count) {
  if (!spec.widens_low_precision ||
      (!HasLowPrecision(spec.inputs) && !HasLowPrecision(spec.outputs))) {
    return absl::UnimplementedError("no operand of low precision");
  }
  const auto create = [&](int64_t count) {
    KernelSpec block = Widened(spec);
    for (TensorType& type : block.inputs) type.shape = {count};
    block.outputs[0].shape = {count};
    return registry.Create(block, thread_count);
  };
  if (IsFlat(spec)) {
    const int64_t count = spec.outputs[0].shape.element_count();
    ASSIGN_OR_RETURN(auto block, create(BlockedKernel::kBlockSize));
    ASSIGN_OR_RETURN(auto rest, create(count % BlockedKernel::kBlockSize));
    return std::make_unique<BlockedKernel>(spec.inputs.size(), count,
                                           std::move(block), std::move(rest));
  }
  ASSIGN_OR_RETURN(auto kernel, registry.Create(Widened(spec), thread_count));
  return std::make_unique<WidenedKernel>(spec, std::move(kernel));
}

}  // namespace

namespace internal {

void RegisterCpuLowPrecisionKernels(KernelRegistry* registry) {
  for (const std::string& op : registry->ops()) {
    registry->Register(op,
                       [registry](const KernelSpec& spec, int thread_count) {
                         return MakeWidened(*registry, spec, thread_count);
                       });
  }
  registry->Register("Cast", MakeCast);
}

}  // namespace internal
}  // namespace muster
