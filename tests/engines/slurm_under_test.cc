#include "tests/engines/slurm_under_test.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "common/core/base/status_macros.h"

namespace muster {
namespace {

constexpr char kControl[] = "control";
// In /run, which is mounted for this test: slurmd's sockets need short paths.
constexpr char kFolder[] = "/run/slurm";
constexpr char kConfigurationFile[] = "/run/slurm/slurm.conf";
constexpr char kMungeSocket[] = "/run/munge.socket";
constexpr char kMungeKey[] = "/run/munge.key";

constexpr absl::string_view kConfiguration = R"(ClusterName=muster
SlurmctldHost=control
AuthType=auth/munge
AuthInfo=socket=/run/munge.socket,cred_expire=15
MpiDefault=none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
ReturnToService=2
KillWait=5
SlurmUser=root
SlurmdUser=root
SlurmctldPidFile=/run/slurmctld.pid
SlurmdPidFile=/run/slurmd-%n.pid
SlurmdSpoolDir=/run/slurm/spool-%n
StateSaveLocation=/run/slurm
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SlurmdParameters=config_overrides
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
NodeName=node[0-$LAST] CPUs=2 RealMemory=1000 State=UNKNOWN
PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP PriorityTier=1 GraceTime=60
PartitionName=urgent Nodes=ALL MaxTime=INFINITE State=UP PriorityTier=2
)";

bool IsInstalled(const std::string& program) {
  for (const char* folder : {"/usr/bin/", "/usr/sbin/"}) {
    if (access((folder + program).c_str(), X_OK) == 0) return true;
  }
  return false;
}

absl::Status WriteFile(const std::string& path, absl::string_view text) {
  std::ofstream file(path, std::ios::binary);
  file << text << std::flush;
  return file.good() ? absl::OkStatus()
                     : absl::UnavailableError("cannot write " + path);
}

}  // namespace

absl::Status SlurmUnderTest::CheckAvailable() {
  for (const char* program :
       {"munged", "slurmctld", "slurmd", "sbatch", "srun", "scancel"}) {
    if (IsInstalled(program)) continue;
    return absl::UnavailableError(absl::StrCat(
        program,
        " is not installed; apt-get install --no-install-recommends "
        "munge slurm-client slurmctld slurmd"));
  }
  if (geteuid() == 0) return absl::OkStatus();
  return absl::PermissionDeniedError("slurmd must run as root");
}

absl::StatusOr<std::unique_ptr<SlurmUnderTest>> SlurmUnderTest::Create(
    NetworkNamespaces* network) {
  std::unique_ptr<SlurmUnderTest> slurm(new SlurmUnderTest(network));
  RETURN_IF_ERROR(slurm->StartDaemons());
  const std::string nodes = absl::StrCat(slurm->node_count_);
  RETURN_IF_ERROR(
      slurm->Run({"srun", "--nodes=" + nodes, "--ntasks=" + nodes, "true"})
          .status());
  return slurm;
}

SlurmUnderTest::SlurmUnderTest(NetworkNamespaces* network)
    : network_(network), node_count_(network->host_count() - 1) {}

absl::Status SlurmUnderTest::StartDaemons() {
  std::error_code error;
  std::filesystem::create_directories(kFolder, error);
  RETURN_IF_ERROR(WriteFile(
      kConfigurationFile,
      absl::StrReplaceAll(kConfiguration,
                          {{"$LAST", absl::StrCat(node_count_ - 1)}})));
  RETURN_IF_ERROR(WriteFile(kMungeKey, std::string(64, 'k')));
  std::filesystem::permissions(
      kMungeKey,
      std::filesystem::perms::owner_read | std::filesystem::perms::owner_write,
      error);
  std::map<std::string, int> names = {{kControl, node_count_}};
  for (int node = 0; node < node_count_; ++node) {
    names[absl::StrCat("node", node)] = node;
  }
  RETURN_IF_ERROR(network_->SetNames(names));
  ASSIGN_OR_RETURN(
      daemons_.emplace_back(),
      StartOn(
          node_count_, kControl,
          {"/usr/sbin/munged", "--foreground", "--force",
           absl::StrCat("--key-file=", kMungeKey),
           absl::StrCat("--socket=", kMungeSocket), "--pid-file=/run/munge.pid",
           "--log-file=/run/munge.log", "--seed-file=/run/munge.seed"},
          {}));
  ASSIGN_OR_RETURN(
      daemons_.emplace_back(),
      StartOn(node_count_, kControl, {"/usr/sbin/slurmctld", "-D"}, {}));
  for (const auto& [name, host] : names) {
    if (name == kControl) continue;
    ASSIGN_OR_RETURN(
        daemons_.emplace_back(),
        // The processes of a job are not children of slurmd. They end with the
        // first process of their PID namespace, which is slurmd.
        StartOn(host, name,
                {"unshare", "--pid", "--fork", "--kill-child", "--mount-proc",
                 "/usr/sbin/slurmd", "-D", "-N", name},
                {}));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<ProcessUnderTest>> SlurmUnderTest::StartOn(
    int host, const std::string& name, const std::vector<std::string>& command,
    ProcessUnderTest::Environment environment) {
  std::vector<std::string> arguments = network_->Prefix(host);
  arguments.insert(arguments.end(), {"unshare", "--uts", "--", "sh", "-c",
                                     "hostname \"$0\" && exec \"$@\"", name});
  arguments.insert(arguments.end(), command.begin(), command.end());
  environment["SLURM_CONF"] = kConfigurationFile;
  return ProcessUnderTest::Start(arguments, environment);
}

absl::StatusOr<std::unique_ptr<ProcessUnderTest>> SlurmUnderTest::Start(
    const std::vector<std::string>& command,
    ProcessUnderTest::Environment environment) {
  return StartOn(node_count_, kControl, command, std::move(environment));
}

absl::StatusOr<std::string> SlurmUnderTest::Run(
    const std::vector<std::string>& command,
    ProcessUnderTest::Environment environment) {
  ASSIGN_OR_RETURN(const auto process, Start(command, std::move(environment)));
  absl::StatusOr<ProcessEnd> end = process->AwaitEnd();
  if (end.ok() && end->ok()) return process->output();
  std::string daemons;
  for (const auto& daemon : daemons_) daemons += daemon->output();
  return absl::InternalError(absl::StrCat(
      command.front(), " ",
      end.ok() ? end->ToString() : std::string(end.status().message()), ": ",
      process->output(), "\nThe daemons wrote:\n", daemons));
}

}  // namespace muster
