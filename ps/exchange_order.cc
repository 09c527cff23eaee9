#include "ps/exchange_order.h"

#include "common/core/base/status_macros.h"
#include "ps/shard_variable.h"

namespace muster {

absl::StatusOr<int64_t> ExchangeOrder::Enter(
    absl::Span<PreparedUpdate> updates,
    absl::FunctionRef<absl::Status()> record) {
  absl::MutexLock lock(&mutex_);
  RETURN_IF_ERROR(record());
  for (PreparedUpdate& update : updates) update.variable->DrawTickets(&update);
  return ++entered_count_;
}

}  // namespace muster
