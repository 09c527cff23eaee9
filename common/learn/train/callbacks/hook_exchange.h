#ifndef COMMON_LEARN_TRAIN_CALLBACKS_HOOK_EXCHANGE_H_
#define COMMON_LEARN_TRAIN_CALLBACKS_HOOK_EXCHANGE_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/core/system/clock.h"
#include "common/io/storage/disk.h"
#include "nlohmann/json.hpp"

namespace muster {

// Sends events to another process and receives an answer to each, through two
// files of a folder: event.json and answer.json. docs/formats.md defines both.
//
// Not thread-safe.
class HookExchange {
 public:
  // Removes the files of earlier processes. `disk` and `clock` are borrowed.
  //   kNotFound  there is no such folder
  static absl::StatusOr<HookExchange> Open(std::string folder,
                                           Disk* disk = Disk::Real(),
                                           Clock* clock = Clock::Real());

  // Adds the numbers of process and event to `event`, and writes it. The
  // answer to the previous event must have been received.
  absl::Status Send(nlohmann::json event);

  // Blocks until the answer to the last event has arrived, and returns the
  // answer. Returns nullopt after `wait`.
  // Ignores answers to events of earlier processes.
  //   kInvalidArgument  the answer is not a JSON object; names the file
  absl::StatusOr<std::optional<nlohmann::json>> Receive(absl::Duration wait);

 private:
  HookExchange(std::string folder, Disk* disk, Clock* clock);

  absl::StatusOr<std::optional<nlohmann::json>> TakeAnswer();

  std::string event_path_;
  std::string answer_path_;
  Disk* disk_;
  Clock* clock_;
  std::string incarnation_;  // Of this object.
  int64_t sequence_ = 0;     // Number of events so far.
};

}  // namespace muster

#endif  // COMMON_LEARN_TRAIN_CALLBACKS_HOOK_EXCHANGE_H_
