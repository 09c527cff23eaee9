#ifndef COMMON_NET_COLLECTIVES_MESSAGE_PAYLOAD_SINK_H_
#define COMMON_NET_COLLECTIVES_MESSAGE_PAYLOAD_SINK_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "common/core/tensor/dtype.h"
#include "common/net/collectives/message/lane.h"
#include "common/net/collectives/reduce_op.h"

// The destinations of payloads.
namespace muster {

// Discards the payload.
class DiscardSink final : public PayloadSink {
 public:
  PayloadMemory* memory() override { return nullptr; }
  void Take(const uint8_t*, size_t) override {}
};

// Stores a small payload as text.
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

// Accumulates the payload, elements of `dtype`, into memory as it arrives.
class AccumulateSink final : public PayloadSink {
 public:
  // Divides each element by `divisor` after accumulating it.
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
  // The first bytes of an element whose remaining bytes have not arrived.
  uint8_t carried_[8];
  size_t carried_bytes_ = 0;
};

}  // namespace muster

#endif  // COMMON_NET_COLLECTIVES_MESSAGE_PAYLOAD_SINK_H_
