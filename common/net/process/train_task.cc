#include "common/net/process/train_task.h"

#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <optional>
#include <utility>

#include "common/core/base/random.h"
#include "common/net/cluster/incarnation.h"
#include "common/net/process/exit_code.h"
#include "common/net/process/preemption_notice.h"
#include "common/net/process/shutdown_signals.h"
#include "common/net/process/start_line.h"

namespace muster {

absl::Status TrainTask(TaskOptions options, const TaskIdentity& identity,
                       Network* network, TrainFunction train) {
  ShutdownSignals signals({.grace_period = options.grace_period});
  const uint64_t seed = options.seed.value_or(RandomIdentity());
  // Without a job the program draws from it; a job has a seed of its own, and
  // its summary says which.
  const std::optional<uint64_t> shown =
      options.job_file.empty() ? seed : options.seed;
  std::cerr << StartLine({.config = options.config,
                          .incarnation = Incarnation(identity.incarnation),
                          .seed = shown})
            << std::endl;
  Task task(std::move(options), identity, seed, network);
  signals.SetHandler([&](int signal) {
    // Training ends by itself when it has saved.
    if (PreemptionNotice::OfProcess().Deliver()) return;
    // Nothing to take leave of.
    if (!task.Interrupt()) std::_Exit(128 + signal);
  });
  absl::Status status = train(task);
  signals.SetHandler(nullptr);
  if (!status.ok() && signals.signal() != 0) {
    status = WithExitCode(status, static_cast<ExitCode>(signals.exit_code()));
  }
  return task.EndJob(std::move(status));
}

}  // namespace muster
