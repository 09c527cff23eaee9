#ifndef COMMON_NET_PROCESS_VERSION_H_
#define COMMON_NET_PROCESS_VERSION_H_

#include "absl/strings/string_view.h"

namespace muster {

// Of the wire and of what users see; peers compare it when they meet.
inline constexpr absl::string_view kVersion = "0.1.0";

}  // namespace muster

#endif  // COMMON_NET_PROCESS_VERSION_H_
