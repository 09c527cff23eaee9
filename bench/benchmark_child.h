#ifndef BENCH_BENCHMARK_CHILD_H_
#define BENCH_BENCHMARK_CHILD_H_

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/core/base/check.h"

namespace muster {

// Runs this program as a child process. The child writes its results to the
// descriptor in its last argument. An error ends the benchmark.
class BenchmarkChild {
 public:
  BenchmarkChild(const std::string& program,
                 std::vector<std::string> arguments) {
    int ends[2];
    MUSTER_CHECK(pipe(ends) == 0);
    fcntl(ends[0], F_SETFD, FD_CLOEXEC);
    arguments.insert(arguments.begin(), program);
    arguments.push_back(absl::StrCat(ends[1]));
    std::vector<char*> argv;
    for (std::string& argument : arguments) argv.push_back(argument.data());
    argv.push_back(nullptr);
    MUSTER_CHECK(posix_spawn(&pid_, "/proc/self/exe", nullptr, nullptr,
                             argv.data(), environ) == 0);
    close(ends[1]);
    output_ = fdopen(ends[0], "r");
  }
  ~BenchmarkChild() {
    waitpid(pid_, nullptr, 0);
    std::fclose(output_);
  }
  BenchmarkChild(const BenchmarkChild&) = delete;
  BenchmarkChild& operator=(const BenchmarkChild&) = delete;

  // Blocks until the child has written a line, or has ended.
  std::string ReadLine() {
    char line[256] = "";
    MUSTER_CHECK(std::fgets(line, sizeof(line), output_) != nullptr);
    return std::string(absl::StripSuffix(line, "\n"));
  }

 private:
  pid_t pid_ = 0;
  FILE* output_ = nullptr;
};

}  // namespace muster

#endif  // BENCH_BENCHMARK_CHILD_H_
