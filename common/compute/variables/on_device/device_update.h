#ifndef COMMON_COMPUTE_VARIABLES_ON_DEVICE_DEVICE_UPDATE_H_
#define COMMON_COMPUTE_VARIABLES_ON_DEVICE_DEVICE_UPDATE_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/compute/kernels/cuda/device_code/update_parameters.h"
#include "common/compute/optimizers/update_rule.h"
#include "common/compute/variables/on_device/device_scratch.h"
#include "common/compute/variables/on_device/device_variable.h"
#include "common/compute/variables/on_device/device_whole_update.h"
#include "common/compute/variables/variable_session.h"
#include "common/core/device/device.h"
#include "common/core/device/driver/kernel_image.h"
#include "common/core/device/driver/launch_shape.h"
#include "common/core/device/stream.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/tensor.h"

namespace muster {

// The rows that the indices of an update or a gather name, on the device.
struct DeviceRows {
  internal::DeviceElements indices = {};
  const internal::RowLink* links = nullptr;
};

// Enqueues changes of variables on one stream. Errors are those of the device.
// Not thread-safe.
class DeviceUpdate {
 public:
  DeviceUpdate(Device* device, DeviceStream* stream)
      : device_(*device), stream_(*stream), whole_update_(device, stream) {}

  // Leaves variables unchanged while `gate` is closed.
  void UseGate(internal::DeviceGate* gate) { condition_.gate = gate; }

  // The next Apply() takes effect only if *variant is `wanted`. Null: it always
  // takes effect.
  void UseVariant(const int32_t* variant, int wanted) {
    condition_.variant = variant;
    condition_.wanted_variant = wanted;
  }

  // rows[i] = variable[indices[i]]; reports an index that is out of range.
  absl::Status Gather(const DeviceVariable& variable, const Tensor& indices,
                      internal::FaultRecord* fault, Tensor* rows);

  // Prepares rows for the functions below. `links` is memory of
  // LinkBytes(number of indices) bytes.
  static size_t LinkBytes(int64_t index_count) {
    return index_count * (sizeof(internal::RowLink) + 2 * sizeof(int32_t));
  }
  absl::Status LinkRows(const DeviceVariable& variable, const Tensor& indices,
                        uint8_t* links, internal::FaultRecord* fault,
                        DeviceRows* rows);

  // Sums repeated rows into `sums`, which has the size of `gradient`.
  absl::Status SumRows(const DeviceVariable& variable, const Tensor& gradient,
                       const DeviceRows& rows, uint8_t* sums);

  // Assigns to, adds to or subtracts from the variable, which is writable. An
  // empty `rows` means the whole variable.
  absl::Status Change(UpdateKind kind, const Tensor& value,
                      const DeviceRows& rows, DeviceVariable* variable);

  // Converts a sparse gradient to a dense one of the whole variable, at
  // `dense`.
  absl::Status MakeDense(const DeviceVariable& variable, const Tensor& gradient,
                         const DeviceRows& rows, uint8_t* dense);

  // Adds a gradient to those that Apply() applies. It is gradient number
  // `step`, from 0, of the variable, which is writable and has the slots of the
  // rule. `gradient` points to `count` elements: of the whole variable, or the
  // sums of `rows`.
  void AddGradient(const UpdateRule& rule, uint8_t* gradient, int64_t count,
                   const DeviceRows& rows, const GradientClipping& clipping,
                   const DeviceVariable& variable, int64_t step);
  // Applies the added gradients. Each pass of a rule takes one launch for all
  // variables of the same dtype and update count, or a DeviceWholeUpdate for
  // each of them. Then applies the constraints with one launch each. The rules
  // and the variables must stay valid until Apply() returns.
  absl::Status Apply();

 private:
  // One pass of a rule over the variables of one dtype and one update count.
  struct Pass {
    const UpdateRule* rule = nullptr;  // Borrowed.
    DType dtype = DType::kInvalid;
    int64_t step = 0;
    UpdatePass update;
    std::vector<internal::UpdateItem> items;
    int64_t block_count = 0;
  };
  // Items of all passes, as uploaded to the device.
  struct ItemTable {
    std::vector<internal::UpdateItem> items;
    DeviceScratch memory;
  };

  template <typename Parameter>
  absl::Status Launch(const KernelImage& image, absl::string_view kernel,
                      const LaunchShape& shape, Parameter parameter);
  // Returns the passes of the rule over variables of `dtype` at `step`, in
  // order.
  absl::Span<Pass> FindPasses(const UpdateRule& rule, DType dtype,
                              int64_t step);
  static void AddItem(const UpdateRule& rule, uint8_t* gradient, int64_t count,
                      const DeviceRows& rows, const GradientClipping& clipping,
                      const DeviceVariable& variable, Pass* pass);
  absl::StatusOr<const internal::UpdateItem*> UploadItems();
  // Returns null if no gradient is limited by a norm.
  absl::StatusOr<const double*> ClipFactors(const internal::UpdateItem* items);
  absl::StatusOr<const double*> LambRatios(const Pass& pass,
                                           const internal::UpdateItem* items);
  absl::Status ApplyPasses();
  absl::Status Constrain(const DeviceVariable& variable);
  // `items` are the items of the pass; `factors` are their factors, or null.
  absl::Status LaunchPass(const Pass& pass, const internal::UpdateItem* items,
                          const double* factors);
  absl::Status ApplyWhole(const Pass& pass, const internal::UpdateItem* items,
                          const double* factors);

  Device& device_;
  DeviceStream& stream_;
  DeviceWholeUpdate whole_update_;
  internal::UpdateCondition condition_ = {};
  // State of the next Apply(); the vectors keep their memory.
  std::vector<const DeviceVariable*> constrained_;
  std::vector<Pass> passes_;
  size_t pass_count_ = 0;
  std::vector<UpdatePass> rule_passes_;
  std::vector<internal::UpdateItem> items_;
  // Steps that accumulate gradients alternate with steps that apply them, and
  // the items of a loss scale alternate with those of its gradients. One table
  // each avoids uploads.
  static constexpr int kTables = 4;
  ItemTable tables_[kTables];
  int last_table_ = 0;
  DeviceScratch norms_;
  DeviceScratch ratios_;
};

}  // namespace muster

#endif  // COMMON_COMPUTE_VARIABLES_ON_DEVICE_DEVICE_UPDATE_H_
