#ifndef COMMON_NET_PROCESS_SETTINGS_H_
#define COMMON_NET_PROCESS_SETTINGS_H_

#include <map>
#include <string>

#include "absl/strings/string_view.h"

namespace muster {

// Returns an error message for a setting that is not in `declared`. The message
// suggests the most similar name and lists all declared names.
std::string UnknownSetting(absl::string_view name,
                           const std::map<std::string, std::string>& declared);

}  // namespace muster

#endif  // COMMON_NET_PROCESS_SETTINGS_H_
