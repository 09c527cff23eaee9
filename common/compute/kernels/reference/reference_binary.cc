#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/compute/functions/binary.h"
#include "common/compute/kernels/reference/elements.h"
#include "common/compute/kernels/reference/register_reference_kernels.h"
#include "common/compute/kernels/strided_index.h"

namespace muster::internal {
namespace {

struct BinaryIndex {
  StridedIndex a;
  StridedIndex b;
  const char* undefined;
};

using RunBinaryFunction = absl::Status(const BinaryIndex& index,
                                       const KernelArguments& arguments);

// y = Function()(a, b) with broadcasting, of type Out.
template <typename T, typename Out, typename Function>
absl::Status RunBinary(const BinaryIndex& index,
                       const KernelArguments& arguments) {
  const auto a = arguments.inputs[0]->flat<T>();
  const auto b = arguments.inputs[1]->flat<T>();
  const auto y = arguments.outputs[0]->mutable_flat<Out>();
  for (size_t i = 0; i < y.size(); ++i) {
    const auto element_a = Widen(a[index.a(i)]);
    const auto element_b = Widen(b[index.b(i)]);
    if (!functions::IsDefined(Function(), element_b)) {
      return absl::InvalidArgumentError(
          absl::StrCat(index.undefined, ", at element ", i));
    }
    y[i] = Narrow<Out>(Function()(element_a, element_b));
  }
  return absl::OkStatus();
}

// `undefined` describes operands for which the function is not defined.
KernelOr MakeBinary(const KernelSpec& spec, RunBinaryFunction* run,
                    const char* undefined = "") {
  const Shape& shape = spec.outputs[0].shape;
  return MakeKernel(
      BinaryIndex{.a = BroadcastIndex(spec.inputs[0].shape, shape),
                  .b = BroadcastIndex(spec.inputs[1].shape, shape),
                  .undefined = undefined},
      run, ElementwiseSharing(spec));
}

const char* UndefinedOperands(absl::string_view op) {
  return op == "Pow" ? "an integer to the power of a negative integer"
                     : "integer division by zero";
}

template <typename Function>
void RegisterBinary(KernelRegistry* registry, absl::string_view op) {
  const char* undefined = UndefinedOperands(op);
  RegisterReference(registry, op, [=](const KernelSpec& spec) {
    const auto make = [&]<typename T>() {
      return MakeBinary(spec, RunBinary<T, T, Function>, undefined);
    };
    return VisitSupported<Supported::kNumber>(spec.inputs[0].dtype, spec, make);
  });
}

template <Supported kSupported, typename Function>
void RegisterComparison(KernelRegistry* registry, absl::string_view op) {
  RegisterReference(registry, op, [](const KernelSpec& spec) {
    const auto make = [&]<typename T>() {
      return MakeBinary(spec, RunBinary<T, bool, Function>);
    };
    return VisitSupported<kSupported>(spec.inputs[0].dtype, spec, make);
  });
}

template <typename Function>
void RegisterLogic(KernelRegistry* registry, absl::string_view op) {
  RegisterReference(registry, op, [](const KernelSpec& spec) {
    if (spec.inputs[0].dtype != DType::kBool) {
      return KernelOr(UnsupportedTypes(spec));
    }
    return MakeBinary(spec, RunBinary<bool, bool, Function>);
  });
}

struct SelectIndex {
  StridedIndex condition;
  StridedIndex a;
  StridedIndex b;
};

template <typename T>
absl::Status RunSelect(const SelectIndex& index,
                       const KernelArguments& arguments) {
  const auto condition = arguments.inputs[0]->flat<bool>();
  const auto a = arguments.inputs[1]->flat<T>();
  const auto b = arguments.inputs[2]->flat<T>();
  const auto y = arguments.outputs[0]->mutable_flat<T>();
  for (size_t i = 0; i < y.size(); ++i) {
    y[i] = condition[index.condition(i)] ? a[index.a(i)] : b[index.b(i)];
  }
  return absl::OkStatus();
}

KernelOr MakeSelect(const KernelSpec& spec) {
  const Shape& shape = spec.outputs[0].shape;
  const SelectIndex index = {
      .condition = BroadcastIndex(spec.inputs[0].shape, shape),
      .a = BroadcastIndex(spec.inputs[1].shape, shape),
      .b = BroadcastIndex(spec.inputs[2].shape, shape)};
  const auto make = [&]<typename T>() {
    return MakeKernel(index, RunSelect<T>, ElementwiseSharing(spec));
  };
  return VisitSupported<Supported::kNumberOrBool>(spec.inputs[1].dtype, spec,
                                                  make);
}

}  // namespace

void RegisterBinaryKernels(KernelRegistry* registry) {
#define MUSTER_REGISTER(name) RegisterBinary<functions::name>(registry, #name);
  MUSTER_BINARY_FUNCTIONS(MUSTER_REGISTER)
#undef MUSTER_REGISTER
#define MUSTER_REGISTER(name)                                             \
  RegisterComparison<Supported::kNumberOrBool, functions::name>(registry, \
                                                                #name);
  MUSTER_EQUALITY_FUNCTIONS(MUSTER_REGISTER)
#undef MUSTER_REGISTER
#define MUSTER_REGISTER(name) \
  RegisterComparison<Supported::kNumber, functions::name>(registry, #name);
  MUSTER_ORDER_FUNCTIONS(MUSTER_REGISTER)
#undef MUSTER_REGISTER
#define MUSTER_REGISTER(name) RegisterLogic<functions::name>(registry, #name);
  MUSTER_LOGIC_FUNCTIONS(MUSTER_REGISTER)
#undef MUSTER_REGISTER
  RegisterReference(registry, "Select", MakeSelect);
}

}  // namespace muster::internal
