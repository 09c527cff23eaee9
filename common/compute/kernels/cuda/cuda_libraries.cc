#include "common/compute/kernels/cuda/cuda_libraries.h"

#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/compute/kernels/cuda/cublas_lt/real_cublas_lt.h"
#include "common/compute/kernels/cuda/cudnn/real_cudnn.h"
#include "common/core/system/log.h"

namespace muster {
namespace {

// Returns null, and logs a line, if there is no library.
template <typename Api>
const Api* FoundOrLogged(const absl::StatusOr<const Api*>& library,
                         absl::string_view what) {
  if (library.ok()) return *library;
  LOG(WARNING) << what << " run on Muster's own kernels, which are slow: "
               << library.status().message();
  return nullptr;
}

}  // namespace

std::string CudaLibraries::ToString() const {
  std::vector<std::string> names;
  if (cublas_lt != nullptr) {
    names.push_back(absl::StrCat("cuBLASLt ",
                                 cublas_lt::VersionString(cublas_lt->version)));
  }
  if (cudnn != nullptr) {
    names.push_back(
        absl::StrCat("cuDNN ", cudnn::VersionString(cudnn->version)));
  }
  return names.empty() ? "none" : absl::StrJoin(names, ", ");
}

CudaLibraries FindCudaLibraries(const Device& device) {
  if (device.description().is_simulated) return {};
  static const CudaLibraries libraries = {
      .cublas_lt =
          FoundOrLogged(RealCublasLt(device.description().driver_version),
                        "products of matrices"),
      .cudnn = FoundOrLogged(RealCudnn(), "convolutions")};
  return libraries;
}

}  // namespace muster
