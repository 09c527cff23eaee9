#include "common/net/collectives/nccl/real_nccl.h"

#include <dlfcn.h>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/core/base/status_macros.h"
#include "common/core/device/driver/cuda_library.h"

namespace muster {

absl::StatusOr<nccl::Api> LoadNccl(const std::string& library) {
  const absl::StatusOr<void*> loaded = LoadCudaLibrary(library);
  if (!loaded.ok()) {
    return absl::UnavailableError(
        absl::StrCat("no NCCL ", nccl::VersionString(nccl::kVersionMin),
                     " or later: ", loaded.status().message()));
  }
  void* const handle = *loaded;
  nccl::Api api;
#define MUSTER_LOAD(name, type)                                           \
  api.name = reinterpret_cast<decltype(api.name)>(dlsym(handle, #name));  \
  if (api.name == nullptr) {                                              \
    return absl::UnavailableError(absl::StrCat(                           \
        library, " has no function ", #name, "; expected NCCL ",          \
        nccl::VersionString(nccl::kVersionMin), " or later: update it")); \
  }
  MUSTER_NCCL_FUNCTIONS(MUSTER_LOAD)
#undef MUSTER_LOAD
  const nccl::Result result = api.ncclGetVersion(&api.version);
  if (result != nccl::kSuccess) {
    return absl::UnavailableError(absl::StrCat(
        library, " does not say its version: ", api.ncclGetErrorString(result),
        " (", result, ")"));
  }
  if (api.version < nccl::kVersionMin) {
    return absl::UnavailableError(absl::StrCat(
        library, " is NCCL ", nccl::VersionString(api.version), "; expected ",
        nccl::VersionString(nccl::kVersionMin), " or later: update it"));
  }
  return api;
}

absl::StatusOr<const nccl::Api*> RealNccl() {
  static const auto* const api =
      new absl::StatusOr<nccl::Api>(LoadNccl("libnccl.so.2"));
  RETURN_IF_ERROR(api->status());
  return &**api;
}

}  // namespace muster
