#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/base/status_macros.h"
#include "common/kernels/cpu/intra_op_threads.h"
#include "common/kernels/cpu/onednn.h"
#include "common/kernels/cpu/register.h"
#include "common/kernels/cpu/vectorized.h"
#include "common/kernels/kernel.h"
#include "common/tensor/attributes.h"
#include "common/tensor/dtype.h"
#include "common/tensor/float16.h"
#include "common/tensor/shape.h"
#include "common/tensor/tensor.h"
#include "dnnl.hpp"

// Matrix products by oneDNN: MatMul, and FusedMatMulBias as the runtime's
// rewrites make it.
namespace muster {
namespace {

// Dimensions as oneDNN sees one operand: broadcast up to the rank of the
// product, the last two as multiplied.
dnnl::memory::desc OperandDesc(const TensorType& type, bool is_transposed,
                               int rank, dnnl::memory::data_type data_type) {
  dnnl::memory::dims dims(rank, 1);
  dnnl::memory::dims strides(rank, 1);
  const int missing = rank - type.shape.rank();
  int64_t stride = 1;
  for (int axis = type.shape.rank() - 1; axis >= 0; --axis) {
    dims[axis + missing] = type.shape.dim(axis);
    strides[axis + missing] = stride;
    stride *= type.shape.dim(axis);
  }
  for (int axis = 0; axis < missing; ++axis) strides[axis] = stride;
  if (is_transposed) {
    std::swap(dims[rank - 1], dims[rank - 2]);
    std::swap(strides[rank - 1], strides[rank - 2]);
  }
  return dnnl::memory::desc(dims, data_type, strides);
}

// The elements of all but the last axis are rows.
TensorType AsMatrix(const TensorType& type) {
  const int last = type.shape.rank() - 1;
  return {type.dtype,
          {type.shape.ElementCountInRange(0, last), type.shape.dim(last)}};
}

// What comes after the bias. oneDNN's relu makes 0 of NaN, which would let a
// model that has diverged look like one that has died, so ours come after it.
enum class OwnActivation { kNone, kRelu, kRelu6 };

struct Activation {
  OwnActivation own = OwnActivation::kNone;
  std::optional<dnnl::algorithm> post_op;
};

absl::StatusOr<Activation> FindActivation(absl::string_view name) {
  if (name.empty()) return Activation();
  if (name == "Relu") return Activation{OwnActivation::kRelu, {}};
  if (name == "Relu6") return Activation{OwnActivation::kRelu6, {}};
  const auto post_op = [](dnnl::algorithm algorithm) {
    return Activation{.post_op = algorithm};
  };
  if (name == "Tanh") return post_op(dnnl::algorithm::eltwise_tanh);
  if (name == "Sigmoid") return post_op(dnnl::algorithm::eltwise_logistic);
  if (name == "Gelu") return post_op(dnnl::algorithm::eltwise_gelu_erf);
  if (name == "GeluTanh") return post_op(dnnl::algorithm::eltwise_gelu_tanh);
  return absl::UnimplementedError(absl::StrCat("no activation ", name));
}

struct ReluInPlace {
  MUSTER_INLINE static void Run(int64_t count, float* x) {
    for (int64_t i = 0; i < count; ++i) x[i] = x[i] < 0 ? 0 : x[i];
  }
};
struct ReluInPlace16 {
  MUSTER_INLINE static void Run(int64_t count, bfloat16* x) {
    for (int64_t i = 0; i < count; ++i) {
      // By the sign, and as far as minus infinity, beyond which NaN lies.
      const uint16_t bits = x[i].bits;
      x[i].bits = bits >= 0x8000 && bits <= 0xff80 ? 0 : bits;
    }
  }
};
struct Relu6InPlace {
  MUSTER_INLINE static void Run(int64_t count, float* x) {
    for (int64_t i = 0; i < count; ++i) {
      const float positive = x[i] < 0 ? 0 : x[i];
      x[i] = positive > 6 ? 6 : positive;
    }
  }
};

class OneDnnMatMul : public Kernel {
 public:
  static absl::StatusOr<std::unique_ptr<Kernel>> Create(const KernelSpec& spec,
                                                        ThreadPool* pool) {
    auto kernel = std::unique_ptr<OneDnnMatMul>(new OneDnnMatMul(pool));
    try {
      RETURN_IF_ERROR(kernel->Init(spec));
    } catch (const dnnl::error& error) {
      return absl::UnimplementedError(absl::StrCat("oneDNN: ", error.what()));
    }
    return kernel;
  }

