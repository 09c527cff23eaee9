#ifndef PS_EXCHANGE_ORDER_H_
#define PS_EXCHANGE_ORDER_H_

#include <cstdint>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "ps/prepared_update.h"

namespace muster {

// The order in which a server applies exchanges. Two servers that apply the
// same exchanges in the same order have the same bits in all values and slots,
// for any number of threads.
//
// An exchange enters the order before its first update. It then has a *ticket*
// for each stripe that it changes: its place among the updates of that stripe.
// Updates of a stripe wait for their turn. All tickets of an exchange are drawn
// at once, so an exchange waits only for exchanges that entered before it, and
// the first one waits for none. It waits for computation and for records of the
// log, never for a message.
//
// Thread-safe.
class ExchangeOrder {
 public:
  // Calls `record`, and then draws the tickets of all updates of an exchange.
  // The calls of `record` have the order of the exchanges. If one returns an
  // error, the exchange does not enter. Returns its number in the order,
  // from 1.
  absl::StatusOr<int64_t> Enter(absl::Span<PreparedUpdate> updates,
                                absl::FunctionRef<absl::Status()> record)
      ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  absl::Mutex mutex_;
  int64_t entered_count_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace muster

#endif  // PS_EXCHANGE_ORDER_H_
