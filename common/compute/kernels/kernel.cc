#include "common/compute/kernels/kernel.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/core/base/check.h"
#include "common/core/tensor/dtype.h"

namespace muster {
namespace {

std::string DescribeTypes(absl::Span<const TensorType> types) {
  return absl::StrJoin(types, ", ",
                       [](std::string* out, const TensorType& type) {
                         out->append(type.ToString());
                       });
}

}  // namespace

uint32_t ElementwiseSharing(const KernelSpec& spec) {
  uint32_t shared_inputs = 0;
  for (size_t i = 0; i < spec.inputs.size() && i < 32; ++i) {
    if (spec.inputs[i].shape == spec.outputs[0].shape &&
        SizeOf(spec.inputs[i].dtype) == SizeOf(spec.outputs[0].dtype)) {
      shared_inputs |= uint32_t{1} << i;
    }
  }
  return shared_inputs;
}

void KernelRegistry::Register(absl::string_view op, Factory factory) {
  MUSTER_CHECK(factory != nullptr);
  factories_[op].push_back(std::move(factory));
}

absl::StatusOr<std::unique_ptr<Kernel>> KernelRegistry::Create(
    const KernelSpec& spec, int thread_count) const {
  const auto found = factories_.find(spec.op);
  if (found != factories_.end()) {
    const std::vector<Factory>& factories = found->second;
    for (auto factory = factories.rbegin(); factory != factories.rend();
         ++factory) {
      auto kernel = (*factory)(spec, thread_count);
      if (kernel.ok() || !absl::IsUnimplemented(kernel.status())) {
        return kernel;
      }
    }
  }
  return absl::UnimplementedError(absl::StrCat(
      "this device has no kernel for ", spec.op, " (",
      DescribeTypes(spec.inputs), ") -> (", DescribeTypes(spec.outputs), ")"));
}

std::vector<std::string> KernelRegistry::ops() const {
  std::vector<std::string> names;
  for (const auto& [op, factories] : factories_) names.push_back(op);
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace muster
