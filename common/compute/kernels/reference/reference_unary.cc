#include "common/compute/kernels/functions/unary.h"
#include "common/compute/kernels/reference/elements.h"
#include "common/compute/kernels/reference/register_reference_kernels.h"

namespace muster::internal {
namespace {

// function(x) -> y, both of the type in which elements are computed.
template <Supported kSupported, typename Function>
void RegisterUnary(KernelRegistry* registry, absl::string_view op,
                   Function function) {
  RegisterReference(registry, op, [function](const KernelSpec& spec) {
    const auto make = [&]<typename T>() {
      return MakeKernel(
          [function](const KernelArguments& arguments) {
            const auto x = arguments.inputs[0]->flat<T>();
            const auto y = arguments.outputs[0]->mutable_flat<T>();
            for (size_t i = 0; i < x.size(); ++i) {
              y[i] = Narrow<T>(function(Widen(x[i])));
            }
            return absl::OkStatus();
          },
          ElementwiseSharing(spec));
    };
    return VisitSupported<kSupported>(spec.inputs[0].dtype, spec, make);
  });
}

// function(x) -> bool
template <typename Function>
void RegisterTest(KernelRegistry* registry, absl::string_view op,
                  Function function) {
  RegisterReference(registry, op, [function](const KernelSpec& spec) {
    const auto make = [&]<typename T>() {
      return MakeKernel([function](const KernelArguments& arguments) {
        const auto x = arguments.inputs[0]->flat<T>();
        const auto y = arguments.outputs[0]->mutable_flat<bool>();
        for (size_t i = 0; i < x.size(); ++i) y[i] = function(Widen(x[i]));
        return absl::OkStatus();
      });
    };
    return VisitSupported<Supported::kFloating>(spec.inputs[0].dtype, spec,
                                                make);
  });
}

KernelOr MakeCast(const KernelSpec& spec) {
  const auto make_from = [&]<typename From>() {
    const auto make_to = [&]<typename To>() {
      return MakeKernel(
          [](const KernelArguments& arguments) {
            const auto x = arguments.inputs[0]->flat<From>();
            const auto y = arguments.outputs[0]->mutable_flat<To>();
            for (size_t i = 0; i < x.size(); ++i) {
              y[i] = ConvertNumber<To>(Widen(x[i]));
            }
            return absl::OkStatus();
          },
          ElementwiseSharing(spec));
    };
    return VisitSupported<Supported::kNumberOrBool>(spec.outputs[0].dtype, spec,
                                                    make_to);
  };
  return VisitSupported<Supported::kNumberOrBool>(spec.inputs[0].dtype, spec,
                                                  make_from);
}

KernelOr MakeLogicalNot(const KernelSpec& spec) {
  if (spec.inputs[0].dtype != DType::kBool) return UnsupportedTypes(spec);
  return MakeKernel(
      [](const KernelArguments& arguments) {
        const auto x = arguments.inputs[0]->flat<bool>();
        const auto y = arguments.outputs[0]->mutable_flat<bool>();
        for (size_t i = 0; i < x.size(); ++i) {
          y[i] = functions::LogicalNot()(x[i]);
        }
        return absl::OkStatus();
      },
      ElementwiseSharing(spec));
}

}  // namespace

void RegisterUnaryKernels(KernelRegistry* registry) {
#define MUSTER_REGISTER(name) \
  RegisterUnary<Supported::kNumber>(registry, #name, functions::name());
  MUSTER_UNARY_NUMBER_FUNCTIONS(MUSTER_REGISTER)
#undef MUSTER_REGISTER
#define MUSTER_REGISTER(name) \
  RegisterUnary<Supported::kFloating>(registry, #name, functions::name());
  MUSTER_UNARY_FLOAT_FUNCTIONS(MUSTER_REGISTER)
#undef MUSTER_REGISTER
#define MUSTER_REGISTER(name) RegisterTest(registry, #name, functions::name());
  MUSTER_FLOAT_TEST_FUNCTIONS(MUSTER_REGISTER)
#undef MUSTER_REGISTER
  RegisterReference(registry, "LogicalNot", MakeLogicalNot);
  RegisterReference(registry, "Cast", MakeCast);
}

}  // namespace muster::internal
