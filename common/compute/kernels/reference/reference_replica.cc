#include <cstring>

#include "common/compute/kernels/reference/elements.h"
#include "common/compute/kernels/reference/register_reference_kernels.h"

// The ops between replicas for a step with a single replica. A runtime with
// several replicas replaces these kernels.
namespace muster::internal {
namespace {

template <int32_t kCount>
KernelOr MakeCount(const KernelSpec&) {
  return MakeKernel([](const KernelArguments& arguments) {
    arguments.outputs[0]->mutable_flat<int32_t>()[0] = kCount;
    return absl::OkStatus();
  });
}

KernelOr MakeCopy(const KernelSpec& spec) {
  return MakeKernel(
      [](const KernelArguments& arguments) {
        const Tensor& from = *arguments.inputs[0];
        Tensor& to = *arguments.outputs[0];
        if (from.size_bytes() > 0 && from.raw_data() != to.raw_data()) {
          std::memcpy(to.mutable_raw_data(), from.raw_data(),
                      from.size_bytes());
        }
        return absl::OkStatus();
      },
      ElementwiseSharing(spec) & 1);
}

}  // namespace

void RegisterReplicaKernels(KernelRegistry* registry) {
  RegisterReference(registry, "ReplicaId", MakeCount<0>);
  RegisterReference(registry, "ReplicaCount", MakeCount<1>);
  for (const char* op : {"AllReduce", "AllGather", "ReplicaPart"}) {
    RegisterReference(registry, op, MakeCopy);
  }
}

}  // namespace muster::internal
