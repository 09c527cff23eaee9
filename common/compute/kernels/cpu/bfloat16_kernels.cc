#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/compute/kernels/cpu/register.h"
#include "common/compute/kernels/cpu/vectorized.h"
#include "common/compute/kernels/kernel.h"
#include "common/core/base/status_macros.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/float16.h"
#include "common/core/tensor/shape.h"
#include "common/core/tensor/tensor.h"

// Computes bfloat16 with float32 kernels: converts the operands, runs the
// kernel and rounds the results. For ops without a bfloat16 kernel; matrix
// products have one (matmul_kernels.cc).
namespace muster {
namespace {

using KernelOr = absl::StatusOr<std::unique_ptr<Kernel>>;

struct Widen {
  MUSTER_INLINE static void Run(int64_t count, const bfloat16* in, float* out) {
    MUSTER_INDEPENDENT_ITERATIONS
    for (int64_t i = 0; i < count; ++i) out[i] = static_cast<float>(in[i]);
  }
};

struct Round {
  MUSTER_INLINE static void Run(int64_t count, const float* in, bfloat16* out) {
    MUSTER_INDEPENDENT_ITERATIONS
    for (int64_t i = 0; i < count; ++i) out[i] = bfloat16(in[i]);
  }
};

void WidenInto(const bfloat16* in, Tensor* out) {
  RunVectorized<Widen>(out->element_count(), in,
                       out->mutable_flat<float>().data());
}

void RoundInto(const Tensor& in, bfloat16* out) {
  RunVectorized<Round>(in.element_count(), in.flat<float>().data(), out);
}

class WidenKernel : public Kernel {
 public:
  absl::Status Run(const KernelArguments& arguments) override {
    WidenInto(arguments.inputs[0]->flat<bfloat16>().data(),
              arguments.outputs[0]);
    return absl::OkStatus();
  }
};

class RoundKernel : public Kernel {
 public:
  absl::Status Run(const KernelArguments& arguments) override {
    RoundInto(*arguments.inputs[0],
              arguments.outputs[0]->mutable_flat<bfloat16>().data());
    return absl::OkStatus();
  }
};

KernelOr MakeCast(const KernelSpec& spec, int) {
  const DType from = spec.inputs[0].dtype;
  const DType to = spec.outputs[0].dtype;
  if (from == DType::kBfloat16 && to == DType::kFloat32) {
    return std::make_unique<WidenKernel>();
  }
  if (from == DType::kFloat32 && to == DType::kBfloat16) {
    return std::make_unique<RoundKernel>();
  }
  return absl::UnimplementedError("other types");
}

TensorType Widened(const TensorType& type) {
  return type.dtype == DType::kBfloat16
             ? TensorType{DType::kFloat32, type.shape}
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
      WidenInto(arguments.inputs[i]->flat<bfloat16>().data(), &inputs_[i]);
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
      RoundInto(outputs_[i],
                arguments.outputs[i]->mutable_flat<bfloat16>().data());
    }
    return absl::OkStatus();
  }

  size_t scratch_bytes() const override { return kernel_->scratch_bytes(); }

  // The input is read completely before anything is written.
  bool MayShareOutputWithInput(int input) const override {
    return outputs_.size() == 1 && spec_.inputs[input] == spec_.outputs[0] &&
           spec_.outputs[0].dtype == DType::kBfloat16;
  }

 private:
  // Invalid for operands that need no conversion.
  static Tensor Room(const TensorType& type) {
    return type.dtype == DType::kBfloat16 ? Tensor(DType::kFloat32, type.shape)
                                          : Tensor();
  }

  const KernelSpec spec_;
  const std::unique_ptr<Kernel> kernel_;
  std::vector<Tensor> inputs_;
  std::vector<Tensor> outputs_;
  std::vector<const Tensor*> input_pointers_;
  std::vector<Tensor*> output_pointers_;
};

// Converts blocks that stay in the L1 cache.
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
        WidenInto(arguments.inputs[i]->flat<bfloat16>().data() + begin,
                  &inputs[i]);
      }
      KernelArguments widened = arguments;
      widened.inputs = input_pointers;
      widened.outputs = {&output_pointer, 1};
      RETURN_IF_ERROR(kernel->Run(widened));
      RoundInto(output,
                arguments.outputs[0]->mutable_flat<bfloat16>().data() + begin);
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

bool HasBfloat16(const std::vector<TensorType>& types) {
  return std::any_of(types.begin(), types.end(), [](const TensorType& type) {
    return type.dtype == DType::kBfloat16;
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
  if (!spec.widens_bfloat16 ||
      (!HasBfloat16(spec.inputs) && !HasBfloat16(spec.outputs))) {
    return absl::UnimplementedError("no bfloat16 operand");
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

void RegisterCpuBfloat16Kernels(KernelRegistry* registry) {
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
