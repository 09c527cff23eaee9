#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "common/core/system/log.h"
#include "common/net/rpc/fault_point.h"

namespace muster {
namespace {

// Reads MUSTER_FAULT before main() in every executable that links this file.
[[maybe_unused]] const bool environment_was_read = [] {
  const char* const text = std::getenv("MUSTER_FAULT");
  if (text == nullptr || *text == '\0') return true;
  absl::StatusOr<std::vector<Fault>> faults = ParseFaults(text);
  if (!faults.ok()) {
    LOG(ERROR) << std::string(faults.status().message());
    std::_Exit(2);
  }
  SetFaults(*std::move(faults));
  return true;
}();

}  // namespace
}  // namespace muster
