#include "common/compute/variables/on_device/host_session_over_device.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/compute/variables/on_device/device_variable.h"
#include "common/compute/variables/on_device/step_timeout.h"
#include "common/core/base/status_macros.h"
#include "common/core/system/clock.h"
#include "common/core/tensor/tensor.h"

namespace muster {
namespace {

class SessionOverDevice final : public VariableSession {
 public:
  SessionOverDevice(Device* device, std::unique_ptr<DeviceStream> stream,
                    std::unique_ptr<VariableSession> on_device)
      : device_(*device),
        stream_(std::move(stream)),
        on_device_(std::move(on_device)) {}

  absl::Status BeginPart(uint64_t step_id, int part) override {
    return on_device_->BeginPart(step_id, part);
  }
  absl::StatusOr<Tensor> Read(int variable) override {
    ASSIGN_OR_RETURN(const Tensor value, on_device_->Read(variable));
    Tensor on_host(value.dtype(), value.shape());
    RETURN_IF_ERROR(CopyToHost(value, &on_host));
    return on_host;
  }
  absl::Status Gather(int variable, const Tensor& indices,
                      Tensor* rows) override;
  absl::Status Update(int variable, UpdateKind kind, const Tensor& value,
                      const Tensor& indices) override {
    return on_device_->Update(variable, kind, value, indices);
  }
  absl::Status SetLossDenominator(double weight) override {
    return on_device_->SetLossDenominator(weight);
  }
  bool needs_loss_denominator() const override {
    return on_device_->needs_loss_denominator();
  }
  absl::Status DataError(int call) override {
    return on_device_->DataError(call);
  }
  GradientAccumulator* accumulator() override {
    return on_device_->accumulator();
  }
  // No gate: the caller's steps run on the host.
  GatedSteps* UseGate(StepGate*) override { return nullptr; }
  absl::Status Commit() override {
    RETURN_IF_ERROR(on_device_->Commit());
    return Await();
  }

 private:
  absl::Status Await() {
    return stream_->Drain(Clock::Real()->Now() + kStepTimeout,
                          "a step of the host");
  }
  absl::Status CopyToHost(const Tensor& from, Tensor* to) {
    RETURN_IF_ERROR(stream_->Copy(from, to));
    return Await();
  }
  absl::StatusOr<Tensor> OnDevice(const TensorType& type) {
    ASSIGN_OR_RETURN(Tensor tensor,
                     AllocateOnDevice(&device_, type, "rows of variable", ""));
    return tensor;
  }

  Device& device_;
  const std::unique_ptr<DeviceStream> stream_;
  const std::unique_ptr<VariableSession> on_device_;  // Uses stream_.
};

absl::Status SessionOverDevice::Gather(int variable, const Tensor& indices,
                                       Tensor* rows) {
  ASSIGN_OR_RETURN(Tensor indices_on_device, OnDevice(indices.type()));
  RETURN_IF_ERROR(stream_->Copy(indices, &indices_on_device));
  ASSIGN_OR_RETURN(Tensor rows_on_device, OnDevice(rows->type()));
  RETURN_IF_ERROR(
      on_device_->Gather(variable, indices_on_device, &rows_on_device));
  if (rows_on_device.type() != rows->type()) {
    *rows = rows_on_device;  // The caller reports the mismatch.
    return absl::OkStatus();
  }
  return CopyToHost(rows_on_device, rows);
}

}  // namespace

std::unique_ptr<VariableSession> HostSessionOverDevice(
    Device* device, std::unique_ptr<DeviceStream> stream,
    std::unique_ptr<VariableSession> on_device) {
  return std::make_unique<SessionOverDevice>(device, std::move(stream),
                                             std::move(on_device));
}

}  // namespace muster
