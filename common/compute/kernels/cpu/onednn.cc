#include "common/compute/kernels/cpu/onednn.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/core/system/memory_limits.h"

namespace muster::internal {
namespace {

// Several times the size of a primitive's code, plus the memory that malloc()
// maps for a thread.
constexpr size_t kCodeBytesMax = size_t{32} << 20;

}  // namespace

const dnnl::engine& OneDnnEngine() {
  static const auto* const engine =
      new dnnl::engine(dnnl::engine::kind::cpu, 0);
  return *engine;
}

absl::StatusOr<dnnl::memory::data_type> OneDnnType(DType dtype) {
  if (dtype == DType::kFloat32) return dnnl::memory::data_type::f32;
  if (dtype == DType::kBfloat16) return dnnl::memory::data_type::bf16;
  return absl::UnimplementedError(
      absl::StrCat("expected float32 or bfloat16, got ", DTypeName(dtype)));
}

dnnl::primitive_attr UserScratchpad() {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attributes;
}

absl::Status CheckHasElements(const KernelSpec& spec) {
  const auto is_empty = [](const TensorType& type) {
    return type.shape.element_count() == 0;
  };
  if (std::any_of(spec.inputs.begin(), spec.inputs.end(), is_empty) ||
      std::any_of(spec.outputs.begin(), spec.outputs.end(), is_empty)) {
    return absl::UnimplementedError("an operand has no elements");
  }
  return absl::OkStatus();
}

absl::Status CheckCanGenerateCode() {
  return CheckAddressSpace(kCodeBytesMax, "oneDNN");
}

OneDnnCall::OneDnnCall(const dnnl::primitive& primitive)
    : primitive_(primitive), stream_(OneDnnEngine()) {}

int OneDnnCall::AddOperand(int argument, const dnnl::memory::desc& desc) {
  memories_.emplace_back(desc, OneDnnEngine(), nullptr);
  arguments_.push_back({argument, memories_.back().get()});
  return static_cast<int>(memories_.size()) - 1;
}

absl::Status OneDnnCall::Run() {
  const dnnl_status_t status = dnnl_primitive_execute(
      primitive_.get(), stream_.get(), static_cast<int>(arguments_.size()),
      arguments_.data());
  if (status == dnnl_success) return absl::OkStatus();
  return absl::InternalError(absl::StrCat("oneDNN returned ", status));
}

}  // namespace muster::internal
