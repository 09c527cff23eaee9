#include "common/core/device/driver/cuda_library.h"

#include <dlfcn.h>

#include <cstdlib>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/core/system/python_packages.h"

namespace muster {
namespace {

constexpr const char* kToolkits[] = {"/usr/local/cuda", "/opt/cuda",
                                     "/usr/lib/nvidia-cuda-toolkit"};

std::string Environment(const char* variable) {
  const char* const value = std::getenv(variable);
  return value == nullptr ? "" : value;
}

// Returns the folders that the user chose, as patterns of glob().
std::vector<std::string> ChosenFolders() {
  const std::string chosen = Environment("MUSTER_CUDA_PATH");
  if (chosen.empty()) return {};
  return {chosen, chosen + "/lib64", chosen + "/lib"};
}

std::vector<std::string> ToolkitFolders() {
  std::vector<std::string> folders;
  for (const char* toolkit : kToolkits) {
    folders.push_back(absl::StrCat(toolkit, "/lib64"));
    folders.push_back(absl::StrCat(toolkit, "/lib"));
  }
  return folders;
}

// Returns the first file `name` in the folders, or "".
std::string FindIn(const std::vector<std::string>& folders,
                   absl::string_view name) {
  for (const std::string& folder : folders) {
    std::string path = FirstMatch(absl::StrCat(folder, "/", name));
    if (!path.empty()) return path;
  }
  return "";
}

absl::StatusOr<void*> Open(const std::string& library) {
  void* const handle = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle != nullptr) return handle;
  return absl::UnavailableError(dlerror());
}

}  // namespace

absl::StatusOr<void*> LoadCudaLibrary(const std::string& name) {
  const std::string chosen = FindIn(ChosenFolders(), name);
  if (!chosen.empty()) return Open(chosen);
  absl::StatusOr<void*> opened = Open(name);
  if (opened.ok() || name.find('/') != std::string::npos) return opened;
  std::string elsewhere = FindIn(ToolkitFolders(), name);
  if (elsewhere.empty()) {
    elsewhere = FindInPythonPackages(absl::StrCat("nvidia/*/lib/", name));
  }
  if (!elsewhere.empty()) return Open(elsewhere);
  return absl::UnavailableError(absl::StrCat(
      opened.status().message(),
      "; neither the CUDA toolkit nor a Python package of NVIDIA contains "
      "it: set MUSTER_CUDA_PATH or LD_LIBRARY_PATH to its folder"));
}

}  // namespace muster
