#ifndef COMMON_CORE_SYSTEM_ADDRESS_SPACE_H_
#define COMMON_CORE_SYSTEM_ADDRESS_SPACE_H_

#include <cstddef>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace muster {

// Checks that this process can map `bytes` more bytes. Call it before a library
// that does not check its allocations. `what` names the library in the error:
// "oneDNN". Costs nothing if the address space is not limited (`ulimit -v`).
//   kResourceExhausted  names the limit, and says how to raise it
absl::Status CheckAddressSpace(size_t bytes, absl::string_view what);

}  // namespace muster

#endif  // COMMON_CORE_SYSTEM_ADDRESS_SPACE_H_
