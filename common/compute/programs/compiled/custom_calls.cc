#include "common/compute/programs/compiled/custom_calls.h"

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/core/base/status_macros.h"

namespace muster::internal {
namespace {

// Functions of which JAX guarantees that their meaning is stable, and those
// that XLA's compilers insert.
constexpr absl::string_view kNames[] = {
    "AllocateBuffer",
    "ApproxTopK",
    "Eigh",
    "LuDecomposition",
    "PadToStatic",
    "ProductOfElementaryHouseholderReflectors",
    "Qr",
    "SPMDFullToShardShape",
    "SPMDShardToFullShape",
    "Sharding",
    "SliceToDynamic",
    "TopK",
    "annotate_device_placement",
    "cu_lu_pivots_to_permutation",
    "cu_threefry2x32_ffi",
};

// Functions of libraries: the code that they run is the library's.
constexpr absl::string_view kPrefixes[] = {
    "__cublas$",  "__cub$",    "__cudnn$",  "__cusolver$", "__onednn$",
    "cub$Device", "cusolver_", "cusparse_", "lapack_",
};

}  // namespace

std::string PermittedCustomCallsOfEnvironment() {
  const char* const names = std::getenv(kCustomCallsVariable);
  return names == nullptr ? "" : names;
}

bool IsPermittedCustomCall(absl::string_view name,
                           absl::string_view also_permitted) {
  const auto begins_name = [&](absl::string_view prefix) {
    return absl::StartsWith(name, prefix);
  };
  const auto is_name = [&](absl::string_view permitted) {
    return permitted == "*" || permitted == name;
  };
  const std::vector<absl::string_view> also =
      absl::StrSplit(also_permitted, ',', absl::SkipEmpty());
  return std::any_of(std::begin(kNames), std::end(kNames), is_name) ||
         std::any_of(std::begin(kPrefixes), std::end(kPrefixes), begins_name) ||
         std::any_of(also.begin(), also.end(), is_name);
}

absl::Status CheckCustomCalls(
    const absl::StatusOr<std::vector<std::string>>& names,
    absl::string_view also_permitted) {
  if (also_permitted == "*") return absl::OkStatus();
  if (!names.ok()) {
    return absl::PermissionDeniedError(absl::StrCat(
        "what the program calls cannot be checked, so it is not run: ",
        names.status().message(), "; to run it set ", kCustomCallsVariable,
        "=* for the tasks"));
  }
  for (const std::string& name : *names) {
    if (IsPermittedCustomCall(name, also_permitted)) continue;
    return absl::PermissionDeniedError(absl::StrCat(
        "the program calls the function \"", name,
        "\" of the plugin, which is not permitted; to permit it set ",
        kCustomCallsVariable, "=", name, " for the tasks"));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<PjrtExecutable>> CompileChecked(
    const PjrtClient& client, absl::string_view stablehlo) {
  ASSIGN_OR_RETURN(auto executable, client.Compile(stablehlo));
  RETURN_IF_ERROR(CheckCustomCalls(executable->CustomCalls(),
                                   PermittedCustomCallsOfEnvironment()));
  return executable;
}

}  // namespace muster::internal
