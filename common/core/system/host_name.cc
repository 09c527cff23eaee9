#include "common/core/system/host_name.h"

#include <unistd.h>

#include <climits>

namespace muster {

std::string HostName() {
  char name[HOST_NAME_MAX + 1] = {};
  return gethostname(name, HOST_NAME_MAX) == 0 ? name : "";
}

}  // namespace muster
