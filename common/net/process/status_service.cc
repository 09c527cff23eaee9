#include "common/net/process/status_service.h"

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "common/core/base/status_macros.h"
#include "common/core/system/host_name.h"
#include "common/core/system/log.h"
#include "common/core/system/log_format.h"
#include "common/core/system/small_file.h"
#include "common/net/cluster/address.h"
#include "common/net/process/exit_code.h"
#include "common/net/process/version.h"
#include "common/net/rpc/identity.h"
#include "common/net/status/status_pages.h"

namespace muster {
namespace {

std::string RoleOf(const ClusterConfig& config) {
  const TaskId task = config.task;
  if (config.cluster.empty() && task.type != TaskType::kEvaluator) {
    return "one process";
  }
  const bool comes_once =
      task.type == TaskType::kChief || task.type == TaskType::kEvaluator;
  if (comes_once || config.cluster.sparse(task.type)) return task.ToString();
  return absl::StrCat(task.ToString(), " of ",
                      config.cluster.task_count(task.type));
}

}  // namespace

std::string StartLine(const StartInfo& info) {
  std::string line =
      absl::StrCat("muster ", kVersion, "  ", RoleOf(info.config));
  if (!info.address.empty()) absl::StrAppend(&line, "  ", info.address);
  absl::StrAppend(&line, "  incarnation ", IncarnationString(info.incarnation));
  if (info.seed.has_value()) absl::StrAppend(&line, "  seed ", *info.seed);
  if (!info.resumes_from.empty()) {
    absl::StrAppend(&line, "  resumes from ", info.resumes_from);
  }
  return line;
}

namespace {

// Shorter tokens can be guessed.
constexpr size_t kTokenBytesMin = 16;

absl::StatusOr<std::string> ReadToken(const std::string& path) {
  if (path.empty()) return "";
  const absl::StatusOr<std::string> text = ReadSmallFile(path);
  if (!text.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--status_token_file: ", text.status().message()));
  }
  std::string token(absl::StripAsciiWhitespace(*text));
  if (token.size() < kTokenBytesMin) {
    return absl::InvalidArgumentError(
        absl::StrCat("--status_token_file=", path, ": the token has ",
                     token.size(), " characters; expected at least ",
                     kTokenBytesMin, ", as in: openssl rand -hex 32 > ", path));
  }
  return token;
}

}  // namespace

absl::StatusOr<std::unique_ptr<HttpServer>> ServeStatusPages(
    const TaskOptions& options, const TaskIdentity& identity) {
  if (!options.status.port.has_value()) return nullptr;
  absl::StatusOr<std::string> token = ReadToken(options.status.token_file);
  if (!token.ok()) return WithExitCode(token.status(), ExitCode::kUsage);
  const ClusterConfig& config = options.config;
  HttpServer::Options server = {.host = options.status.host,
                                .port = *options.status.port,
                                .token = *std::move(token)};
  ProcessStatus self = {.version = std::string(kVersion),
                        .job = options.status.job_label,
                        .role = identity.task_type,
                        .index = identity.task_index,
                        .incarnation = identity.incarnation,
                        .host = HostName()};
  server.names.push_back(self.host);
  if (config.cluster.Has(config.task)) {
    ASSIGN_OR_RETURN(self.address, config.cluster.Address(config.task));
    const absl::StatusOr<HostPort> own = ParseHostPort(self.address);
    if (own.ok()) server.names.push_back(own->host);
  }
  self.task = config.IsAlone() ? "this process" : config.task.ToString();
  ASSIGN_OR_RETURN(std::unique_ptr<HttpServer> pages,
                   HttpServer::Start(server, StatusPages(std::move(self))));
  WriteLogLine(LogSeverity::kInfo, absl::StrCat("status page: ", pages->url()));
  return pages;
}

}  // namespace muster
