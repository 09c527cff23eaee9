#include "common/core/device/driver/real_driver.h"

#include <dlfcn.h>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace muster {
namespace {

constexpr char kLibrary[] = "libcuda.so.1";

absl::StatusOr<const driver::DriverApi*> LoadDriver() {
  void* const library = dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    return absl::UnavailableError(absl::StrCat(
        "no NVIDIA driver: ", dlerror(),
        "; install the driver, or compute on CPUs or on simulated GPUs"));
  }
  static driver::DriverApi api;
#define MUSTER_LOAD(name, type)                                             \
  api.name = reinterpret_cast<decltype(api.name)>(dlsym(library, #name));   \
  if (api.name == nullptr) {                                                \
    return absl::UnavailableError(absl::StrCat(                             \
        kLibrary, " has no function ", #name,                               \
        "; expected the driver of CUDA 12.0 or later: update the driver")); \
  }
  MUSTER_DRIVER_FUNCTIONS(MUSTER_LOAD)
#undef MUSTER_LOAD
  api.has_graphs = true;
#define MUSTER_LOAD(name, type)                                           \
  api.name = reinterpret_cast<decltype(api.name)>(dlsym(library, #name)); \
  api.has_graphs = api.has_graphs && api.name != nullptr;
  MUSTER_DRIVER_GRAPH_FUNCTIONS(MUSTER_LOAD)
#undef MUSTER_LOAD
  int device_count = 0;
  driver::Result result = api.cuInit(0);
  if (result == driver::kSuccess) result = api.cuDeviceGetCount(&device_count);
  if (result != driver::kSuccess) {
    const char* text = nullptr;
    if (api.cuGetErrorString(result, &text) != driver::kSuccess) text = "?";
    return absl::UnavailableError(
        absl::StrCat(kLibrary, " is installed, but finds no GPU: ", text, " (",
                     result, ")"));
  }
  if (device_count == 0) {
    return absl::UnavailableError(absl::StrCat(
        kLibrary,
        " is installed, but there is no GPU, or CUDA_VISIBLE_DEVICES "
        "hides all of them"));
  }
  return &api;
}

}  // namespace

absl::StatusOr<const driver::DriverApi*> RealDriver() {
  static const auto* const driver =
      new absl::StatusOr<const driver::DriverApi*>(LoadDriver());
  return *driver;
}

}  // namespace muster
