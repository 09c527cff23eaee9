#include "common/core/pjrt/plugin_path.h"

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
#include "common/core/system/python_packages.h"

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

std::string Variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// Returns the path of `name` in PJRT_NAMES_AND_LIBRARY_PATHS, or "".
absl::StatusOr<std::string> PathInVariable(absl::string_view name) {
  const std::string text = Variable(kPathsVariable);
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

}  // namespace

absl::StatusOr<std::string> FindPjrtPlugin(absl::string_view name) {
  if (absl::StrContains(name, '/')) return std::string(name);
  ASSIGN_OR_RETURN(std::string path, PathInVariable(name));
  if (path.empty() && name == "tpu") path = Variable("TPU_LIBRARY_PATH");
  std::vector<absl::string_view> packages;
  for (const PluginPackage& package : kPluginPackages) {
    if (package.plugin != name) continue;
    packages.push_back(package.package);
    if (path.empty()) path = FindInPythonPackages(package.file);
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
