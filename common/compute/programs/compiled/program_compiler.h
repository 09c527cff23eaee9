#ifndef COMMON_COMPUTE_PROGRAMS_COMPILED_PROGRAM_COMPILER_H_
#define COMMON_COMPUTE_PROGRAMS_COMPILED_PROGRAM_COMPILER_H_

#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/core/pjrt/pjrt_client.h"

namespace muster::internal {

// The environment variable with the name or path of the plugin that compiles
// programs, as for FindPjrtPlugin(). The default is "cpu".
inline constexpr char kPluginVariable[] = "MUSTER_PJRT_PLUGIN";

// Returns the client that runs the programs of this process. It is created by
// the first call, for `thread_count` threads, and lives as long as the process.
// Thread-safe.
//   errors  as PjrtClient::Create(); a later call tries again
absl::StatusOr<std::shared_ptr<PjrtClient>> ProgramClient(int thread_count);

// Compiles a module of the program `name` with ProgramClient(), or takes the
// result from the disk (program_cache.h). A module is compiled once and kept as
// long as the process: metrics evaluate theirs again and again. Blocks while
// another thread compiles. Thread-safe.
//   kInvalidArgument  the plugin refuses the module; its words name the op
//   other codes       as ProgramClient() and CompileChecked()
// Each message names the program.
absl::StatusOr<std::shared_ptr<const PjrtExecutable>> CompileProgram(
    absl::string_view name, absl::string_view stablehlo, int thread_count);

}  // namespace muster::internal

#endif  // COMMON_COMPUTE_PROGRAMS_COMPILED_PROGRAM_COMPILER_H_
