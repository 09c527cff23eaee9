#ifndef COMMON_CORE_SYSTEM_HOST_NAME_H_
#define COMMON_CORE_SYSTEM_HOST_NAME_H_

#include <string>

namespace muster {

// Returns the name of this machine, as gethostname(2) does; empty if it has
// none.
std::string HostName();

}  // namespace muster

#endif  // COMMON_CORE_SYSTEM_HOST_NAME_H_
