#ifndef COMMON_CORE_SYSTEM_PYTHON_PACKAGES_H_
#define COMMON_CORE_SYSTEM_PYTHON_PACKAGES_H_

#include <string>

#include "absl/strings/string_view.h"

namespace muster {

// Returns the path of the first file that matches `pattern`, a pattern of
// glob(3) below the folder of Python packages ("nvidia/*/lib/libnccl.so.2"), or
// "" if there is none. Looks in the active virtual environment (VIRTUAL_ENV),
// the active Conda environment (CONDA_PREFIX), then the packages of the user
// and of the system. Thread-safe.
std::string FindInPythonPackages(absl::string_view pattern);

// Returns the first file that matches `pattern` of glob(3), or "".
std::string FirstMatch(const std::string& pattern);

}  // namespace muster

#endif  // COMMON_CORE_SYSTEM_PYTHON_PACKAGES_H_
