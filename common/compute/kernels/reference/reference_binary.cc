#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/compute/kernels/functions/binary.h"
#include "common/compute/kernels/reference/elements.h"
#include "common/compute/kernels/reference/register_reference_kernels.h"
#include "common/compute/kernels/strided_index.h"

namespace muster::internal {
namespace {

// y = function(a, b) with broadcasting, of type Out.
// `undefined` describes operands for which the function is not defined.
template <typename T, typename Out, typename Function>
KernelOr MakeBinary(const KernelSpec& spec, Function function,
                    const char* undefined = "") {
  const Shape& shape = spec.outputs[0].shape;
  return MakeKernel(
      [function, undefined,
       index_a = BroadcastIndex(spec.inputs[0].shape, shape),
       index_b = BroadcastIndex(spec.inputs[1].shape, shape)](
          const KernelArguments& arguments) {
        const auto a = arguments.inputs[0]->flat<T>();
        const auto b = arguments.inputs[1]->flat<T>();
        const auto y = arguments.outputs[0]->mutable_flat<Out>();
        for (size_t i = 0; i < y.size(); ++i) {
          const auto element_a = Widen(a[index_a(i)]);
          const auto element_b = Widen(b[index_b(i)]);
          if (!functions::IsDefined(function, element_b)) {
            return absl::InvalidArgumentError(
                absl::StrCat(undefined, ", at element ", i));
          }
          y[i] = Narrow<Out>(function(element_a, element_b));
        }
        return absl::OkStatus();
      },
      ElementwiseSharing(spec));
}

const char* UndefinedOperands(absl::string_view op) {
  return op == "Pow" ? "an integer to the power of a negative integer"
                     : "integer division by zero";
}

template <typename Function>
void RegisterBinary(KernelRegistry* registry, absl::string_view op,
                    Function function) {
  const char* undefined = UndefinedOperands(op);
  RegisterReference(registry, op, [=](const KernelSpec& spec) {
    const auto make = [&]<typename T>() {
      return MakeBinary<T, T>(spec, function, undefined);
    };
    return VisitSupported<Supported::kNumber>(spec.inputs[0].dtype, spec, make);
  });
}

template <Supported kSupported, typename Function>
void RegisterComparison(KernelRegistry* registry, absl::string_view op,
                        Function function) {
  RegisterReference(registry, op, [function](const KernelSpec& spec) {
    const auto make = [&]<typename T>() {
      return MakeBinary<T, bool>(spec, function);
    };
    return VisitSupported<kSupported>(spec.inputs[0].dtype, spec, make);
  });
}

template <typename Function>
void RegisterLogic(KernelRegistry* registry, absl::string_view op,
                   Function function) {
  RegisterReference(registry, op, [function](const KernelSpec& spec) {
    if (spec.inputs[0].dtype != DType::kBool) {
      return KernelOr(UnsupportedTypes(spec));
    }
    return MakeBinary<bool, bool>(spec, function);
  });
}

KernelOr MakeSelect(const KernelSpec& spec) {
  const auto make = [&]<typename T>() {
    const Shape& shape = spec.outputs[0].shape;
    return MakeKernel(
        [index_condition = BroadcastIndex(spec.inputs[0].shape, shape),
         index_a = BroadcastIndex(spec.inputs[1].shape, shape),
         index_b = BroadcastIndex(spec.inputs[2].shape, shape)](
            const KernelArguments& arguments) {
          const auto condition = arguments.inputs[0]->flat<bool>();
          const auto a = arguments.inputs[1]->flat<T>();
          const auto b = arguments.inputs[2]->flat<T>();
          const auto y = arguments.outputs[0]->mutable_flat<T>();
          for (size_t i = 0; i < y.size(); ++i) {
            y[i] =
                condition[index_condition(i)] ? a[index_a(i)] : b[index_b(i)];
          }
          return absl::OkStatus();
        },
        ElementwiseSharing(spec));
  };
  return VisitSupported<Supported::kNumberOrBool>(spec.inputs[1].dtype, spec,
                                                  make);
}

}  // namespace

void RegisterBinaryKernels(KernelRegistry* registry) {
#define MUSTER_REGISTER(name) \
  RegisterBinary(registry, #name, functions::name());
  MUSTER_BINARY_FUNCTIONS(MUSTER_REGISTER)
#undef MUSTER_REGISTER
#define MUSTER_REGISTER(name)                                   \
  RegisterComparison<Supported::kNumberOrBool>(registry, #name, \
                                               functions::name());
  MUSTER_EQUALITY_FUNCTIONS(MUSTER_REGISTER)
#undef MUSTER_REGISTER
#define MUSTER_REGISTER(name) \
  RegisterComparison<Supported::kNumber>(registry, #name, functions::name());
  MUSTER_ORDER_FUNCTIONS(MUSTER_REGISTER)
#undef MUSTER_REGISTER
#define MUSTER_REGISTER(name) RegisterLogic(registry, #name, functions::name());
  MUSTER_LOGIC_FUNCTIONS(MUSTER_REGISTER)
#undef MUSTER_REGISTER
  RegisterReference(registry, "Select", MakeSelect);
}

}  // namespace muster::internal
