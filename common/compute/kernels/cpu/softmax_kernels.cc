#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/compute/kernels/cpu/lanes.h"
#include "common/compute/kernels/cpu/register_cpu_kernels.h"
#include "common/compute/kernels/cpu/vector_math.h"
#include "common/compute/kernels/kernel.h"
#include "common/compute/kernels/vectorized.h"
#include "common/core/base/status_macros.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"
#include "common/core/tensor/tensor.h"

// Softmax and its losses, row by row over the last axis. A row stays in the L1
// cache between the passes over it.
namespace muster {
namespace {

// Writes exp(x[i] - max x) to `exps` and the maximum to `max`. Returns the sum
// of `exps`.
MUSTER_INLINE float ExpRow(int64_t count, const float* x, float* exps,
                           float* max) {
  *max = ReduceLanes(MaxLanes(), count, x);
  const float shift = *max;
  MUSTER_INDEPENDENT_ITERATIONS
  for (int64_t i = 0; i < count; ++i) exps[i] = VectorExp(x[i] - shift);
  return ReduceLanes(SumLanes(), count, exps);
}

struct SoftmaxRows {
  MUSTER_INLINE static void Run(int64_t row_count, int64_t class_count,
                                const float* x, float* y, float*) {
    for (int64_t row = 0; row < row_count; ++row) {
      float max;
      const float sum = ExpRow(class_count, x, y, &max);
      for (int64_t i = 0; i < class_count; ++i) y[i] /= sum;
      x += class_count;
      y += class_count;
    }
  }
};

// (gradient - sum(gradient * y)) * y
struct SoftmaxGradRows {
  MUSTER_INLINE static void Run(int64_t row_count, int64_t class_count,
                                const float* gradient, const float* y,
                                float* out, float* products) {
    for (int64_t row = 0; row < row_count; ++row) {
      MUSTER_INDEPENDENT_ITERATIONS
      for (int64_t i = 0; i < class_count; ++i) {
        products[i] = gradient[i] * y[i];
      }
      const float sum = ReduceLanes(SumLanes(), class_count, products);
      MUSTER_INDEPENDENT_ITERATIONS
      for (int64_t i = 0; i < class_count; ++i) {
        out[i] = (gradient[i] - sum) * y[i];
      }
      gradient += class_count;
      y += class_count;
      out += class_count;
    }
  }
};

struct LogSoftmaxRows {
  MUSTER_INLINE static void Run(int64_t row_count, int64_t class_count,
                                const float* x, float* y, float* exps) {
    for (int64_t row = 0; row < row_count; ++row) {
      float max;
      const float log_sum = VectorLog(ExpRow(class_count, x, exps, &max));
      MUSTER_INDEPENDENT_ITERATIONS
      for (int64_t i = 0; i < class_count; ++i) y[i] = (x[i] - max) - log_sum;
      x += class_count;
      y += class_count;
    }
  }
};

// -sum(labels * log_softmax(logits))
struct DenseLossRows {
  MUSTER_INLINE static void Run(int64_t row_count, int64_t class_count,
                                const float* logits, const float* labels,
                                float* losses, float* scratch) {
    for (int64_t row = 0; row < row_count; ++row) {
      float max;
      const float log_sum =
          VectorLog(ExpRow(class_count, logits, scratch, &max));
      MUSTER_INDEPENDENT_ITERATIONS
      for (int64_t i = 0; i < class_count; ++i) {
        scratch[i] = labels[i] * (log_sum - (logits[i] - max));
      }
      losses[row] = ReduceLanes(SumLanes(), class_count, scratch);
      logits += class_count;
      labels += class_count;
    }
  }
};

// (softmax(logits) - labels) * gradient
struct DenseLossGradRows {
  MUSTER_INLINE static void Run(int64_t row_count, int64_t class_count,
                                const float* logits, const float* labels,
                                const float* gradients, float* out,
                                float* exps) {
    for (int64_t row = 0; row < row_count; ++row) {
      float max;
      const float sum = ExpRow(class_count, logits, exps, &max);
      const float gradient = gradients[row];
      MUSTER_INDEPENDENT_ITERATIONS
      for (int64_t i = 0; i < class_count; ++i) {
        out[i] = (exps[i] / sum - labels[i]) * gradient;
      }
      logits += class_count;
      labels += class_count;
      out += class_count;
    }
  }
};

template <typename Label>
struct SparseLossRows {
  MUSTER_INLINE static void Run(int64_t row_count, int64_t class_count,
                                const float* logits, const Label* labels,
                                float* losses, float* exps) {
    for (int64_t row = 0; row < row_count; ++row) {
      float max;
      const float log_sum = VectorLog(ExpRow(class_count, logits, exps, &max));
      losses[row] = log_sum - (logits[labels[row]] - max);
      logits += class_count;
    }
  }
};

template <typename Label>
struct SparseLossGradRows {
  MUSTER_INLINE static void Run(int64_t row_count, int64_t class_count,
                                const float* logits, const Label* labels,
                                const float* gradients, float* out,
                                float* exps) {
    for (int64_t row = 0; row < row_count; ++row) {
      float max;
      const float sum = ExpRow(class_count, logits, exps, &max);
      const float gradient = gradients[row];
      MUSTER_INDEPENDENT_ITERATIONS
      for (int64_t i = 0; i < class_count; ++i) {
        out[i] = exps[i] / sum * gradient;
      }
      out[labels[row]] = (exps[labels[row]] / sum - 1) * gradient;
      logits += class_count;
      out += class_count;
    }
  }
};

// The dimensions of the first input, common to all kernels.
class RowKernel : public Kernel {
 public:
  explicit RowKernel(const KernelSpec& spec)
      : class_count_(spec.inputs[0].shape.dim(spec.inputs[0].shape.rank() - 1)),
        row_count_(spec.inputs[0].shape.ElementCountInRange(
            0, spec.inputs[0].shape.rank() - 1)),
        scratch_(class_count_) {}

