#include "common/compute/functions/unary.h"
#include "common/compute/kernels/reference/elements.h"
#include "common/compute/kernels/reference/register_reference_kernels.h"

namespace muster::internal {
namespace {

// Makes a kernel whose output shares the input's memory if `spec` allows it.
KernelOr MakeElementwise(const KernelSpec& spec,
                         absl::Status (*run)(const KernelArguments&)) {
  return MakeKernel(run, ElementwiseSharing(spec));
}

// y = Function()(x), computed in the type in which elements are computed.
template <typename T, typename Out, typename Function>
absl::Status RunUnary(const KernelArguments& arguments) {
  const auto x = arguments.inputs[0]->flat<T>();
  const auto y = arguments.outputs[0]->mutable_flat<Out>();
  for (size_t i = 0; i < x.size(); ++i) {
    y[i] = Narrow<Out>(Function()(Widen(x[i])));
  }
  return absl::OkStatus();
}

template <Supported kSupported, typename Function>
void RegisterUnary(KernelRegistry* registry, absl::string_view op) {
  RegisterReference(registry, op, [](const KernelSpec& spec) {
    const auto make = [&]<typename T>() {
      return MakeElementwise(spec, RunUnary<T, T, Function>);
    };
    return VisitSupported<kSupported>(spec.inputs[0].dtype, spec, make);
  });
}

// Function()(x) -> bool
template <typename Function>
void RegisterTest(KernelRegistry* registry, absl::string_view op) {
  RegisterReference(registry, op, [](const KernelSpec& spec) {
    const auto make = [&]<typename T>() {
      return MakeKernel(RunUnary<T, bool, Function>);
    };
    return VisitSupported<Supported::kFloating>(spec.inputs[0].dtype, spec,
                                                make);
  });
}

template <typename To>
struct Convert {
  template <typename From>
  To operator()(From from) const {
    return ConvertNumber<To>(from);
  }
};

KernelOr MakeCast(const KernelSpec& spec) {
  const auto make_from = [&]<typename From>() {
    const auto make_to = [&]<typename To>() {
      return MakeElementwise(spec, RunUnary<From, To, Convert<To>>);
    };
    return VisitSupported<Supported::kNumberOrBool>(spec.outputs[0].dtype, spec,
                                                    make_to);
  };
  return VisitSupported<Supported::kNumberOrBool>(spec.inputs[0].dtype, spec,
                                                  make_from);
}

KernelOr MakeLogicalNot(const KernelSpec& spec) {
  if (spec.inputs[0].dtype != DType::kBool) return UnsupportedTypes(spec);
  return MakeElementwise(spec, RunUnary<bool, bool, functions::LogicalNot>);
}

}  // namespace

void RegisterUnaryKernels(KernelRegistry* registry) {
#define MUSTER_REGISTER(name) \
  RegisterUnary<Supported::kNumber, functions::name>(registry, #name);
  MUSTER_UNARY_NUMBER_FUNCTIONS(MUSTER_REGISTER)
#undef MUSTER_REGISTER
#define MUSTER_REGISTER(name) \
  RegisterUnary<Supported::kFloating, functions::name>(registry, #name);
  MUSTER_UNARY_FLOAT_FUNCTIONS(MUSTER_REGISTER)
#undef MUSTER_REGISTER
#define MUSTER_REGISTER(name) RegisterTest<functions::name>(registry, #name);
  MUSTER_FLOAT_TEST_FUNCTIONS(MUSTER_REGISTER)
#undef MUSTER_REGISTER
  RegisterReference(registry, "LogicalNot", MakeLogicalNot);
  RegisterReference(registry, "Cast", MakeCast);
}

}  // namespace muster::internal
