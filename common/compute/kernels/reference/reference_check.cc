#include <algorithm>
#include <cstdint>
#include <iostream>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/compute/kernels/reference/elements.h"
#include "common/compute/kernels/reference/register_reference_kernels.h"

// Print and Assert.
namespace muster::internal {
namespace {

KernelOr MakePrint(const KernelSpec& spec) {
  return MakeKernel(
      [label = spec.attributes.GetOr<std::string>("label", ""),
       summarize = spec.attributes.GetOr<int64_t>("summarize", 0)](
          const KernelArguments& arguments) {
        const Tensor& x = *arguments.inputs[0];
        const int64_t count = std::min(summarize, x.element_count());
        std::string line = absl::StrCat(label, ": ", x.type().ToString(), " [");
        for (int64_t i = 0; i < count; ++i) {
          absl::StrAppend(&line, i == 0 ? "" : " ", x.ElementAsDouble(i));
        }
        absl::StrAppend(&line, count < x.element_count() ? " ...]\n" : "]\n");
        // Written at once, so that output of other threads cannot split the
        // line.
        std::cerr << line;
        CopyElements(x, arguments.outputs[0]);
        return absl::OkStatus();
      },
      /*shared_inputs=*/1);
}

KernelOr MakeAssert(const KernelSpec& spec) {
  return MakeKernel(
      [message = spec.attributes.GetOr<std::string>("message", "")](
          const KernelArguments& arguments) {
        const auto condition = arguments.inputs[1]->flat<bool>();
        const auto found = std::find(condition.begin(), condition.end(), false);
        if (found != condition.end()) {
          return absl::InvalidArgumentError(
              absl::StrCat(message, " (the condition is false at element ",
                           found - condition.begin(), ")"));
        }
        CopyElements(*arguments.inputs[0], arguments.outputs[0]);
        return absl::OkStatus();
      },
      /*shared_inputs=*/1);
}

}  // namespace

void RegisterCheckKernels(KernelRegistry* registry) {
  RegisterReference(registry, "Print", MakePrint);
  RegisterReference(registry, "Assert", MakeAssert);
}

}  // namespace muster::internal
