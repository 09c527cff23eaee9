#include "common/compute/kernels/cuda/cudnn/real_cudnn.h"

#include <dlfcn.h>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/core/base/status_macros.h"
#include "common/core/device/driver/cuda_library.h"

namespace muster {

absl::StatusOr<cudnn::CudnnApi> LoadCudnn(const std::string& library) {
  const std::string wanted = absl::StrCat(
      "cuDNN ", cudnn::VersionString(cudnn::kVersionMin), " or later");
  const absl::StatusOr<void*> loaded = LoadCudaLibrary(library);
  if (!loaded.ok()) {
    return absl::UnavailableError(
        absl::StrCat("no ", wanted, ": ", loaded.status().message()));
  }
  cudnn::CudnnApi api;
#define MUSTER_LOAD(name, type)                                              \
  api.name = reinterpret_cast<decltype(api.name)>(dlsym(*loaded, #name));    \
  if (api.name == nullptr) {                                                 \
    return absl::UnavailableError(absl::StrCat(library, " has no function ", \
                                               #name, "; expected ", wanted, \
                                               ": update it"));              \
  }
  MUSTER_CUDNN_FUNCTIONS(MUSTER_LOAD)
#undef MUSTER_LOAD
  api.version = api.cudnnGetVersion();
  if (api.version < cudnn::kVersionMin) {
    return absl::UnavailableError(
        absl::StrCat(library, " is cuDNN ", cudnn::VersionString(api.version),
                     "; expected ", wanted, ": update it"));
  }
  return api;
}

absl::StatusOr<const cudnn::CudnnApi*> RealCudnn() {
  static const auto* const api =
      new absl::StatusOr<cudnn::CudnnApi>(LoadCudnn("libcudnn.so.9"));
  RETURN_IF_ERROR(api->status());
  return &**api;
}

}  // namespace muster
