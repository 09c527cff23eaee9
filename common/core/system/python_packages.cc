#include "common/core/system/python_packages.h"

#include <glob.h>

#include <cstdlib>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace muster {
namespace {

constexpr const char* kPackageFolders[] = {"/lib/python3*/site-packages",
                                           "/lib/python3*/dist-packages",
                                           "/lib/python3/dist-packages"};

// Returns the variable's value followed by `suffix`; "" if it is not set.
std::string Prefix(const char* variable, absl::string_view suffix = "") {
  const char* const value = std::getenv(variable);
  if (value == nullptr || *value == '\0') return "";
  return absl::StrCat(value, suffix);
}

}  // namespace

std::string FirstMatch(const std::string& pattern) {
  glob_t found = {};
  std::string path;
  if (glob(pattern.c_str(), 0, nullptr, &found) == 0 && found.gl_pathc > 0) {
    path = found.gl_pathv[0];
  }
  globfree(&found);
  return path;
}

std::string FindInPythonPackages(absl::string_view pattern) {
  for (const std::string& prefix :
       {Prefix("VIRTUAL_ENV"), Prefix("CONDA_PREFIX"),
        Prefix("HOME", "/.local"), std::string("/usr/local"),
        std::string("/usr")}) {
    if (prefix.empty()) continue;
    for (const char* const folder : kPackageFolders) {
      std::string path = FirstMatch(absl::StrCat(prefix, folder, "/", pattern));
      if (!path.empty()) return path;
    }
  }
  return "";
}

}  // namespace muster
