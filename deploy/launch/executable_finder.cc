#include "deploy/launch/executable_finder.h"

#include <unistd.h>

#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"

namespace muster {
namespace {

struct StockExecutable {
  absl::string_view name;
  absl::string_view target;  // The Bazel target that builds it.
};

constexpr StockExecutable kStockExecutables[] = {
    {"coordinator", "//coordinator"},
    {"launch", "//deploy/launch"},
    {"musterctl", "//deploy/musterctl"},
    {"ps", "//ps"},
    {"worker", "//worker"},
};

// Returns how to get an executable that is missing.
std::string Advice(absl::string_view name) {
  for (const StockExecutable& executable : kStockExecutables) {
    if (executable.name != name) continue;
    return absl::StrCat("build it (bazel build ", executable.target,
                        "), or give its folder with --bin_dir");
  }
  return "give its folder with --bin_dir";
}

}  // namespace

absl::StatusOr<std::string> FindExecutable(absl::string_view name,
                                           const std::string& own_path,
                                           const std::string& bin_dir) {
  const std::string file(name);
  std::vector<std::filesystem::path> places;
  if (!bin_dir.empty()) {
    places = {std::filesystem::path(bin_dir) / file,
              std::filesystem::path(bin_dir) / file / file};
  } else {
    const std::filesystem::path here =
        std::filesystem::path(own_path).parent_path();
    places = {here / file, here / ".." / ".." / file / file,
              here / ".." / file / file};
  }
  for (const std::filesystem::path& place : places) {
    std::error_code error;
    if (std::filesystem::is_regular_file(place, error) &&
        access(place.c_str(), X_OK) == 0) {
      return place.lexically_normal().string();
    }
  }
  return absl::NotFoundError(absl::StrCat(
      "no executable \"", file, "\" in ",
      absl::StrJoin(places, " or ",
                    [](std::string* out, const std::filesystem::path& place) {
                      out->append(place.lexically_normal().string());
                    }),
      "; ", Advice(name)));
}

std::string OwnPath() {
  std::error_code error;
  return std::filesystem::read_symlink("/proc/self/exe", error).string();
}

}  // namespace muster
