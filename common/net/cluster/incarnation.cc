#include "common/net/cluster/incarnation.h"

#include "absl/strings/str_format.h"
#include "common/core/base/random.h"

namespace muster {

Incarnation NewIncarnation() {
  for (;;) {
    if (const uint64_t drawn = RandomIdentity(); drawn != 0) {
      return Incarnation(drawn);
    }
  }
}

std::string ToString(Incarnation incarnation) {
  return absl::StrFormat("%08x",
                         static_cast<uint32_t>(incarnation.value() >> 32));
}

}  // namespace muster
