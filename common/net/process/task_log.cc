#include "common/net/process/task_log.h"

#include <cstdint>
#include <filesystem>
#include <string>
#include <system_error>

#include "absl/flags/declare.h"
#include "absl/flags/flag.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "common/core/system/log.h"
#include "common/core/system/log_file.h"
#include "common/io/storage/object_url.h"
#include "common/net/cluster/task_id.h"

ABSL_DECLARE_FLAG(bool, log_file);
ABSL_DECLARE_FLAG(uint32_t, log_megabytes);

namespace muster {
namespace {

absl::Status WriteLogIn(const std::filesystem::path& folder,
                        const std::string& name) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) {
    return absl::UnavailableError(
        absl::StrCat("cannot make ", folder.string(), ": ", error.message()));
  }
  const int64_t bytes_max = int64_t{absl::GetFlag(FLAGS_log_megabytes)} << 20;
  return WriteLogToFile((folder / name).string(), bytes_max);
}

}  // namespace

void WriteTaskLog(const ClusterConfig& config, absl::string_view program,
                  const std::string& run_dir) {
  if (!absl::GetFlag(FLAGS_log_file) || IsObjectUrl(run_dir)) return;
  const std::string task =
      config.IsAlone()
          ? std::string(program)
          : absl::StrReplaceAll(config.task.ToString(), {{" ", "-"}});
  const absl::Status status = WriteLogIn(
      std::filesystem::path(run_dir) / "logs", absl::StrCat(task, ".log"));
  if (status.ok()) return;
  LOG(WARNING) << "the log goes to standard error only: " << status.message();
}

}  // namespace muster
