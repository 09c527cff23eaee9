#include "common/compute/programs/compiled/program_compiler.h"

#include <cstdlib>
#include <optional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "common/compute/programs/compiled/custom_calls.h"
#include "common/compute/programs/compiled/program_cache.h"
#include "common/core/base/status_macros.h"

namespace muster::internal {
namespace {

// The client and the compiled modules of this process.
class Compiler {
 public:
  absl::StatusOr<std::shared_ptr<PjrtClient>> Client(int thread_count) {
    absl::MutexLock lock(&mutex_);
    return LockedClient(thread_count);
  }

  absl::StatusOr<std::shared_ptr<const PjrtExecutable>> Compile(
      absl::string_view stablehlo, int thread_count) {
    absl::MutexLock lock(&mutex_);
    std::shared_ptr<const PjrtExecutable>& executable =
        executables_[std::string(stablehlo)];
    if (executable == nullptr) {
      ASSIGN_OR_RETURN(const auto client, LockedClient(thread_count));
      if (!has_cache_) cache_ = ProgramCache::OfEnvironment();
      has_cache_ = true;
      if (cache_.has_value()) {
        ASSIGN_OR_RETURN(executable,
                         cache_->Compile(*client, stablehlo, thread_count));
      } else {
        ASSIGN_OR_RETURN(executable, CompileChecked(*client, stablehlo));
      }
    }
    return executable;
  }

 private:
  absl::StatusOr<std::shared_ptr<PjrtClient>> LockedClient(int thread_count)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (client_ == nullptr) {
      const char* const plugin = std::getenv(kPluginVariable);
      const bool is_set = plugin != nullptr && *plugin != '\0';
      ASSIGN_OR_RETURN(client_,
                       PjrtClient::Create(is_set ? plugin : "cpu",
                                          {.thread_count = thread_count}));
    }
    return client_;
  }

  absl::Mutex mutex_;
  std::shared_ptr<PjrtClient> client_ ABSL_GUARDED_BY(mutex_);
  std::optional<ProgramCache> cache_ ABSL_GUARDED_BY(mutex_);
  bool has_cache_ ABSL_GUARDED_BY(mutex_) = false;  // `cache_` is set.
  // By the module.
  absl::flat_hash_map<std::string, std::shared_ptr<const PjrtExecutable>>
      executables_ ABSL_GUARDED_BY(mutex_);
};

Compiler& TheCompiler() {
  static auto* const compiler = new Compiler;
  return *compiler;
}

}  // namespace

absl::StatusOr<std::shared_ptr<PjrtClient>> ProgramClient(int thread_count) {
  return TheCompiler().Client(thread_count);
}

absl::StatusOr<std::shared_ptr<const PjrtExecutable>> CompileProgram(
    absl::string_view name, absl::string_view stablehlo, int thread_count) {
  auto executable = TheCompiler().Compile(stablehlo, thread_count);
  if (executable.ok()) return executable;
  const absl::Status& status = executable.status();
  // Compilers report an invalid program as an unknown error.
  return absl::Status(absl::IsUnknown(status)
                          ? absl::StatusCode::kInvalidArgument
                          : status.code(),
                      absl::StrCat("program ", name, ": ", status.message()));
}

}  // namespace muster::internal
