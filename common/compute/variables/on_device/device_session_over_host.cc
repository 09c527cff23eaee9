#include "common/compute/variables/on_device/device_session_over_host.h"

#include <deque>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/compute/variables/on_device/step_timeout.h"
#include "common/core/base/status_macros.h"
#include "common/core/system/clock.h"
#include "common/core/tensor/buffer.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/place.h"

namespace muster {
namespace {

bool IsReusable(const Tensor& tensor, const TensorType& type) {
  return tensor.IsValid() && tensor.dtype() == type.dtype &&
         tensor.shape() == type.shape && tensor.IsSoleOwner();
}

class SessionOverHost final : public VariableSession {
 public:
  SessionOverHost(std::unique_ptr<VariableSession> host, Device* device,
                  DeviceStream* stream)
      : host_(std::move(host)), device_(*device), stream_(*stream) {}

  absl::Status BeginPart(uint64_t step_id, int part) override {
    begun_count_ = delivered_count_ = 0;
    for (auto& [variable, value] : values_) value.is_current = false;
    return host_->BeginPart(step_id, part);
  }

  absl::StatusOr<Tensor> Read(int variable) override {
    Value& value = values_[variable];
    if (value.is_current) return value.tensor;
    RETURN_IF_ERROR(DeliverAll());
    ASSIGN_OR_RETURN(const Tensor on_host, host_->Read(variable));
    // An earlier value of this step may still be in use.
    if (!IsReusable(value.tensor, on_host.type())) {
      value.tensor = Tensor();
      ASSIGN_OR_RETURN(value.tensor,
                       OnDevice(on_host.type(), absl::StrCat(variable)));
    }
    RETURN_IF_ERROR(stream_.Copy(on_host, &value.tensor));
    value.is_current = true;
    return value.tensor;
  }

  absl::Status Gather(int variable, const Tensor& indices,
                      Tensor* rows) override {
    RETURN_IF_ERROR(DeliverAll());
    Tensor indices_on_host = indices;
    if (!indices.is_on_host()) {
      indices_on_host = Tensor(indices.dtype(), indices.shape());
      RETURN_IF_ERROR(stream_.Copy(indices, &indices_on_host));
    }
    Tensor rows_on_host(rows->dtype(), rows->shape());
    RETURN_IF_ERROR(host_->Gather(variable, indices_on_host, &rows_on_host));
    if (rows_on_host.type() != rows->type()) {
      *rows = rows_on_host;  // The caller reports the mismatch.
      return absl::OkStatus();
    }
    return stream_.Copy(rows_on_host, rows);
  }

  absl::Status Update(int variable, UpdateKind kind, const Tensor& value,
                      const Tensor& indices) override {
    if (begun_count_ == updates_.size()) updates_.emplace_back();
    PendingUpdate& update = updates_[begun_count_];
    update.variable = variable;
    update.kind = kind;
    RETURN_IF_ERROR(CopyToHost(value, &update.value));
    RETURN_IF_ERROR(CopyToHost(indices, &update.indices));
    if (update.copied == nullptr) {
      ASSIGN_OR_RETURN(update.copied, device_.CreateEvent());
    }
    RETURN_IF_ERROR(stream_.Record(update.copied.get()));
    ++begun_count_;
    values_[variable].is_current = false;
    return DeliverCopied();
  }

  absl::Status SetLossDenominator(double weight) override {
    return host_->SetLossDenominator(weight);
  }
  bool needs_loss_denominator() const override {
    return host_->needs_loss_denominator();
  }

  // Gather() and Update() of the host return data errors at once.
  absl::Status DataError(int) override { return absl::OkStatus(); }

  // The sessions within `host_` accumulate the copied gradients.
  GradientAccumulator* accumulator() override { return nullptr; }

  // The host applies the updates.
  GatedSteps* UseGate(StepGate*) override { return nullptr; }

  absl::Status Commit() override {
    RETURN_IF_ERROR(DeliverAll());
    RETURN_IF_ERROR(host_->Commit());
    // Releases the caller's host tensors; tensors in pinned memory are kept for
    // reuse.
    for (PendingUpdate& update : updates_) {
      for (Tensor* tensor : {&update.value, &update.indices}) {
        if (tensor->place().kind == PlaceKind::kHost) *tensor = Tensor();
      }
    }
    return absl::OkStatus();
  }

 private:
  struct Value {
    Tensor tensor;
    bool is_current = false;
  };
  // Kept between steps to reuse its memory.
  struct PendingUpdate {
    int variable = -1;
    UpdateKind kind = UpdateKind::kAssign;
    Tensor value;
    Tensor indices;
    std::unique_ptr<Event> copied;
  };

  absl::StatusOr<Tensor> OnDevice(const TensorType& type,
                                  absl::string_view variable) {
    const size_t size_bytes = type.shape.element_count() * SizeOf(type.dtype);
    ASSIGN_OR_RETURN(
        std::shared_ptr<Buffer> buffer,
        device_.memory().Allocate(size_bytes, {"copy of variable", variable}));
    device_.memory().NoteUse(*buffer, &stream_);
    return Tensor(type.dtype, type.shape, std::move(buffer));
  }

  // Enqueues a copy of `from` to pinned memory, if it is on the device.
  absl::Status CopyToHost(const Tensor& from, Tensor* to) {
    if (!from.IsValid() || from.is_on_host()) {
      *to = from;
      return absl::OkStatus();
    }
    if (!IsReusable(*to, from.type()) ||
        to->place().kind != PlaceKind::kPinnedHost) {
      ASSIGN_OR_RETURN(std::shared_ptr<Buffer> buffer,
                       device_.pinned_memory().Allocate(from.size_bytes()));
      *to = Tensor(from.dtype(), from.shape(), std::move(buffer));
    }
    return stream_.Copy(from, to);
  }

  absl::Status Deliver(const PendingUpdate& update) {
    ++delivered_count_;
    return host_->Update(update.variable, update.kind, update.value,
                         update.indices);
  }

  absl::Status DeliverCopied() {
    while (delivered_count_ < begun_count_) {
      const PendingUpdate& next = updates_[delivered_count_];
      ASSIGN_OR_RETURN(const bool is_copied, next.copied->IsReached());
      if (!is_copied) break;
      RETURN_IF_ERROR(Deliver(next));
    }
    return absl::OkStatus();
  }

  absl::Status DeliverAll() {
    const absl::Time deadline = Clock::Real()->Now() + kStepTimeout;
    while (delivered_count_ < begun_count_) {
      const PendingUpdate& next = updates_[delivered_count_];
      RETURN_IF_ERROR(stream_.Await(*next.copied, deadline,
                                    "the updates of variables of a step"));
      RETURN_IF_ERROR(Deliver(next));
    }
    return absl::OkStatus();
  }

  const std::unique_ptr<VariableSession> host_;
  Device& device_;
  DeviceStream& stream_;
  absl::flat_hash_map<int, Value> values_;
  std::deque<PendingUpdate> updates_;
  size_t begun_count_ = 0;
  size_t delivered_count_ = 0;
};

}  // namespace

std::unique_ptr<VariableSession> DeviceSessionOverHost(
    std::unique_ptr<VariableSession> host, Device* device,
    DeviceStream* stream) {
  return std::make_unique<SessionOverHost>(std::move(host), device, stream);
}

}  // namespace muster