 protected:
  static const float* In(const KernelArguments& arguments, int input) {
    return arguments.inputs[input]->flat<float>().data();
  }
  static float* Out(const KernelArguments& arguments) {
    return arguments.outputs[0]->mutable_flat<float>().data();
  }

  const int64_t class_count_;
  const int64_t row_count_;
  std::vector<float> scratch_;
};

// Runs `Rows` on the inputs, in their order.
template <typename Rows, int kInputCount>
class DenseKernel : public RowKernel {
 public:
  using RowKernel::RowKernel;
  absl::Status Run(const KernelArguments& arguments) override {
    [&]<int... i>(std::integer_sequence<int, i...>) {
      RunVectorized<Rows>(row_count_, class_count_, In(arguments, i)...,
                          Out(arguments), scratch_.data());
    }
    (std::make_integer_sequence<int, kInputCount>());
    return absl::OkStatus();
  }
};

template <typename Label>
absl::Status CheckLabels(const Tensor& labels, int64_t class_count) {
  const auto flat = labels.flat<Label>();
  for (size_t i = 0; i < flat.size(); ++i) {
    if (flat[i] >= 0 && flat[i] < class_count) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("label ", flat[i], " at element ", i, " is not in [0, ",
                     class_count, "), the range of the logits"));
  }
  return absl::OkStatus();
}

template <typename Label>
class SparseLossKernel : public RowKernel {
 public:
  using RowKernel::RowKernel;
  absl::Status Run(const KernelArguments& arguments) override {
    const Tensor& labels = *arguments.inputs[1];
    RETURN_IF_ERROR(CheckLabels<Label>(labels, class_count_));
    RunVectorized<SparseLossRows<Label>>(
        row_count_, class_count_, In(arguments, 0), labels.flat<Label>().data(),
        Out(arguments), scratch_.data());
    return absl::OkStatus();
  }
};

template <typename Label>
class SparseLossGradKernel : public RowKernel {
 public:
  using RowKernel::RowKernel;
  absl::Status Run(const KernelArguments& arguments) override {
    const Tensor& labels = *arguments.inputs[1];
    RETURN_IF_ERROR(CheckLabels<Label>(labels, class_count_));
    RunVectorized<SparseLossGradRows<Label>>(
        row_count_, class_count_, In(arguments, 0), labels.flat<Label>().data(),
        In(arguments, 2), Out(arguments), scratch_.data());
    return absl::OkStatus();
  }
};

bool HasClasses(const KernelSpec& spec) {
  const Shape& shape = spec.inputs[0].shape;
  return shape.dim(shape.rank() - 1) > 0;
}

template <typename K>
void RegisterDense(KernelRegistry* registry, absl::string_view op) {
  registry->Register(
      op,
      [](const KernelSpec& spec,
         int) -> absl::StatusOr<std::unique_ptr<Kernel>> {
        if (spec.inputs[0].dtype != DType::kFloat32 || !HasClasses(spec)) {
          return absl::UnimplementedError(
              "float32 with at least one class only");
        }
        return std::make_unique<K>(spec);
      });
}

template <template <typename> typename K>
void RegisterSparse(KernelRegistry* registry, absl::string_view op) {
  registry->Register(
      op,
      [](const KernelSpec& spec,
         int) -> absl::StatusOr<std::unique_ptr<Kernel>> {
        if (spec.inputs[0].dtype != DType::kFloat32 || !HasClasses(spec)) {
          return absl::UnimplementedError(
              "float32 with at least one class only");
        }
        if (spec.inputs[1].dtype == DType::kInt64) {
          return std::make_unique<K<int64_t>>(spec);
        }
        return std::make_unique<K<int32_t>>(spec);
      });
}

}  // namespace

namespace internal {

void RegisterCpuSoftmaxKernels(KernelRegistry* registry) {
  RegisterDense<DenseKernel<SoftmaxRows, 1>>(registry, "Softmax");
  RegisterDense<DenseKernel<SoftmaxGradRows, 2>>(registry, "SoftmaxGrad");
  RegisterDense<DenseKernel<LogSoftmaxRows, 1>>(registry, "LogSoftmax");
  RegisterDense<DenseKernel<DenseLossRows, 2>>(registry, "SoftmaxCrossEntropy");
  RegisterDense<DenseKernel<DenseLossGradRows, 3>>(registry,
                                                   "SoftmaxCrossEntropyGrad");
  RegisterSparse<SparseLossKernel>(registry, "SparseSoftmaxCrossEntropy");
  RegisterSparse<SparseLossGradKernel>(registry,
                                       "SparseSoftmaxCrossEntropyGrad");
}

}  // namespace internal
}  // namespace muster
