#include "common/net/rpc/port_check.h"

#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>
#include <set>
#include <string>
#include <system_error>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "common/core/system/small_file.h"

namespace muster {
namespace {

namespace fs = std::filesystem;

constexpr size_t kCommandBytesMax = 60;
// The state LISTEN in /proc/net/tcp.
constexpr absl::string_view kListening = "0A";

using AddressList = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

AddressList Resolve(const std::string& host, const std::string& port) {
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  if (getaddrinfo(host.c_str(), port.c_str(), &hints, &found) != 0) {
    found = nullptr;
  }
  return AddressList(found, &freeaddrinfo);
}

// Returns 0 if the address can be bound, and otherwise the errno.
int BindError(const addrinfo& address) {
  const int fd = socket(address.ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return errno;
  const int on = 1;
  const int off = 0;
  // The options that gRPC uses: old connections in TIME_WAIT do not prevent the
  // bind, and [::] takes the IPv4 port, too.
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  if (address.ai_family == AF_INET6) {
    setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
  }
  const int error =
      bind(fd, address.ai_addr, address.ai_addrlen) == 0 ? 0 : errno;
  close(fd);
  return error;
}

// Returns "socket:[123]" for each socket that listens on `port`.
std::set<std::string> ListeningSockets(int port) {
  std::set<std::string> sockets;
  for (const char* const table : {"/proc/net/tcp", "/proc/net/tcp6"}) {
    const std::string lines = ReadKernelFile(table).value_or("");
    for (const absl::string_view line : absl::StrSplit(lines, '\n')) {
      // "0: 0100007F:C7B3 00000000:0000 0A ... uid timeout inode ..."
      const std::vector<std::string> fields =
          absl::StrSplit(line, ' ', absl::SkipEmpty());
      if (fields.size() < 10 || fields[3] != kListening) continue;
      const size_t colon = fields[1].rfind(':');
      int found = 0;
      if (colon != std::string::npos &&
          absl::SimpleHexAtoi(fields[1].substr(colon + 1), &found) &&
          found == port) {
        sockets.insert(absl::StrCat("socket:[", fields[9], "]"));
      }
    }
  }
  return sockets;
}

bool HoldsOne(const fs::path& process, const std::set<std::string>& sockets) {
  std::error_code error;
  for (fs::directory_iterator it(process / "fd", error), end;
       !error && it != end; it.increment(error)) {
    std::error_code unreadable;
    const fs::path target = fs::read_symlink(it->path(), unreadable);
    if (!unreadable && sockets.contains(target.string())) return true;
  }
  return false;
}

std::string CommandOf(const fs::path& process) {
  std::string command = ReadKernelFile(process / "cmdline").value_or("");
  std::replace(command.begin(), command.end(), '\0', ' ');
  absl::StripTrailingAsciiWhitespace(&command);
  // Removes the folders of the executable.
  const size_t slash = command.rfind('/', command.find(' '));
  if (slash != std::string::npos) command.erase(0, slash + 1);
  if (command.size() > kCommandBytesMax) {
    command.resize(kCommandBytesMax);
    absl::StrAppend(&command, "...");
  }
  return command;
}

// Returns the process that listens on `port`, as "process 123 (ps
// --job_name=ps)", or "another process" if /proc does not show it.
std::string OwnerOf(int port) {
  const std::set<std::string> sockets = ListeningSockets(port);
  std::error_code error;
  for (fs::directory_iterator it("/proc", error), end; !error && it != end;
       it.increment(error)) {
    const std::string name = it->path().filename().string();
    int process_id = 0;
    if (!absl::SimpleAtoi(name, &process_id)) continue;
    if (HoldsOne(it->path(), sockets)) {
      return absl::StrCat("process ", name, " (", CommandOf(it->path()), ")");
    }
  }
  return "another process";
}

}  // namespace

absl::Status CheckPortIsFree(const std::string& address) {
  const size_t colon = address.rfind(':');
  int port = 0;
  if (colon == std::string::npos ||
      !absl::SimpleAtoi(address.substr(colon + 1), &port) || port == 0) {
    return absl::OkStatus();
  }
  std::string host = address.substr(0, colon);
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
  }
  const AddressList addresses = Resolve(host, absl::StrCat(port));
  int error = 0;
  for (const addrinfo* it = addresses.get(); it != nullptr; it = it->ai_next) {
    const int bind_error = BindError(*it);
    // gRPC needs only one of the addresses to listen.
    if (bind_error == 0) return absl::OkStatus();
    if (error == 0 || bind_error == EADDRINUSE) error = bind_error;
  }
  if (error == 0) return absl::OkStatus();
  const std::string problem = absl::StrCat("cannot listen on ", address, ": ");
  if (error == EADDRINUSE) {
    return absl::UnavailableError(
        absl::StrCat(problem, "port ", port, " is taken by ", OwnerOf(port),
                     "; stop it, or give this task another port in TF_CONFIG"));
  }
  if (error == EADDRNOTAVAIL) {
    return absl::InvalidArgumentError(
        absl::StrCat(problem, host,
                     " is no address of this machine; start the task where "
                     "TF_CONFIG says, or use --bind_address"));
  }
  return absl::InvalidArgumentError(
      absl::StrCat(problem, std::strerror(error)));
}

}  // namespace muster
