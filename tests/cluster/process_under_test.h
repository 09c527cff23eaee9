#ifndef TESTS_CLUSTER_PROCESS_UNDER_TEST_H_
#define TESTS_CLUSTER_PROCESS_UNDER_TEST_H_

#include <sys/types.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/net/process/child_process.h"

namespace muster {

// A real process that a test starts, listens to, hurts and sees end. Everything
// it writes is kept. Killed, with all it has started in its group, when this
// goes out of scope.
//
// Thread-safe.
class ProcessUnderTest {
 public:
  // How long a wait lasts at most, unless told otherwise: long enough for a
  // loaded machine, because a test that passes never waits that long.
  static constexpr absl::Duration kPatience = absl::Seconds(60);

  using Environment = std::map<std::string, std::optional<std::string>>;

  // As ChildProcess::Start. TF_CONFIG and MUSTER_* are taken out of the
  // environment unless `environment` sets them.
  static absl::StatusOr<std::unique_ptr<ProcessUnderTest>> Start(
      std::vector<std::string> arguments, Environment environment = {});

  ~ProcessUnderTest();

  ProcessUnderTest(const ProcessUnderTest&) = delete;
  ProcessUnderTest& operator=(const ProcessUnderTest&) = delete;

  pid_t pid() const { return child_->pid(); }

  // The next line that contains `text`, after the one returned last. Of lines
  // on standard output and standard error, in the order they came.
  //
  //   kDeadlineExceeded   no such line came; has all output so far
  //   kFailedPrecondition the process ended without one; has all its output
  absl::StatusOr<std::string> AwaitLine(absl::string_view text,
                                        absl::Duration timeout = kPatience)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // To this process alone, not to what it has started.
  void SendSignal(int signal);

  //   kDeadlineExceeded   it still runs; has all output so far
  absl::StatusOr<ProcessEnd> AwaitEnd(absl::Duration timeout = kPatience)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // All it wrote so far.
  std::string output() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  explicit ProcessUnderTest(std::unique_ptr<ChildProcess> child);

  void ListenLoop() ABSL_LOCKS_EXCLUDED(mutex_);
  void Take(absl::string_view bytes, std::string* partial)
      ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status Complain(absl::StatusCode code, absl::string_view what) const
      ABSL_LOCKS_EXCLUDED(mutex_);

  const std::unique_ptr<ChildProcess> child_;
  int stop_fd_ = -1;

  mutable absl::Mutex mutex_;
  std::vector<std::string> lines_ ABSL_GUARDED_BY(mutex_);
  size_t next_line_ ABSL_GUARDED_BY(mutex_) = 0;
  std::optional<ProcessEnd> end_ ABSL_GUARDED_BY(mutex_);

  std::thread listener_;
};

// Waits until no process has this id, and whether that came to pass. For
// processes that a process under test has started.
bool AwaitProcessGone(pid_t pid,
                      absl::Duration timeout = ProcessUnderTest::kPatience);

}  // namespace muster

#endif  // TESTS_CLUSTER_PROCESS_UNDER_TEST_H_
