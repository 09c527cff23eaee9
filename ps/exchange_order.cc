#include "ps/exchange_order.h"

#include "ps/shard_variable.h"

namespace muster {

int64_t ExchangeOrder::Enter(absl::Span<PreparedUpdate> updates) {
  absl::MutexLock lock(&mutex_);
  for (PreparedUpdate& update : updates) update.variable->DrawTickets(&update);
  return ++entered_count_;
}

}  // namespace muster
