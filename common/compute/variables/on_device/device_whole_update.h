#ifndef COMMON_COMPUTE_VARIABLES_ON_DEVICE_DEVICE_WHOLE_UPDATE_H_
#define COMMON_COMPUTE_VARIABLES_ON_DEVICE_DEVICE_WHOLE_UPDATE_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/compute/kernels/cuda/device_code/update_parameters.h"
#include "common/compute/optimizers/update_rule.h"
#include "common/compute/variables/on_device/device_scratch.h"
#include "common/core/device/device.h"
#include "common/core/device/driver/launch_shape.h"
#include "common/core/device/stream.h"
#include "common/core/tensor/dtype.h"

namespace muster {

// Enqueues the passes of update rules that need the whole variable at once, on
// one stream. Each variable takes several launches. Errors are those of the
// device. Not thread-safe.
class DeviceWholeUpdate {
 public:
  DeviceWholeUpdate(Device* device, DeviceStream* stream)
      : device_(*device), stream_(*stream) {}

  // Applies `pass`, which has sees_whole_variable, to a variable of `dtype`
  // with `count` elements.
  absl::Status Apply(const UpdatePass& pass, DType dtype, int64_t count,
                     const internal::WholeItem& item);

 private:
  absl::Status ApplyAdafactor(const AdafactorCoefficients& coefficients,
                              int64_t count, const internal::WholeItem& item);
  absl::Status ApplyMuon(const MuonCoefficients& coefficients, int64_t count,
                         const internal::WholeItem& item);
  // Makes the singular values of *matrix, [rows, columns] with rows <= columns,
  // close to 1. *spare is a matrix of the same size; the call may swap the two.
  absl::Status Orthogonalize(const MuonCoefficients& coefficients, int64_t rows,
                             int64_t columns, uint8_t** matrix, uint8_t** spare,
                             uint8_t* squares);

  // y = a b, or a transposed(b); a is [rows, inner] and y [rows, columns].
  absl::Status Multiply(int64_t rows, int64_t inner, int64_t columns,
                        const uint8_t* a, const uint8_t* b,
                        bool is_b_transposed, uint8_t* y);
  template <typename Parameters>
  absl::Status Launch(absl::string_view kernel, const LaunchShape& shape,
                      Parameters parameters);

  Device& device_;
  DeviceStream& stream_;
  DType dtype_ = DType::kInvalid;  // Of the current pass.
  DeviceScratch scratch_;
};

}  // namespace muster

#endif  // COMMON_COMPUTE_VARIABLES_ON_DEVICE_DEVICE_WHOLE_UPDATE_H_
