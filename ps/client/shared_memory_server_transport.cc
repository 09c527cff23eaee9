#include "ps/client/shared_memory_server_transport.h"

#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "common/core/tensor/dtype.h"
#include "ps/client/methods.h"

namespace muster {
namespace {

// Smaller tensors are copied into the message, which costs no more than their
// offsets.
constexpr size_t kSharedBytesMin = 4 << 10;

size_t SizeBytes(const TensorType& type) {
  return type.shape.element_count() * SizeOf(type.dtype);
}

bool CanBeShared(const Tensor& tensor) {
  return tensor.dtype() != DType::kString && tensor.size_bytes() > 0;
}

// True if the server may still be processing the exchange. All other errors are
// sent by the server itself, after it has finished.
bool IsEndUnknown(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kDeadlineExceeded:
    case absl::StatusCode::kCancelled:
    case absl::StatusCode::kAborted:
    case absl::StatusCode::kUnknown:
      return true;
    default:
      return false;
  }
}

// The memory of one exchange in the segment.
struct Lease {
  // Copies of updates, followed by responses for which the caller gave no
  // address.
  std::shared_ptr<Buffer> staging;
  // Buffers of the caller in the segment: updates, and addresses of responses.
  std::vector<std::shared_ptr<Buffer>> lent;
  // Responses by slot.
  std::vector<std::optional<ReceivedTensor>> answers;
};

class SharedMemoryServerTransport final : public ServerTransport {
 public:
  SharedMemoryServerTransport(Channel* channel,
                              std::shared_ptr<SegmentPool> pool,
                              std::shared_ptr<std::atomic<uint64_t>> segment_id)
      : channel_(channel),
        pool_(std::move(pool)),
        segment_id_(std::move(segment_id)),
        beside_(MakeChannelTransport(channel)) {}

  void StartExchange(const OutgoingExchange& exchange, Done done) override;

 private:
  // Which tensors of an exchange go through the segment.
  struct Plan {
    bool shares_tensors = false;
    bool shares_answers = false;
    size_t staged_bytes = 0;
  };

  // True if the server can access `data` in the segment, without a copy.
  bool IsInSegment(const uint8_t* data) const {
    return data != nullptr && pool_->Holds(data);
  }
  Plan MakePlan(const OutgoingExchange& exchange) const;
  // Writes updates and offsets. Returns the tensors that go into the message.
  std::vector<Tensor> Stage(const OutgoingExchange& exchange, uint8_t* staging,
                            uint8_t** staging_end,
                            proto::ExchangeRequest* request, Lease* lease);
  void PlaceAnswers(const OutgoingExchange& exchange, uint8_t* staging,
                    proto::ExchangeRequest* request, Lease* lease);
  void TakeAnswer(const OutgoingExchange& exchange, Lease lease,
                  absl::StatusOr<ReceivedMessage> message, Done done);

