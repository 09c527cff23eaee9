#ifndef COMMON_NET_COLLECTIVES_MESSAGE_PAYLOAD_SINK_H_
#define COMMON_NET_COLLECTIVES_MESSAGE_PAYLOAD_SINK_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "common/core/tensor/dtype.h"
#include "common/net/collectives/message/lane.h"
#include "common/net/collectives/reduce_op.h"

// Where payloads end up.
namespace muster {

// Lets the payload go.
class DiscardSink final : public PayloadSink {
 public:
  PayloadMemory* memory() override { return nullptr; }
  void Take(const uint8_t*, size_t) override {}
};

// Keeps a small payload.
class TextSink final : public PayloadSink {
 public:
  PayloadMemory* memory() override { return nullptr; }
  void Take(const uint8_t* data, size_t size_bytes) override {
    text_.append(reinterpret_cast<const char*>(data), size_bytes);
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

// Writes the payload to memory.
class StoreSink final : public PayloadSink, public PayloadMemory {
 public:
  explicit StoreSink(uint8_t* destination) : destination_(destination) {}

  PayloadMemory* memory() override { return this; }
  uint8_t* next() override { return destination_; }
  void Wrote(size_t size_bytes) override { destination_ += size_bytes; }
  void Take(const uint8_t* data, size_t size_bytes) override;

 private:
  uint8_t* destination_;
};

// Accumulates the payload, elements of `dtype`, into memory, as much of it as
// has arrived.
class AccumulateSink final : public PayloadSink {
 public:
  // `divisor`: what each element is divided by when it has been accumulated.
  AccumulateSink(ReduceOp op, DType dtype, int divisor, uint8_t* destination)
      : op_(op),
        dtype_(dtype),
        divisor_(divisor),
        element_bytes_(SizeOf(dtype)),
        destination_(destination) {}

  PayloadMemory* memory() override { return nullptr; }
  void Take(const uint8_t* data, size_t size_bytes) override;

 private:
  void AccumulateElements(const uint8_t* data, int64_t count);

  const ReduceOp op_;
  const DType dtype_;
  const int divisor_;
  const size_t element_bytes_;
  uint8_t* destination_;
  // The beginning of an element that was split.
  uint8_t carried_[8];
  size_t carried_bytes_ = 0;
};

}  // namespace muster

#endif  // COMMON_NET_COLLECTIVES_MESSAGE_PAYLOAD_SINK_H_
