#include "tests/faults/network_namespaces.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "common/core/base/status_macros.h"
#include "tests/cluster/process_under_test.h"

namespace muster {
namespace {

constexpr char kFolder[] = "/run/netns";
constexpr char kHostsFile[] = "/run/hosts";
constexpr char kResolverFile[] = "/run/resolv.conf";
// A hardware address that no interface has.
constexpr absl::string_view kNobody = "02:00:00:00:00:fe";

std::string HostName(int host) { return absl::StrCat("host", host); }

absl::Status WriteFile(const char* path, absl::string_view text,
                       int flags = 0) {
  const int file = open(path, O_WRONLY | O_CLOEXEC | flags, 0644);
  if (file < 0) return absl::ErrnoToStatus(errno, path);
  const bool is_written = write(file, text.data(), text.size()) ==
                          static_cast<ssize_t>(text.size());
  const int error = errno;
  close(file);
  return is_written ? absl::OkStatus() : absl::ErrnoToStatus(error, path);
}

// Returns the command that adds or removes ("--append", "--delete") the rule
// that drops packets.
std::string LossRule(int host, absl::string_view action, int percent) {
  return absl::StrCat("nsenter --net=", kFolder, "/", HostName(host),
                      " /usr/sbin/iptables --wait ", action,
                      " INPUT --in-interface eth0 --match statistic --mode "
                      "random --probability ",
                      percent / 100.0, " --jump DROP");
}

// Runs a command, given as words separated by spaces.
absl::Status Run(absl::string_view command) {
  ASSIGN_OR_RETURN(const auto process, ProcessUnderTest::Start(absl::StrSplit(
                                           command, ' ', absl::SkipEmpty())));
  ASSIGN_OR_RETURN(const ProcessEnd end, process->AwaitEnd());
  if (end.ok()) return absl::OkStatus();
  return absl::InternalError(absl::StrCat("\"", command, "\" ", end.ToString(),
                                          ": ", process->output()));
}

}  // namespace

absl::Status NetworkNamespaces::Enter() {
  const uid_t user = getuid();
  const gid_t group = getgid();
  constexpr int kNamespaces = CLONE_NEWNET | CLONE_NEWNS;
  if (unshare(kNamespaces) != 0) {
    // Without root, a user namespace gives the permissions.
    if (unshare(CLONE_NEWUSER | kNamespaces) != 0) {
      return absl::PermissionDeniedError(
          "this process may not make network namespaces");
    }
    RETURN_IF_ERROR(WriteFile("/proc/self/setgroups", "deny"));
    RETURN_IF_ERROR(
        WriteFile("/proc/self/uid_map", absl::StrCat("0 ", user, " 1")));
    RETURN_IF_ERROR(
        WriteFile("/proc/self/gid_map", absl::StrCat("0 ", group, " 1")));
  }
  if (mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
      mount("none", "/run", "tmpfs", 0, nullptr) != 0 ||
      mkdir(kFolder, 0755) != 0) {
    return absl::ErrnoToStatus(errno, "cannot make a folder for namespaces");
  }
  for (const auto& [file, path] :
       {std::pair(kHostsFile, "/etc/hosts"),
        std::pair(kResolverFile, "/etc/resolv.conf")}) {
    RETURN_IF_ERROR(WriteFile(file, "", O_CREAT));
    if (mount(file, path, nullptr, MS_BIND, nullptr) != 0) {
      return absl::ErrnoToStatus(errno, absl::StrCat("cannot replace ", path));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<NetworkNamespaces>> NetworkNamespaces::Create(
    int host_count) {
  std::unique_ptr<NetworkNamespaces> network(new NetworkNamespaces(host_count));
  RETURN_IF_ERROR(Run("ip link add name bridge type bridge"));
  RETURN_IF_ERROR(Run("ip link set bridge up"));
  for (int host = 0; host < host_count; ++host) {
    const std::string name = HostName(host);
    const std::string port = absl::StrCat("port", host);
    for (const std::string& command : {
             absl::StrCat("ip netns add ", name),
             absl::StrCat("ip link add name ", port,
                          " type veth peer name eth0 netns ", name),
             absl::StrCat("ip link set ", port, " master bridge up"),
             absl::StrCat("ip -n ", name, " address add ",
                          network->address(host), "/24 dev eth0"),
             absl::StrCat("ip -n ", name, " link set eth0 up"),
             absl::StrCat("ip -n ", name, " link set lo up"),
         }) {
      RETURN_IF_ERROR(Run(command));
    }
  }
  return network;
}

std::string NetworkNamespaces::address(int host) const {
  return absl::StrCat("10.9.0.", host + 1);
}

std::vector<std::string> NetworkNamespaces::Prefix(int host) const {
  return {"nsenter", absl::StrCat("--net=", kFolder, "/", HostName(host)),
          "--"};
}

absl::Status NetworkNamespaces::Drop(int from, int to) {
  return Run(absl::StrCat("ip -n ", HostName(from), " neighbour replace ",
                          address(to), " lladdr ", kNobody,
                          " nud permanent dev eth0"));
}

absl::Status NetworkNamespaces::Deliver(int from, int to) {
  return Run(absl::StrCat("ip -n ", HostName(from), " neighbour delete ",
                          address(to), " dev eth0"));
}

absl::Status NetworkNamespaces::OpenOnly(int host,
                                         const std::vector<int>& ports) {
  const std::string filter =
      absl::StrCat("nsenter --net=", kFolder, "/", HostName(host),
                   " /usr/sbin/iptables --wait ");
  RETURN_IF_ERROR(
      Run(absl::StrCat(filter,
                       "--append INPUT --in-interface eth0 --match conntrack "
                       "--ctstate ESTABLISHED --jump ACCEPT")));
  for (const int port : ports) {
    RETURN_IF_ERROR(Run(absl::StrCat(
        filter, "--append INPUT --in-interface eth0 --protocol tcp --dport ",
        port, " --jump ACCEPT")));
  }
  return Run(
      absl::StrCat(filter, "--append INPUT --in-interface eth0 --jump DROP"));
}

absl::Status NetworkNamespaces::ResetConnections(int host) {
  return Run(absl::StrCat("nsenter --net=", kFolder, "/", HostName(host),
                          " ss --kill --tcp --oneline state connected"));
}

absl::Status NetworkNamespaces::LoseAtRandom(int host, int percent) {
  return Run(LossRule(host, "--append", percent));
}

absl::Status NetworkNamespaces::LoseNone(int host, int percent) {
  return Run(LossRule(host, "--delete", percent));
}

absl::Status NetworkNamespaces::LimitRate(int host, int bits_per_second) {
  return Run(absl::StrCat("/usr/sbin/tc -n ", HostName(host),
                          " qdisc add dev eth0 root tbf rate ", bits_per_second,
                          "bit burst 32kbit latency 400ms"));
}

absl::Status NetworkNamespaces::SetNames(
    const std::map<std::string, int>& host_of_name) {
  std::string text = "127.0.0.1 localhost\n";
  for (const auto& [name, host] : host_of_name) {
    absl::StrAppend(&text, address(host), " ", name, "\n");
  }
  return WriteFile(kHostsFile, text, O_TRUNC);
}

absl::Status NetworkNamespaces::SetSilentNameServer(int host) {
  for (int from = 0; from < host_count_; ++from) {
    if (from != host) RETURN_IF_ERROR(Drop(from, host));
  }
  return WriteFile(kResolverFile,
                   absl::StrCat("nameserver ", address(host), "\n"), O_TRUNC);
}

absl::Status NetworkNamespaces::RemoveLimit(int host) {
  return Run(absl::StrCat("/usr/sbin/tc -n ", HostName(host),
                          " qdisc delete dev eth0 root"));
}

}  // namespace muster
