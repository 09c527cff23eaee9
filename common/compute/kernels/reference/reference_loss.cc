#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "common/compute/functions/activation_functions.h"
#include "common/compute/kernels/reference/elements.h"
#include "common/compute/kernels/reference/register_reference_kernels.h"
#include "common/core/base/status_macros.h"

namespace muster::internal {
namespace {

// A row of logits, shifted so that exponentials do not overflow.
template <typename T>
class LogitsRow {
 public:
  explicit LogitsRow(absl::Span<const T> logits) : logits_(logits) {
    for (const T logit : logits) max_ = std::max<double>(max_, Widen(logit));
    double sum = 0;
    for (const T logit : logits) sum += std::exp(Widen(logit) - max_);
    log_sum_ = std::log(sum);
  }

  double LogProbability(int64_t c) const {
    return Widen(logits_[c]) - max_ - log_sum_;
  }
  double Probability(int64_t c) const { return std::exp(LogProbability(c)); }

 private:
  const absl::Span<const T> logits_;
  double max_ = -std::numeric_limits<double>::infinity();
  double log_sum_ = 0;
};

int64_t ClassCount(const KernelSpec& spec) {
  const Shape& logits = spec.inputs[0].shape;
  return logits.dim(logits.rank() - 1);
}

absl::StatusOr<int64_t> LabelAt(const Tensor& labels, int64_t row,
                                int64_t class_count) {
  const int64_t label = labels.dtype() == DType::kInt64
                            ? labels.flat<int64_t>()[row]
                            : labels.flat<int32_t>()[row];
  if (label >= 0 && label < class_count) return label;
  return absl::InvalidArgumentError(
      absl::StrCat("label ", label, " at element ", row, " is not in [0, ",
                   class_count, "), the range of the logits"));
}

bool HasSparseLabels(const KernelSpec& spec) {
  return spec.inputs[1].dtype == DType::kInt32 ||
         spec.inputs[1].dtype == DType::kInt64;
}

KernelOr MakeSoftmaxCrossEntropy(const KernelSpec& spec) {
  const auto make = [&]<typename T>() {
    return MakeKernel([class_count =
                           ClassCount(spec)](const KernelArguments& arguments) {
      const auto logits = arguments.inputs[0]->flat<T>();
      const auto labels = arguments.inputs[1]->flat<T>();
      const auto loss = arguments.outputs[0]->mutable_flat<T>();
      for (size_t i = 0; i < loss.size(); ++i) {
        const LogitsRow<T> row(logits.subspan(i * class_count, class_count));
        double sum = 0;
        for (int64_t c = 0; c < class_count; ++c) {
          sum -= Widen(labels[i * class_count + c]) * row.LogProbability(c);
        }
        loss[i] = Narrow<T>(sum);
      }
      return absl::OkStatus();
    });
  };
  return VisitSupported<Supported::kFloating>(spec.inputs[0].dtype, spec, make);
}

KernelOr MakeSoftmaxCrossEntropyGrad(const KernelSpec& spec) {
  const auto make = [&]<typename T>() {
    return MakeKernel([class_count =
                           ClassCount(spec)](const KernelArguments& arguments) {
      const auto logits = arguments.inputs[0]->flat<T>();
      const auto labels = arguments.inputs[1]->flat<T>();
      const auto gradient = arguments.inputs[2]->flat<T>();
      const auto out = arguments.outputs[0]->mutable_flat<T>();
      for (size_t i = 0; i < gradient.size(); ++i) {
        const LogitsRow<T> row(logits.subspan(i * class_count, class_count));
        for (int64_t c = 0; c < class_count; ++c) {
          const size_t at = i * class_count + c;
          out[at] = Narrow<T>(Widen(gradient[i]) *
                              (row.Probability(c) - Widen(labels[at])));
        }
      }
      return absl::OkStatus();
    });
  };
  return VisitSupported<Supported::kFloating>(spec.inputs[0].dtype, spec, make);
}

KernelOr MakeSparseSoftmaxCrossEntropy(const KernelSpec& spec) {
  if (!HasSparseLabels(spec)) return UnsupportedTypes(spec);
  const auto make = [&]<typename T>() {
    return MakeKernel([class_count =
                           ClassCount(spec)](const KernelArguments& arguments) {
      const auto logits = arguments.inputs[0]->flat<T>();
      const auto loss = arguments.outputs[0]->mutable_flat<T>();
      for (size_t i = 0; i < loss.size(); ++i) {
        ASSIGN_OR_RETURN(const int64_t label,
                         LabelAt(*arguments.inputs[1], i, class_count));
        const LogitsRow<T> row(logits.subspan(i * class_count, class_count));
        loss[i] = Narrow<T>(-row.LogProbability(label));
      }
      return absl::OkStatus();
    });
  };
  return VisitSupported<Supported::kFloating>(spec.inputs[0].dtype, spec, make);
}

KernelOr MakeSparseSoftmaxCrossEntropyGrad(const KernelSpec& spec) {
  if (!HasSparseLabels(spec)) return UnsupportedTypes(spec);
  const auto make = [&]<typename T>() {
    return MakeKernel([class_count =
                           ClassCount(spec)](const KernelArguments& arguments) {
      const auto logits = arguments.inputs[0]->flat<T>();
      const auto gradient = arguments.inputs[2]->flat<T>();
      const auto out = arguments.outputs[0]->mutable_flat<T>();
      for (size_t i = 0; i < gradient.size(); ++i) {
        ASSIGN_OR_RETURN(const int64_t label,
                         LabelAt(*arguments.inputs[1], i, class_count));
        const LogitsRow<T> row(logits.subspan(i * class_count, class_count));
        for (int64_t c = 0; c < class_count; ++c) {
          const double difference = row.Probability(c) - (c == label);
          out[i * class_count + c] = Narrow<T>(Widen(gradient[i]) * difference);
        }
      }
      return absl::OkStatus();
    });
  };
  return VisitSupported<Supported::kFloating>(spec.inputs[0].dtype, spec, make);
}

KernelOr MakeSigmoidCrossEntropy(const KernelSpec& spec) {
  const auto make = [&]<typename T>() {
    return MakeKernel(
        [](const KernelArguments& arguments) {
          const auto logits = arguments.inputs[0]->flat<T>();
          const auto labels = arguments.inputs[1]->flat<T>();
          const auto loss = arguments.outputs[0]->mutable_flat<T>();
          for (size_t i = 0; i < loss.size(); ++i) {
            loss[i] = Narrow<T>(functions::SigmoidCrossEntropy()(
                static_cast<double>(Widen(logits[i])),
                static_cast<double>(Widen(labels[i]))));
          }
          return absl::OkStatus();
        },
        ElementwiseSharing(spec));
  };
  return VisitSupported<Supported::kFloating>(spec.inputs[0].dtype, spec, make);
}

}  // namespace

void RegisterLossKernels(KernelRegistry* registry) {
  RegisterReference(registry, "SoftmaxCrossEntropy", MakeSoftmaxCrossEntropy);
  RegisterReference(registry, "SoftmaxCrossEntropyGrad",
                    MakeSoftmaxCrossEntropyGrad);
  RegisterReference(registry, "SparseSoftmaxCrossEntropy",
                    MakeSparseSoftmaxCrossEntropy);
  RegisterReference(registry, "SparseSoftmaxCrossEntropyGrad",
                    MakeSparseSoftmaxCrossEntropyGrad);
  RegisterReference(registry, "SigmoidCrossEntropy", MakeSigmoidCrossEntropy);
}

}  // namespace muster::internal
