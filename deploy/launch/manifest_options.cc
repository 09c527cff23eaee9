#include "deploy/launch/manifest_options.h"

#include <algorithm>
#include <filesystem>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/core/base/status_macros.h"
#include "common/io/storage/object_url.h"

namespace muster {
namespace {

constexpr absl::string_view kRunFolder = "/run/muster";
// Folders of the image and of other volumes.
constexpr absl::string_view kTakenFolders[] = {
    "/bin",  "/boot", "/dev", "/etc", "/lib", "/lib64",
    "/proc", "/sbin", "/sys", "/tmp", "/usr", "/data"};
constexpr size_t kLabelLengthMax = 63;

absl::Status Unexpected(absl::string_view flag, absl::string_view value,
                        absl::string_view expected) {
  return absl::InvalidArgumentError(absl::StrCat(
      flag, "=", absl::CHexEscape(value), ": expected ", expected));
}

bool IsQuantity(absl::string_view value) {
  return !value.empty() &&
         absl::ascii_isdigit(static_cast<unsigned char>(value.front())) &&
         value.find_first_not_of("0123456789.EPTGMKkmi") ==
             absl::string_view::npos;
}

// True if `value` may be the name of an object or the key of a label:
// lower-case letters, digits and `separators`.
bool IsName(absl::string_view value, absl::string_view separators) {
  return !value.empty() && value.size() <= kLabelLengthMax &&
         std::all_of(value.begin(), value.end(), [&](unsigned char c) {
           return absl::ascii_islower(c) || absl::ascii_isdigit(c) ||
                  separators.find(static_cast<char>(c)) !=
                      absl::string_view::npos;
         });
}

bool NamesUrl(absl::string_view text) {
  return absl::StrContains(text, "s3://") || absl::StrContains(text, "gs://");
}

}  // namespace

absl::StatusOr<Workload> ParseWorkload(absl::string_view name) {
  if (name == "job") return Workload::kJob;
  if (name == "jobset") return Workload::kJobSet;
  if (name == "trainjob") return Workload::kTrainJob;
  return Unexpected("--workload", name, "\"job\", \"jobset\" or \"trainjob\"");
}

absl::StatusOr<GangScheduler> ParseGangScheduler(absl::string_view name) {
  if (name.empty()) return GangScheduler::kNone;
  if (name == "coscheduling") return GangScheduler::kCoscheduling;
  if (name == "volcano") return GangScheduler::kVolcano;
  return Unexpected("--gang", name, "\"coscheduling\" or \"volcano\"");
}

absl::Status CheckManifestOptions(const ManifestOptions& options) {
  if (options.image.empty()) {
    return absl::InvalidArgumentError(
        "--image is missing: the container image that has Muster, as "
        "deploy/image builds it, or your program");
  }
  for (const auto& [flag, value] : {std::pair("--task_cpus", options.cpus),
                                    std::pair("--task_memory", options.memory),
                                    std::pair("--storage", options.storage)}) {
    if (IsQuantity(value)) continue;
    return Unexpected(flag, value,
                      "a quantity of Kubernetes, as in 500m, 2 or 2Gi");
  }
  for (const auto& [flag, value] :
       {std::pair("--queue", options.queue),
        std::pair("--priority_class", options.priority_class),
        std::pair("--kubernetes_service", options.service)}) {
    if (value.empty() || IsName(value, "-.")) continue;
    return Unexpected(flag, value,
                      "the name of an object: up to 63 lower-case letters, "
                      "digits, \"-\" and \".\"");
  }
  if (!options.topology_key.empty() && !IsName(options.topology_key, "-./_")) {
    return Unexpected("--topology_spread", options.topology_key,
                      "the key of a label of nodes, as in "
                      "topology.kubernetes.io/zone");
  }
  if (options.ttl_seconds.has_value() && *options.ttl_seconds < 0) {
    return Unexpected("--ttl", absl::StrCat(*options.ttl_seconds, "s"),
                      "0s or more");
  }
  if (options.status_port < 1 || options.status_port > 65535) {
    return Unexpected("--status_port", absl::StrCat(options.status_port),
                      "1 to 65535: probes need a port that is known before");
  }
  return absl::OkStatus();
}

absl::StatusOr<PodFolders> FoldersOf(const EngineJob& job,
                                     const ManifestOptions& options) {
  const std::string& run_dir = job.plan.run_dir;
  PodFolders folders;
  folders.has_url = NamesUrl(options.job_text) || NamesUrl(run_dir);
  for (const auto& values : {job.plan.settings, job.plan.environment}) {
    for (const auto& [name, value] : values) {
      folders.has_url = folders.has_url || NamesUrl(value);
    }
  }
  if (IsObjectUrl(run_dir)) {
    RETURN_IF_ERROR(ParseObjectUrl(run_dir).status());
    folders.run = run_dir;
    return folders;
  }
  const std::filesystem::path path =
      (std::filesystem::path(std::string(kRunFolder)) / run_dir)
          .lexically_normal();
  folders.run =
      path.has_filename() ? path.string() : path.parent_path().string();
  const bool is_below =
      absl::StartsWith(folders.run, absl::StrCat(kRunFolder, "/"));
  folders.volume = is_below ? std::string(kRunFolder) : folders.run;
  const bool is_taken =
      folders.run == "/" || folders.run == "/run" ||
      (!is_below && !run_dir.empty() && run_dir.front() != '/') ||
      std::any_of(std::begin(kTakenFolders), std::end(kTakenFolders),
                  [&](absl::string_view taken) {
                    return folders.run == taken ||
                           absl::StartsWith(folders.run,
                                            absl::StrCat(taken, "/"));
                  });
  if (!is_taken) return folders;
  return Unexpected("--run_dir", run_dir,
                    absl::StrCat("a path below ", kRunFolder,
                                 ", an absolute path that pods do not need "
                                 "for something else, or a URL"));
}

}  // namespace muster
