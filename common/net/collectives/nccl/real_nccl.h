#ifndef COMMON_NET_COLLECTIVES_NCCL_REAL_NCCL_H_
#define COMMON_NET_COLLECTIVES_NCCL_REAL_NCCL_H_

#include <string>

#include "absl/status/statusor.h"
#include "common/net/collectives/nccl/nccl_api.h"

namespace muster {

// Returns the NCCL library of this machine. The first call loads it from
// libnccl.so.2. Programs are not linked with NCCL, so they start on machines
// that do not have it. The result lives as long as the process. Thread-safe.
//   errors  as for LoadNccl()
absl::StatusOr<const nccl::Api*> RealNccl();

// Loads the functions of `library`, which LoadCudaLibrary() finds. The library
// is never unloaded.
//   kUnavailable  the library cannot be loaded, lacks a function, or is older
//                 than nccl::kVersionMin; names the library, what was expected
//                 and what was found
absl::StatusOr<nccl::Api> LoadNccl(const std::string& library);

}  // namespace muster

#endif  // COMMON_NET_COLLECTIVES_NCCL_REAL_NCCL_H_
