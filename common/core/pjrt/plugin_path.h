#ifndef COMMON_CORE_PJRT_PLUGIN_PATH_H_
#define COMMON_CORE_PJRT_PLUGIN_PATH_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace muster {

// Returns the path of the PJRT plugin `name`: "cpu", "cuda" or "tpu", or any
// name that PJRT_NAMES_AND_LIBRARY_PATHS has. A name with a slash is a path,
// and is returned as it is. The first of these places that has the plugin is
// taken:
//
//   1. the environment variable PJRT_NAMES_AND_LIBRARY_PATHS, as JAX reads it:
//      "cpu:/a/plugin.so,cuda:/b/plugin.so"
//   2. for "tpu", the environment variable TPU_LIBRARY_PATH
//   3. Python packages that contain the plugin: those of the active virtual or
//      Conda environment, of the user, and of the system
//
//   kNotFound         no place has it; the message names the package to install
//   kInvalidArgument  PJRT_NAMES_AND_LIBRARY_PATHS has an entry without a colon
absl::StatusOr<std::string> FindPjrtPlugin(absl::string_view name);

}  // namespace muster

#endif  // COMMON_CORE_PJRT_PLUGIN_PATH_H_
