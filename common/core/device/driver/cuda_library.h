#ifndef COMMON_CORE_DEVICE_DRIVER_CUDA_LIBRARY_H_
#define COMMON_CORE_DEVICE_DRIVER_CUDA_LIBRARY_H_

#include <string>

#include "absl/status/statusor.h"

namespace muster {

// Loads one of NVIDIA's libraries by its file name ("libnccl.so.2"), and
// returns the handle that dlsym() takes. The first of these places that has the
// file is taken:
//
//   1. the folder in the environment variable MUSTER_CUDA_PATH, and its
//      subfolders lib64 and lib
//   2. where the dynamic loader looks: LD_LIBRARY_PATH, and the folders of
//      the system
//   3. the CUDA toolkit, where NVIDIA, Arch and Debian install it
//   4. NVIDIA's Python packages: nvidia/*/lib of the active virtual or Conda
//      environment, of the user, and of the system
//
// A name with a slash is a path: no other place is searched. Libraries are
// never unloaded. Thread-safe.
//   kUnavailable  no place has it, or the first that has it cannot load it;
//                 names the library, the reason and the places
absl::StatusOr<void*> LoadCudaLibrary(const std::string& name);

}  // namespace muster

#endif  // COMMON_CORE_DEVICE_DRIVER_CUDA_LIBRARY_H_
