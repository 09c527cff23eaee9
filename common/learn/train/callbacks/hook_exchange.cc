#include "common/learn/train/callbacks/hook_exchange.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "common/core/base/random.h"
#include "common/core/base/status_macros.h"

namespace muster {
namespace {

using Json = nlohmann::json;

constexpr int64_t kAnswerBytesMax = int64_t{16} << 20;
// A quick callback is answered within the first, and a slow one costs little
// with the last.
constexpr absl::Duration kPollIntervalMin = absl::Microseconds(50);
constexpr absl::Duration kPollIntervalMax = absl::Milliseconds(5);

}  // namespace

HookExchange::HookExchange(std::string folder, Disk* disk, Clock* clock)
    : event_path_(JoinPath(folder, "event.json")),
      answer_path_(JoinPath(folder, "answer.json")),
      disk_(disk),
      clock_(clock),
      incarnation_(absl::StrCat(RandomIdentity())) {}

absl::StatusOr<HookExchange> HookExchange::Open(std::string folder, Disk* disk,
                                                Clock* clock) {
  RETURN_IF_ERROR(disk->List(folder).status());
  HookExchange exchange(std::move(folder), disk, clock);
  for (const std::string& path :
       {exchange.event_path_, exchange.answer_path_}) {
    if (const absl::Status removed = disk->Remove(path);
        !removed.ok() && !absl::IsNotFound(removed)) {
      return removed;
    }
  }
  return exchange;
}

absl::Status HookExchange::Send(Json event) {
  event["incarnation"] = incarnation_;
  event["sequence"] = ++sequence_;
  return ReplaceFileUnsynced(disk_, event_path_, event.dump());
}

absl::StatusOr<std::optional<Json>> HookExchange::TakeAnswer() {
  const absl::StatusOr<std::string> text =
      ReadFile(disk_, answer_path_, kAnswerBytesMax);
  if (absl::IsNotFound(text.status())) return std::nullopt;
  RETURN_IF_ERROR(text.status());
  RETURN_IF_ERROR(disk_->Remove(answer_path_));
  Json answer = Json::parse(*text, /*cb=*/nullptr, /*allow_exceptions=*/false);
  if (!answer.is_object()) {
    return absl::InvalidArgumentError(
        absl::StrCat(answer_path_, " has \"", text->substr(0, 100),
                     "\"; expected a JSON object"));
  }
  const bool is_of_event =
      answer.value("incarnation", Json()) == incarnation_ &&
      answer.value("sequence", Json()) == sequence_;
  if (!is_of_event) return std::nullopt;
  return answer;
}

absl::StatusOr<std::optional<Json>> HookExchange::Receive(absl::Duration wait) {
  const absl::Time deadline = clock_->Now() + wait;
  absl::Duration interval = kPollIntervalMin;
  while (true) {
    ASSIGN_OR_RETURN(std::optional<Json> answer, TakeAnswer());
    if (answer.has_value() || clock_->Now() >= deadline) return answer;
    absl::Mutex mutex;
    absl::MutexLock lock(&mutex);
    bool never = false;
    clock_->AwaitWithDeadline(&mutex, absl::Condition(&never),
                              std::min(deadline, clock_->Now() + interval));
    interval = std::min(interval * 1.5, kPollIntervalMax);
  }
}

}  // namespace muster
