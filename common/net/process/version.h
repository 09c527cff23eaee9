#ifndef COMMON_NET_PROCESS_VERSION_H_
#define COMMON_NET_PROCESS_VERSION_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace muster {

// The version of the executables and of the wire format.
inline constexpr absl::string_view kVersion = "0.1.0";

// Checks that `peer`, which runs version `there`, can work with this process.
//   kFailedPrecondition  the versions differ; the message names both and the
//                        way to fix it
absl::Status CheckVersionsAgree(absl::string_view peer,
                                absl::string_view there);

}  // namespace muster

#endif  // COMMON_NET_PROCESS_VERSION_H_
