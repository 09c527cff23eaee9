#include "common/net/process/resource_failure.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <new>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "common/net/process/exit_code.h"

namespace muster {
namespace {

// A task in a small cluster has up to 40 sockets, pipes and data files.
constexpr rlim_t kFileCountMin = 64;

// A worker with a tiny model maps about 270 MiB: libraries, stacks, and the
// arena that malloc() reserves for each thread.
constexpr rlim_t kAddressSpaceMin = rlim_t{512} << 20;

// The functions below must not allocate, because memory may be exhausted.
char name_of_program[64];
std::terminate_handler former_handler;

struct LimitText {
  char text[32];
};

LimitText Limit(int resource, rlim_t unit, const char* unit_name) {
  LimitText limit;
  rlimit found;
  if (getrlimit(static_cast<__rlimit_resource>(resource), &found) != 0 ||
      found.rlim_cur == RLIM_INFINITY) {
    std::snprintf(limit.text, sizeof(limit.text), "not limited");
  } else {
    std::snprintf(limit.text, sizeof(limit.text), "limited to %llu%s",
                  static_cast<unsigned long long>(found.rlim_cur / unit),
                  unit_name);
  }
  return limit;
}

[[noreturn]] void EndWithLimits(const char* failure, const char* reason) {
  char line[512];
  const int length = std::snprintf(
      line, sizeof(line),
      "%s: %s: %s. Address space is %s (ulimit -v), threads are %s (ulimit "
      "-u); raise the limit that is too low, or those of the container\n",
      name_of_program, failure, reason, Limit(RLIMIT_AS, 1024, " KiB").text,
      Limit(RLIMIT_NPROC, 1, "").text);
  const size_t size = std::clamp<int>(length, 0, sizeof(line) - 1);
  if (write(STDERR_FILENO, line, size) < 0) errno = 0;
  _exit(static_cast<int>(ExitCode::kFailure));
}

[[noreturn]] void OnTerminate() {
  if (std::current_exception() != nullptr) {
    try {
      std::rethrow_exception(std::current_exception());
    } catch (const std::system_error& error) {
      const int code = error.code().value();
      if (code == EAGAIN || code == ENOMEM) {
        EndWithLimits("cannot start a thread", std::strerror(code));
      }
    } catch (const std::bad_alloc&) {
      EndWithLimits("out of memory", std::strerror(ENOMEM));
    } catch (...) {
    }
  }
  former_handler();
  std::abort();
}

}  // namespace

void ReportResourceFailures(absl::string_view program_name) {
  const size_t size =
      std::min(program_name.size(), sizeof(name_of_program) - 1);
  program_name.copy(name_of_program, size);
  name_of_program[size] = 0;
  former_handler = std::set_terminate(OnTerminate);
}

absl::Status CheckResourceLimits() {
  rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < kFileCountMin) {
    return absl::ResourceExhaustedError(
        absl::StrCat("open files are limited to ", limit.rlim_cur,
                     " (ulimit -n); a task needs at least ", kFileCountMin,
                     ", and more in a large cluster. Raise the limit"));
  }
  if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur < kAddressSpaceMin) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "Address space is limited to ", limit.rlim_cur / 1024,
        " KiB (ulimit -v); a task needs at least ", kAddressSpaceMin / 1024,
        " KiB, and more for a large model. Raise the limit"));
  }
  return absl::OkStatus();
}

}  // namespace muster
