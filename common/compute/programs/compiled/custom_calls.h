#ifndef COMMON_COMPUTE_PROGRAMS_COMPILED_CUSTOM_CALLS_H_
#define COMMON_COMPUTE_PROGRAMS_COMPILED_CUSTOM_CALLS_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/core/pjrt/pjrt_client.h"

namespace muster::internal {

// The environment variable with the names of further functions that programs
// may call, separated by commas; "*" permits all.
inline constexpr char kCustomCallsVariable[] = "MUSTER_PROGRAM_CUSTOM_CALLS";

// Returns the value of the variable; empty if it is not set.
std::string PermittedCustomCallsOfEnvironment();

// True if a program may call a function of the plugin: one of linear algebra,
// sorting or random numbers that JAX exports, one of the libraries of vendors
// that compilers insert, or one in `also_permitted`. Functions that run code
// from the program's own data, such as kernels for GPUs, are not among them.
bool IsPermittedCustomCall(absl::string_view name,
                           absl::string_view also_permitted);

// Checks that a program calls permitted functions only. `names` is the result
// of PjrtExecutable::CustomCalls().
//   kPermissionDenied  it calls another one, which the message names; or the
//                      plugin does not show what it calls
absl::Status CheckCustomCalls(
    const absl::StatusOr<std::vector<std::string>>& names,
    absl::string_view also_permitted);

// Compiles a module, and checks what it calls before it can run.
//   errors  as PjrtClient::Compile() and CheckCustomCalls()
absl::StatusOr<std::unique_ptr<PjrtExecutable>> CompileChecked(
    const PjrtClient& client, absl::string_view stablehlo);

}  // namespace muster::internal

#endif  // COMMON_COMPUTE_PROGRAMS_COMPILED_CUSTOM_CALLS_H_