  Channel* const channel_;
  const std::shared_ptr<SegmentPool> pool_;
  const std::shared_ptr<std::atomic<uint64_t>> segment_id_;
  const std::unique_ptr<ServerTransport> beside_;
};

SharedMemoryServerTransport::Plan SharedMemoryServerTransport::MakePlan(
    const OutgoingExchange& exchange) const {
  Plan plan;
  size_t tensor_bytes = 0, copied_bytes = 0;
  for (const Tensor& tensor : *exchange.tensors) {
    if (!CanBeShared(tensor)) continue;
    tensor_bytes += tensor.size_bytes();
    if (!IsInSegment(tensor.raw_data())) {
      copied_bytes += SegmentPool::RoundedUp(tensor.size_bytes());
    }
  }
  size_t answer_bytes = 0, unplaced_bytes = 0;
  for (const AnswerSlot& slot : *exchange.slots) {
    const size_t size_bytes = SizeBytes(slot.type);
    answer_bytes += size_bytes;
    if (!IsInSegment(slot.place)) {
      unplaced_bytes += SegmentPool::RoundedUp(size_bytes);
    }
  }
  plan.shares_tensors = tensor_bytes >= kSharedBytesMin;
  plan.shares_answers = answer_bytes >= kSharedBytesMin;
  plan.staged_bytes = (plan.shares_tensors ? copied_bytes : 0) +
                      (plan.shares_answers ? unplaced_bytes : 0);
  return plan;
}

std::vector<Tensor> SharedMemoryServerTransport::Stage(
    const OutgoingExchange& exchange, uint8_t* staging, uint8_t** staging_end,
    proto::ExchangeRequest* request, Lease* lease) {
  std::vector<Tensor> beside;
  request->mutable_tensor_offsets()->Reserve(
      static_cast<int>(exchange.tensors->size()));
  for (const Tensor& tensor : *exchange.tensors) {
    if (!CanBeShared(tensor)) {
      request->add_tensor_offsets(0);
      beside.push_back(tensor);
      continue;
    }
    const uint8_t* data = tensor.raw_data();
    if (IsInSegment(data)) {
      lease->lent.push_back(tensor.buffer());
    } else {
      std::memcpy(staging, data, tensor.size_bytes());
      data = staging;
      staging += SegmentPool::RoundedUp(tensor.size_bytes());
    }
    request->add_tensor_offsets(pool_->OffsetOf(data));
    request->add_tensor_dtypes(static_cast<int>(tensor.dtype()));
    request->add_tensor_ranks(tensor.shape().rank());
    for (int64_t dim : tensor.shape().dims()) request->add_tensor_dims(dim);
  }
  *staging_end = staging;
  return beside;
}

void SharedMemoryServerTransport::PlaceAnswers(const OutgoingExchange& exchange,
                                               uint8_t* staging,
                                               proto::ExchangeRequest* request,
                                               Lease* lease) {
  lease->answers.reserve(exchange.slots->size());
  request->mutable_answer_offsets()->Reserve(
      static_cast<int>(exchange.slots->size()));
  for (const AnswerSlot& slot : *exchange.slots) {
    const size_t size_bytes = SizeBytes(slot.type);
    uint8_t* data = slot.place;
    std::shared_ptr<Buffer> owner = slot.place_owner;
    if (size_bytes == 0) {
      request->add_answer_offsets(0);
      lease->answers.emplace_back();
      continue;
    }
    if (IsInSegment(data)) {
      lease->lent.push_back(owner);
    } else {
      data = staging;
      owner = lease->staging;
      staging += SegmentPool::RoundedUp(size_bytes);
    }
    request->add_answer_offsets(pool_->OffsetOf(data));
    lease->answers.emplace_back(ReceivedTensor(
        slot.type, {MessageSlice{data, size_bytes, std::move(owner)}}));
  }
}

void SharedMemoryServerTransport::StartExchange(
    const OutgoingExchange& exchange, Done done) {
  const uint64_t segment_id = segment_id_->load(std::memory_order_acquire);
  if (segment_id == 0 || !exchange.may_share_memory) {
    beside_->StartExchange(exchange, std::move(done));
    return;
  }
  const Plan plan = MakePlan(exchange);
  Lease lease;
  if (plan.staged_bytes > 0) lease.staging = pool_->Allocate(plan.staged_bytes);
  if ((!plan.shares_tensors && !plan.shares_answers) ||
      (plan.staged_bytes > 0 && lease.staging == nullptr)) {
    beside_->StartExchange(exchange, std::move(done));
    return;
  }
  proto::ExchangeRequest request = *exchange.request;
  request.set_segment_id(segment_id);
  uint8_t* staging = lease.staging == nullptr ? nullptr : lease.staging->data();
  std::vector<Tensor> beside;
  if (plan.shares_tensors) {
    beside = Stage(exchange, staging, &staging, &request, &lease);
  } else {
    beside = *exchange.tensors;
  }
  if (plan.shares_answers) PlaceAnswers(exchange, staging, &request, &lease);
  channel_->StartCall(
      kExchangeMethod, Message{request.SerializeAsString(), std::move(beside)},
      {.timeout = exchange.timeout},
      [this, exchange, lease = std::move(lease), done = std::move(done)](
          absl::StatusOr<ReceivedMessage> message) mutable {
        TakeAnswer(exchange, std::move(lease), std::move(message),
                   std::move(done));
      });
}

void SharedMemoryServerTransport::TakeAnswer(
    const OutgoingExchange& exchange, Lease lease,
    absl::StatusOr<ReceivedMessage> message, Done done) {
  if (!message.ok()) {
    if (IsEndUnknown(message.status())) {
      if (lease.staging != nullptr) pool_->Abandon(*lease.staging);
      for (const auto& buffer : lease.lent) pool_->Abandon(*buffer);
    }
    done(message.status());
    return;
  }
  const auto response = message->ParseBody<proto::ExchangeResponse>();
  if (response.ok() && response->segment_is_unknown()) {
    segment_id_->store(0, std::memory_order_release);
    beside_->StartExchange(exchange, std::move(done));
    return;
  }
  done(SortAnswer(exchange, *message, std::move(lease.answers)));
}

}  // namespace

std::unique_ptr<ServerTransport> MakeSharedMemoryServerTransport(
    Channel* channel, std::shared_ptr<SegmentPool> pool,
    std::shared_ptr<std::atomic<uint64_t>> segment_id) {
  return std::make_unique<SharedMemoryServerTransport>(channel, std::move(pool),
                                                       std::move(segment_id));
}

}  // namespace muster
