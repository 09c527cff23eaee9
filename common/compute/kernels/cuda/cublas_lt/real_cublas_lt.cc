#include "common/compute/kernels/cuda/cublas_lt/real_cublas_lt.h"

#include <dlfcn.h>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/core/base/status_macros.h"
#include "common/core/device/driver/cuda_library.h"

namespace muster {
namespace {

absl::StatusOr<cublas_lt::CublasLtApi> LoadFor(int driver_version) {
  absl::StatusOr<cublas_lt::CublasLtApi> newer =
      driver_version < 13000
          ? absl::UnavailableError("the driver is older than CUDA 13")
          : LoadCublasLt("libcublasLt.so.13");
  if (newer.ok()) return newer;
  absl::StatusOr<cublas_lt::CublasLtApi> older =
      LoadCublasLt("libcublasLt.so.12");
  return older.ok() || driver_version < 13000 ? older : newer;
}

}  // namespace

absl::StatusOr<cublas_lt::CublasLtApi> LoadCublasLt(
    const std::string& library) {
  const std::string wanted = absl::StrCat(
      "cuBLASLt ", cublas_lt::VersionString(cublas_lt::kVersionMin),
      " or later");
  const absl::StatusOr<void*> loaded = LoadCudaLibrary(library);
  if (!loaded.ok()) {
    return absl::UnavailableError(
        absl::StrCat("no ", wanted, ": ", loaded.status().message()));
  }
  cublas_lt::CublasLtApi api;
#define MUSTER_LOAD(name, type)                                              \
  api.name = reinterpret_cast<decltype(api.name)>(dlsym(*loaded, #name));    \
  if (api.name == nullptr) {                                                 \
    return absl::UnavailableError(absl::StrCat(library, " has no function ", \
                                               #name, "; expected ", wanted, \
                                               ": update it"));              \
  }
  MUSTER_CUBLAS_LT_FUNCTIONS(MUSTER_LOAD)
#undef MUSTER_LOAD
  api.version = api.cublasLtGetVersion();
  if (api.version < cublas_lt::kVersionMin) {
    return absl::UnavailableError(absl::StrCat(
        library, " is cuBLASLt ", cublas_lt::VersionString(api.version),
        "; expected ", wanted, ": update it"));
  }
  return api;
}

absl::StatusOr<const cublas_lt::CublasLtApi*> RealCublasLt(int driver_version) {
  static const auto* const api =
      new absl::StatusOr<cublas_lt::CublasLtApi>(LoadFor(driver_version));
  RETURN_IF_ERROR(api->status());
  return &**api;
}

}  // namespace muster
