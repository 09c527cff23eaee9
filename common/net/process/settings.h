#ifndef COMMON_NET_PROCESS_SETTINGS_H_
#define COMMON_NET_PROCESS_SETTINGS_H_

#include <map>
#include <string>

#include "absl/strings/string_view.h"

namespace muster {

// Returns what is wrong with a setting of this name, of which `declared` has
// none: the nearest name, and all that are declared.
std::string UnknownSetting(absl::string_view name,
                           const std::map<std::string, std::string>& declared);

}  // namespace muster

#endif  // COMMON_NET_PROCESS_SETTINGS_H_