  absl::Status Run(const KernelArguments& arguments) override {
    UseOpenMpThreads(thread_count_);
    // oneDNN does not write through the handles of its sources.
    const auto set = [](dnnl::memory& memory, const Tensor& tensor) {
      memory.set_data_handle(const_cast<uint8_t*>(tensor.raw_data()));
    };
    set(a_, *arguments.inputs[0]);
    set(b_, *arguments.inputs[1]);
    if (bias_) set(bias_, *arguments.inputs[2]);
    Tensor& product = *arguments.outputs[0];
    set(product_, product);
    const dnnl_status_t status =
        dnnl_primitive_execute(primitive_.get(), stream_.get(),
                               static_cast<int>(execution_arguments_.size()),
                               execution_arguments_.data());
    if (status != dnnl_success) {
      return absl::InternalError(absl::StrCat("oneDNN returned ", status));
    }
    if (own_activation_ == OwnActivation::kRelu &&
        product.dtype() == DType::kBfloat16) {
      RunVectorized<ReluInPlace16>(product.element_count(),
                                   product.mutable_flat<bfloat16>().data());
    } else if (own_activation_ == OwnActivation::kRelu) {
      RunVectorized<ReluInPlace>(product.element_count(),
                                 product.mutable_flat<float>().data());
    } else if (own_activation_ == OwnActivation::kRelu6) {
      RunVectorized<Relu6InPlace>(product.element_count(),
                                  product.mutable_flat<float>().data());
    }
    return absl::OkStatus();
  }

 private:
  explicit OneDnnMatMul(ThreadPool* pool)
      : thread_count_(IntraOpThreadCount(pool)),
        stream_(internal::OneDnnEngine()) {}

  absl::Status Init(const KernelSpec& spec) {
    const bool transpose_a = spec.attributes.GetOr("transpose_a", false);
    const bool transpose_b = spec.attributes.GetOr("transpose_b", false);
    TensorType a = spec.inputs[0];
    const TensorType& b = spec.inputs[1];
    TensorType product = spec.outputs[0];
    ASSIGN_OR_RETURN(const auto type, internal::OneDnnType(product.dtype));
    if (a.shape.element_count() == 0 || b.shape.element_count() == 0) {
      return absl::UnimplementedError("nothing to multiply");
    }
    // A batch of rows by one matrix is one product.
    if (b.shape.rank() == 2 && !transpose_a) {
      a = AsMatrix(a);
      product = AsMatrix(product);
    }
    const int rank = product.shape.rank();
    const auto a_desc = OperandDesc(a, transpose_a, rank, type);
    const auto b_desc = OperandDesc(b, transpose_b, rank, type);
    const auto product_desc = OperandDesc(product, false, rank, type);

    dnnl::primitive_attr attributes;
    attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    ASSIGN_OR_RETURN(
        const Activation activation,
        FindActivation(spec.attributes.GetOr<std::string>("activation", "")));
    if (product.dtype != DType::kFloat32 &&
        activation.own == OwnActivation::kRelu6) {
      return absl::UnimplementedError("this activation in float32 only");
    }
    own_activation_ = activation.own;
    if (activation.post_op) {
      dnnl::post_ops post_ops;
      post_ops.append_eltwise(1.0f, *activation.post_op, 0.0f, 0.0f);
      attributes.set_post_ops(post_ops);
    }

    UseOpenMpThreads(thread_count_);
    const dnnl::engine& engine = internal::OneDnnEngine();
    dnnl::memory::desc bias_desc;
    if (spec.inputs.size() == 3) {
      const int64_t width = product.shape.dim(1);
      bias_desc =
          dnnl::memory::desc({1, width}, type, dnnl::memory::dims{width, 1});
      bias_ = dnnl::memory(bias_desc, engine, nullptr);
    }
    const dnnl::matmul::primitive_desc primitive_desc(
        dnnl::matmul::desc(a_desc, b_desc, bias_desc, product_desc), attributes,
        engine);
    primitive_ = dnnl::matmul(primitive_desc);
    a_ = dnnl::memory(a_desc, engine, nullptr);
    b_ = dnnl::memory(b_desc, engine, nullptr);
    product_ = dnnl::memory(product_desc, engine, nullptr);
    scratchpad_ = dnnl::memory(primitive_desc.scratchpad_desc(), engine);
    execution_arguments_ = {{DNNL_ARG_SRC, a_.get()},
                            {DNNL_ARG_WEIGHTS, b_.get()},
                            {DNNL_ARG_DST, product_.get()},
                            {DNNL_ARG_SCRATCHPAD, scratchpad_.get()}};
    if (bias_) execution_arguments_.push_back({DNNL_ARG_BIAS, bias_.get()});
    return absl::OkStatus();
  }

  const int thread_count_;
  dnnl::stream stream_;
  dnnl::matmul primitive_;
  dnnl::memory a_;
  dnnl::memory b_;
  dnnl::memory bias_;  // Empty without one.
  dnnl::memory product_;
  dnnl::memory scratchpad_;
  std::vector<dnnl_exec_arg_t> execution_arguments_;
  OwnActivation own_activation_ = OwnActivation::kNone;
};

}  // namespace

namespace internal {

void RegisterCpuMatMulKernels(KernelRegistry* registry) {
  registry->Register("MatMul", OneDnnMatMul::Create);
  registry->Register("FusedMatMulBias", OneDnnMatMul::Create);
}

}  // namespace internal
}  // namespace muster
