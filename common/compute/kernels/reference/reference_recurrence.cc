#include <cstdint>
#include <string>
#include <vector>

#include "common/compute/kernels/recurrence.h"
#include "common/compute/kernels/recurrence_arguments.h"
#include "common/compute/kernels/recurrence_operands.h"
#include "common/compute/kernels/reference/elements.h"
#include "common/compute/kernels/reference/register_reference_kernels.h"
#include "common/compute/kernels/row_activation.h"
#include "common/core/base/status_macros.h"
#include "common/core/tensor/recurrence_options.h"

namespace muster::internal {
namespace {

using recurrence::Activations;
using recurrence::BackwardOperands;
using recurrence::Extents;
using recurrence::ForwardOperands;
using recurrence::Rows;

using Numbers = std::vector<double>;

struct PlainLoops {
  template <typename Body, typename... Arguments>
  static void Run(int64_t count, Arguments... arguments) {
    recurrence::EachElement<Body>::Run(count, arguments...);
  }
};

// All numbers are computed as double.
template <typename T>
Numbers Read(const Tensor& tensor) {
  const auto elements = tensor.flat<T>();
  Numbers numbers(elements.size());
  for (size_t i = 0; i < elements.size(); ++i) numbers[i] = Widen(elements[i]);
  return numbers;
}

template <typename T>
void Write(const Numbers& numbers, Tensor* tensor) {
  const auto elements = tensor->mutable_flat<T>();
  for (size_t i = 0; i < elements.size(); ++i) {
    elements[i] = Narrow<T>(numbers[i]);
  }
}

// Columns [begin, end) of the recurrent kernel [units, width].
struct KernelPart {
  const Numbers& kernel;
  int64_t units;
  int64_t width;
  int64_t begin;
  int64_t end;

  void Multiply(int64_t rows, const double* x, double* y) const {
    const int64_t count = end - begin;
    for (int64_t i = 0; i < rows * count; ++i) {
      double sum = 0;
      for (int64_t k = 0; k < units; ++k) {
        sum += x[i / count * units + k] * kernel[k * width + begin + i % count];
      }
      y[i] = sum;
    }
  }
  void MultiplyTransposed(int64_t rows, const double* x, double* y) const {
    const int64_t count = end - begin;
    for (int64_t i = 0; i < rows * units; ++i) {
      double sum = 0;
      for (int64_t k = 0; k < count; ++k) {
        sum += x[i / units * count + k] * kernel[i % units * width + begin + k];
      }
      y[i] = sum;
    }
  }
};

// The parts of the kernel that the two products use.
struct KernelParts {
  KernelParts(const RecurrenceOptions& options, int64_t units,
              const Numbers& kernel)
      : first{kernel, units, options.gate_count() * units, 0,
              options.cell == RecurrentCell::kGruResetBefore
                  ? 2 * units
                  : options.gate_count() * units},
        second{kernel, units, options.gate_count() * units, first.end,
               options.gate_count() * units} {}
  KernelPart first;
  KernelPart second;
};

// The numbers of a run. Bool operands are read in place.
template <typename T>
class Operands {
 public:
  explicit Operands(const KernelArguments& arguments) : arguments_(arguments) {
    for (const Tensor* const input : arguments.inputs) {
      inputs_.push_back(input->dtype() == DType::kBool ? Numbers()
                                                       : Read<T>(*input));
    }
    for (const Tensor* const output : arguments.outputs) {
      outputs_.emplace_back(output->element_count());
    }
  }
  ~Operands() {
    for (size_t i = 0; i < outputs_.size(); ++i) {
      Write<T>(outputs_[i], arguments_.outputs[i]);
    }
  }
  Operands(const Operands&) = delete;
  Operands& operator=(const Operands&) = delete;

  const Numbers& input(int i) const { return inputs_[i]; }
  const double* input_data(int i) const { return inputs_[i].data(); }
  double* output_data(int i) { return outputs_[i].data(); }
  const bool* mask(int i) const {
    return arguments_.inputs[i]->flat<bool>().data();
  }

 private:
  const KernelArguments& arguments_;
  std::vector<Numbers> inputs_;
  std::vector<Numbers> outputs_;
};

Activations<RowActivation<double>> ActivationsOf(
    const RecurrenceOptions& options) {
  return {FindRowActivation<double>(options.activation),
          FindRowActivation<double>(options.recurrent_activation)};
}

KernelOr MakeRecurrence(const KernelSpec& spec) {
  ASSIGN_OR_RETURN(const RecurrenceOptions options,
                   ReadRecurrenceOptions(spec.attributes));
  const Shape& outputs = spec.outputs[0].shape;
  const Extents extents = {outputs.dim(0), outputs.dim(1), outputs.dim(2)};
  const auto make = [&]<typename T>() {
    return MakeKernel([options, extents](const KernelArguments& arguments) {
      Operands<T> operands(arguments);
      const ForwardOperands<double> forward =
          recurrence::MakeForwardOperands<double>(options, operands);
      Numbers memory(recurrence::WorkspaceSize(extents.batch, extents.units));
      const KernelParts kernel(options, extents.units, operands.input(1));
      recurrence::Forward<double, PlainLoops, RowActivation<double>>(
          options, extents, ActivationsOf(options), forward)
          .Run(
              Rows{0, extents.batch}, memory.data(),
              [&](const double* x, double* y) {
                kernel.first.Multiply(extents.batch, x, y);
              },
              [&](const double* x, double* y) {
                kernel.second.Multiply(extents.batch, x, y);
              });
      return absl::OkStatus();
    });
  };
  return VisitSupported<Supported::kFloating>(spec.inputs[0].dtype, spec, make);
}

KernelOr MakeRecurrenceGrad(const KernelSpec& spec) {
  ASSIGN_OR_RETURN(const RecurrenceOptions options,
                   ReadRecurrenceOptions(spec.attributes));
  const Shape& outputs = spec.inputs[0].shape;
  const Extents extents = {outputs.dim(0), outputs.dim(1), outputs.dim(2)};
  const auto make = [&]<typename T>() {
    return MakeKernel([options, extents](const KernelArguments& arguments) {
      Operands<T> operands(arguments);
      const BackwardOperands<double> backward =
          recurrence::MakeBackwardOperands<double>(options, operands);
      Numbers memory(recurrence::WorkspaceSize(extents.batch, extents.units));
      const KernelParts kernel(options, extents.units, operands.input(1));
      recurrence::Backward<double, PlainLoops, RowActivation<double>>(
          options, extents, ActivationsOf(options), backward)
          .Run(
              Rows{0, extents.batch}, memory.data(),
              [&](const double* x, double* y) {
                kernel.first.MultiplyTransposed(extents.batch, x, y);
              },
              [&](const double* x, double* y) {
                kernel.second.MultiplyTransposed(extents.batch, x, y);
              });
      return absl::OkStatus();
    });
  };
  return VisitSupported<Supported::kFloating>(spec.inputs[0].dtype, spec, make);
}

}  // namespace

void RegisterRecurrenceKernels(KernelRegistry* registry) {
  RegisterReference(registry, "Recurrence", MakeRecurrence);
  RegisterReference(registry, "RecurrenceGrad", MakeRecurrenceGrad);
}

}  // namespace muster::internal
