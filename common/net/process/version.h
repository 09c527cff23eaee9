#ifndef COMMON_NET_PROCESS_VERSION_H_
#define COMMON_NET_PROCESS_VERSION_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace muster {

// The version of the executables and of the wire format.
inline constexpr absl::string_view kVersion = "0.1.0";

// Returns OK if `peer`, which runs version `there`, can work with this process.
//   kFailedPrecondition  it runs another version; names both and the way out
absl::Status CheckVersionsAgree(absl::string_view peer,
                                absl::string_view there);

}  // namespace muster

#endif  // COMMON_NET_PROCESS_VERSION_H_
