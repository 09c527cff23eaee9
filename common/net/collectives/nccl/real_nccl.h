#ifndef COMMON_NET_COLLECTIVES_NCCL_REAL_NCCL_H_
#define COMMON_NET_COLLECTIVES_NCCL_REAL_NCCL_H_

#include <string>

#include "absl/status/statusor.h"
#include "common/net/collectives/nccl/nccl_api.h"

namespace muster {

// Returns the NCCL of this machine, loaded from libnccl.so.2 by the first call.
// Programs are not linked with it, so they start on machines without one. It
// lives as long as the process. Thread-safe.
//   errors  as LoadNccl()
absl::StatusOr<const nccl::Api*> RealNccl();

// Loads the functions of `library`, which LoadCudaLibrary() finds. The library
// is never unloaded.
//   kUnavailable  it cannot be loaded, lacks a function, or is older than
//                 nccl::kVersionMin; names the library, what was expected and
//                 what came
absl::StatusOr<nccl::Api> LoadNccl(const std::string& library);

}  // namespace muster

#endif  // COMMON_NET_COLLECTIVES_NCCL_REAL_NCCL_H_
