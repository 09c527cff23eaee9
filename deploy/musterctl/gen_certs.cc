#include "deploy/musterctl/gen_certs.h"

#include <filesystem>
#include <iostream>
#include <memory>
#include <string>
#include <system_error>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/core/base/status_macros.h"
#include "common/core/system/small_file.h"
#include "common/io/storage/private_file.h"
#include "common/net/rpc/certificate_authority.h"
#include "common/net/rpc/method_access.h"
#include "deploy/launch/task_counts.h"

ABSL_FLAG(
    std::string, out, "certs",
    "The folder for the files; created if it does not exist. A CA that is "
    "in the folder is reused, so that certificates can be renewed.");
ABSL_FLAG(std::string, job_id, "",
          "The job that the certificates are for; tasks of other jobs are "
          "refused. Letters, digits, \".\", \"-\" and \"_\".");
ABSL_FLAG(int, chiefs, 1, "How many chiefs: 0 or 1.");
ABSL_FLAG(int, operators, 1,
          "How many operators: people and scripts that control the job with "
          "musterctl.");
ABSL_FLAG(absl::Duration, validity, absl::Hours(30 * 24),
          "For how long the certificates are valid.");

namespace muster {
namespace {

constexpr int kTaskCountMax = 10000;

// Returns the CA whose files are in the folder, or a new one if there is none.
absl::StatusOr<std::unique_ptr<CertificateAuthority>> OpenAuthority(
    const std::string& folder, absl::Duration validity) {
  const std::string certificate_path = folder + "/ca.pem";
  const std::string key_path = folder + "/ca.key";
  std::error_code error;
  if (std::filesystem::exists(key_path, error)) {
    ASSIGN_OR_RETURN(const std::string certificate,
                     ReadSmallFile(certificate_path));
    ASSIGN_OR_RETURN(const std::string key, ReadSmallFile(key_path));
    auto authority = CertificateAuthority::FromPem(certificate, key, validity);
    if (authority.ok()) return authority;
    return absl::InvalidArgumentError(absl::StrCat(
        key_path, " and ", certificate_path, ": ", authority.status().message(),
        "; delete both to make a new CA"));
  }
  ASSIGN_OR_RETURN(auto authority, CertificateAuthority::Create(validity));
  ASSIGN_OR_RETURN(const CertificateAuthority::Pem pem, authority->Export());
  RETURN_IF_ERROR(ReplacePrivateFile(key_path, pem.key));
  RETURN_IF_ERROR(ReplacePrivateFile(certificate_path, pem.certificate));
  return authority;
}

}  // namespace

absl::Status GenerateCertificates() {
  const std::string folder = absl::GetFlag(FLAGS_out);
  const std::string job = absl::GetFlag(FLAGS_job_id);
  if (job.empty()) {
    return absl::InvalidArgumentError(
        "gen-certs needs the name of the job that the certificates are for: "
        "musterctl gen-certs --job_id=NAME [--workers=2] [--ps=2] [--chiefs=1] "
        "[--operators=1] [--out=certs] [--validity=720h]");
  }
  if (!IsJobName(job)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--job_id=", job,
        ": expected 1 to 128 letters, digits, \".\", \"-\" and \"_\""));
  }
  struct Role {
    absl::string_view flag;
    std::string name;
    int count;
    int count_max;
  };
  const std::vector<Role> roles = {
      {"chiefs", "chief", absl::GetFlag(FLAGS_chiefs), 1},
      {"workers", "worker", absl::GetFlag(FLAGS_workers), kTaskCountMax},
      {"ps", "ps", absl::GetFlag(FLAGS_ps), kTaskCountMax},
      {"operators", "operator", absl::GetFlag(FLAGS_operators), kTaskCountMax}};
  for (const Role& role : roles) {
    if (role.count < 0 || role.count > role.count_max) {
      return absl::InvalidArgumentError(absl::StrCat(
          "--", role.flag, "=", role.count, ": 0 to ", role.count_max));
    }
  }
  std::error_code error;
  if (std::filesystem::create_directories(folder, error)) {
    std::filesystem::permissions(folder, std::filesystem::perms::owner_all,
                                 error);
  }
  if (error) {
    return absl::InvalidArgumentError(
        absl::StrCat("--out=", folder, ": ", error.message()));
  }
  ASSIGN_OR_RETURN(const auto authority,
                   OpenAuthority(folder, absl::GetFlag(FLAGS_validity)));
  int count = 0;
  for (const Role& role : roles) {
    for (int index = 0; index < role.count; ++index, ++count) {
      RETURN_IF_ERROR(
          WriteTaskFiles(*authority, {job, role.name, index}, folder).status());
    }
  }
  std::cout << "wrote certificates of " << count
            << " tasks and operators of job " << job << " to " << folder
            << ", valid for "
            << absl::FormatDuration(absl::GetFlag(FLAGS_validity)) << std::endl;
  return absl::OkStatus();
}

}  // namespace muster
