#include "common/net/collectives/message/payload_sink.h"

#include <algorithm>
#include <cstring>

#include "common/net/collectives/reduce_kernels.h"

namespace muster {

void StoreSink::Take(const uint8_t* data, size_t size_bytes) {
  if (size_bytes > 0) std::memcpy(destination_, data, size_bytes);
  destination_ += size_bytes;
}

void AccumulateSink::Take(const uint8_t* data, size_t size_bytes) {
  if (carried_bytes_ > 0) {
    const size_t count = std::min(size_bytes, element_bytes_ - carried_bytes_);
    std::memcpy(carried_ + carried_bytes_, data, count);
    carried_bytes_ += count;
    data += count;
    size_bytes -= count;
    if (carried_bytes_ < element_bytes_) return;
    AccumulateElements(carried_, 1);
    carried_bytes_ = 0;
  }
  const int64_t element_count = size_bytes / element_bytes_;
  AccumulateElements(data, element_count);
  carried_bytes_ = size_bytes - element_count * element_bytes_;
  if (carried_bytes_ > 0) {
    std::memcpy(carried_, data + element_count * element_bytes_,
                carried_bytes_);
  }
}

void AccumulateSink::AccumulateElements(const uint8_t* data, int64_t count) {
  if (count == 0) return;
  Accumulate(op_, dtype_, count, data, destination_);
  if (divisor_ > 1) Divide(dtype_, count, divisor_, destination_);
  destination_ += count * element_bytes_;
}

}  // namespace muster
