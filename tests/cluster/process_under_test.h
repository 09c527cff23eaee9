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
#include "common/core/system/testing/await_true.h"
#include "common/net/process/child_process.h"

namespace muster {

// A real process that a test starts, reads from, sends signals to and waits
// for. Keeps its whole output. The destructor kills it with its process group.
//
// Thread-safe.
class ProcessUnderTest {
 public:
  // The default timeout of a wait.
  static constexpr absl::Duration kPatience = kTestWaitMax;

  using Environment = std::map<std::string, std::optional<std::string>>;

  // See ChildProcess::Start. TF_CONFIG and MUSTER_* are removed from the
  // environment unless `environment` sets them.
  static absl::StatusOr<std::unique_ptr<ProcessUnderTest>> Start(
      std::vector<std::string> arguments, Environment environment = {});

  ~ProcessUnderTest();

  ProcessUnderTest(const ProcessUnderTest&) = delete;
  ProcessUnderTest& operator=(const ProcessUnderTest&) = delete;

  pid_t pid() const { return child_->pid(); }

  // Returns the next line that contains `text`, after the line that was
  // returned last. Lines of standard output and standard error are in the order
  // in which they were read.
  //   kDeadlineExceeded    no such line was written; the message has the output
  //                        so far
  //   kFailedPrecondition  the process ended without such a line; the message
  //                        has its output
  absl::StatusOr<std::string> AwaitLine(absl::string_view text,
                                        absl::Duration timeout = kPatience)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Sends the signal to this process only, not to its children.
  void SendSignal(int signal);

  // Blocks until the process has ended.
  //   kDeadlineExceeded   it is still running; the message has the output so
  //                       far
  absl::StatusOr<ProcessEnd> AwaitEnd(absl::Duration timeout = kPatience)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Returns the output so far.
  std::string output() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  explicit ProcessUnderTest(std::unique_ptr<ChildProcess> child);

  void ListenLoop() ABSL_LOCKS_EXCLUDED(mutex_);
  void Take(absl::string_view bytes, std::string* partial)
      ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status MakeError(absl::StatusCode code, absl::string_view what) const
      ABSL_LOCKS_EXCLUDED(mutex_);

  const std::unique_ptr<ChildProcess> child_;
  int stop_fd_ = -1;

  mutable absl::Mutex mutex_;
  std::vector<std::string> lines_ ABSL_GUARDED_BY(mutex_);
  size_t next_line_ ABSL_GUARDED_BY(mutex_) = 0;
  std::optional<ProcessEnd> end_ ABSL_GUARDED_BY(mutex_);

  std::thread listener_;
};

// Blocks until no process has this id. Returns false on timeout. For children
// of a process under test.
bool AwaitProcessGone(pid_t pid,
                      absl::Duration timeout = ProcessUnderTest::kPatience);

}  // namespace muster

#endif  // TESTS_CLUSTER_PROCESS_UNDER_TEST_H_
