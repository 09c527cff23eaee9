#include "common/core/device/driver/cuda_library.h"

#include <dlfcn.h>
#include <glob.h>

#include <cstdlib>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace muster {
namespace {

constexpr const char* kToolkits[] = {"/usr/local/cuda", "/opt/cuda",
                                     "/usr/lib/nvidia-cuda-toolkit"};

// Folders of Python packages, below a prefix.
constexpr const char* kPackages[] = {"/lib/python3*/site-packages",
                                     "/lib/python3*/dist-packages",
                                     "/lib/python3/dist-packages"};

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

std::vector<std::string> OtherFolders() {
  std::vector<std::string> folders;
  for (const char* toolkit : kToolkits) {
    folders.push_back(absl::StrCat(toolkit, "/lib64"));
    folders.push_back(absl::StrCat(toolkit, "/lib"));
  }
  const std::string home = Environment("HOME");
  for (const std::string& prefix :
       {Environment("VIRTUAL_ENV"), Environment("CONDA_PREFIX"),
        home.empty() ? "" : home + "/.local", std::string("/usr/local"),
        std::string("/usr")}) {
    if (prefix.empty()) continue;
    for (const char* packages : kPackages) {
      folders.push_back(absl::StrCat(prefix, packages, "/nvidia/*/lib"));
    }
  }
  return folders;
}

// Returns the first file `name` in the folders, or "".
std::string FindIn(const std::vector<std::string>& folders,
                   absl::string_view name) {
  for (const std::string& folder : folders) {
    glob_t found = {};
    std::string path;
    if (glob(absl::StrCat(folder, "/", name).c_str(), 0, nullptr, &found) ==
            0 &&
        found.gl_pathc > 0) {
      path = found.gl_pathv[0];
    }
    globfree(&found);
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
  const std::string elsewhere = FindIn(OtherFolders(), name);
  if (!elsewhere.empty()) return Open(elsewhere);
  return absl::UnavailableError(absl::StrCat(
      opened.status().message(),
      "; neither the CUDA toolkit nor a Python package of NVIDIA contains "
      "it: set MUSTER_CUDA_PATH or LD_LIBRARY_PATH to its folder"));
}

}  // namespace muster
