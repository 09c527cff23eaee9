#include "common/core/pjrt/plugin_path.h"

#include <glob.h>

#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "common/core/base/status_macros.h"

namespace muster {
namespace {

constexpr char kPathsVariable[] = "PJRT_NAMES_AND_LIBRARY_PATHS";

// A Python package that contains a plugin.
struct PluginPackage {
  absl::string_view plugin;
  absl::string_view package;  // What `pip install` takes.
  absl::string_view file;     // Below the folder of packages.
};

// The preferred package of each plugin first.
constexpr PluginPackage kPluginPackages[] = {
    {"cpu", "lammps-jax-pjrt-cpu",
     "lammps_jax_pjrt_cpu/pjrt_c_api_cpu_plugin.so"},
    {"cpu", "fastatomstruct-xla-cpu", "fastatomstruct_xla_cpu/libpjrt_cpu.so"},
    {"cpu", "xla-cpu-pjrt", "xla_plugins/xla_cpu_pjrt/xla_cpu_pjrt.so"},
    {"cuda", "jax-cuda13-pjrt", "jax_plugins/xla_cuda13/xla_cuda_plugin.so"},
    {"cuda", "jax-cuda12-pjrt", "jax_plugins/xla_cuda12/xla_cuda_plugin.so"},
    {"tpu", "libtpu", "libtpu/libtpu.so"},
};

constexpr const char* kPackageFolders[] = {"/lib/python3*/site-packages",
                                           "/lib/python3*/dist-packages",
                                           "/lib/python3/dist-packages"};

std::string VariableOr(const char* variable, absl::string_view otherwise) {
  const char* const value = std::getenv(variable);
  return std::string(value == nullptr ? otherwise : value);
}

// Returns the path of `name` in PJRT_NAMES_AND_LIBRARY_PATHS, or "".
absl::StatusOr<std::string> PathInVariable(absl::string_view name) {
  const std::string text = VariableOr(kPathsVariable, "");
  for (const absl::string_view entry :
       absl::StrSplit(text, ',', absl::SkipWhitespace())) {
    const std::pair<absl::string_view, absl::string_view> parts =
        absl::StrSplit(entry, absl::MaxSplits(':', 1));
    if (!absl::StrContains(entry, ':')) {
      return absl::InvalidArgumentError(
          absl::StrCat(kPathsVariable, " has \"", entry,
                       "\"; expected NAME:PATH, separated by commas"));
    }
    if (parts.first == name) return std::string(parts.second);
  }
  return "";
}

// Returns the first file that matches the pattern, or "".
std::string FirstMatch(const std::string& pattern) {
  glob_t found = {};
  std::string path;
  if (glob(pattern.c_str(), 0, nullptr, &found) == 0 && found.gl_pathc > 0) {
    path = found.gl_pathv[0];
  }
  globfree(&found);
  return path;
}

std::string PathInPackages(const PluginPackage& package) {
  const std::string home = VariableOr("HOME", "");
  for (const std::string& prefix :
       {VariableOr("VIRTUAL_ENV", ""), VariableOr("CONDA_PREFIX", ""),
        home.empty() ? home : home + "/.local", std::string("/usr/local"),
        std::string("/usr")}) {
    if (prefix.empty()) continue;
    for (const char* const folder : kPackageFolders) {
      std::string path =
          FirstMatch(absl::StrCat(prefix, folder, "/", package.file));
      if (!path.empty()) return path;
    }
  }
  return "";
}

}  // namespace

absl::StatusOr<std::string> FindPjrtPlugin(absl::string_view name) {
  if (absl::StrContains(name, '/')) return std::string(name);
  ASSIGN_OR_RETURN(std::string path, PathInVariable(name));
  if (path.empty() && name == "tpu") path = VariableOr("TPU_LIBRARY_PATH", "");
  std::vector<absl::string_view> packages;
  for (const PluginPackage& package : kPluginPackages) {
    if (package.plugin != name) continue;
    packages.push_back(package.package);
    if (path.empty()) path = PathInPackages(package);
  }
  if (!path.empty()) return path;
  return absl::NotFoundError(absl::StrCat(
      "there is no PJRT plugin \"", name, "\": ",
      packages.empty()
          ? "expected cpu, cuda, tpu or the path of a plugin, or"
          : absl::StrCat("run `pip install ", packages.front(), "` or"),
      " set ", kPathsVariable, "=", name, ":PATH"));
}

}  // namespace muster
