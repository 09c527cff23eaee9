#include "coordinator/closure_id_reservation.h"

#include <limits>

#include "common/core/base/check.h"
#include "common/core/base/status_macros.h"

namespace muster {

ClosureIdReservation::ClosureIdReservation(const Options& options)
    : options_(options),
      limit_(options.record == nullptr ? std::numeric_limits<uint64_t>::max()
                                       : options.first_id) {
  MUSTER_CHECK(options.first_id > 0);
}

absl::Status ClosureIdReservation::Reserve(uint64_t id) {
  absl::MutexLock lock(&recording_);
  uint64_t limit = this->limit();
  if (id < limit) return absl::OkStatus();
  limit += (id - limit) / kBlockSize * kBlockSize + kBlockSize;
#ifndef MUSTER_PLANT_NO_RESERVATION
  RETURN_IF_ERROR(options_.record(limit));
#endif
  limit_.store(limit, std::memory_order_release);
  return absl::OkStatus();
}

}  // namespace muster
