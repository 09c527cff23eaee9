#ifndef COMMON_COMPUTE_PROGRAMS_COMPILED_PROGRAM_CACHE_H_
#define COMMON_COMPUTE_PROGRAMS_COMPILED_PROGRAM_CACHE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/core/pjrt/pjrt_client.h"

namespace muster::internal {

// The environment variable with the folder of compiled programs. The default is
// ~/.cache/muster/programs. No programs are kept if the variable is empty.
inline constexpr char kCacheVariable[] = "MUSTER_PROGRAM_CACHE";

struct ProgramCacheOptions {
  // The oldest files are removed when all have more bytes.
  int64_t bytes_max = int64_t{1} << 30;
  // How long to wait while another process compiles the same program.
  absl::Duration wait_max = absl::Minutes(10);
};

// Compiled programs in a folder: a process that starts again loads them, and so
// do the other tasks on a machine while one of them compiles.
//
// The files contain code that is run. So the folder and the files must belong
// to the user of the process, and no other user may write them. A file is for
// one module, plugin, version of the plugin, processor and number of threads.
//
// Thread-safe. Any failure of the folder leads to a compilation.
class ProgramCache {
 public:
  // Returns the cache in the folder that kCacheVariable says; unset if there is
  // none, or if it cannot be used, of which a line of the log gives the reason.
  static std::optional<ProgramCache> OfEnvironment();

  // Creates the folder if it is missing.
  //   kPermissionDenied  the folder belongs to another user, or others may
  //                      write it
  //   others             the system's error
  static absl::StatusOr<ProgramCache> Open(
      const std::string& folder, const ProgramCacheOptions& options = {});

  // Returns the compiled module: loads the file of the module if the folder has
  // one, and otherwise compiles the module and writes the file.
  //   errors  as CompileChecked()
  absl::StatusOr<std::unique_ptr<PjrtExecutable>> Compile(
      const PjrtClient& client, absl::string_view stablehlo,
      int thread_count) const;

 private:
  ProgramCache(std::string folder, const ProgramCacheOptions& options)
      : folder_(std::move(folder)), options_(options) {}

  // Returns the program in a file; null if there is none that can be used.
  std::unique_ptr<PjrtExecutable> Load(const PjrtClient& client,
                                       const std::string& path) const;
  void Save(const PjrtExecutable& executable, const std::string& path) const;
  void RemoveOldFiles() const;

  std::string folder_;
  ProgramCacheOptions options_;
};

}  // namespace muster::internal

#endif  // COMMON_COMPUTE_PROGRAMS_COMPILED_PROGRAM_CACHE_H_
