#include "common/learn/strategy/input/pinned_batches.h"

#include <cstring>
#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "common/core/base/status_macros.h"
#include "common/core/device/pinned_memory.h"
#include "common/core/tensor/buffer.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/tensor.h"

namespace muster {

Dataset InPinnedMemory(const Dataset& dataset, Device* device) {
  return dataset.MapElements(
      [device](Element element) -> absl::StatusOr<Element> {
        for (Tensor& component : element) {
          if (component.dtype() == DType::kString) continue;
          ASSIGN_OR_RETURN(
              std::shared_ptr<Buffer> buffer,
              device->pinned_memory().Allocate(component.size_bytes()));
          Tensor pinned(component.dtype(), component.shape(),
                        std::move(buffer));
          if (component.size_bytes() > 0) {
            std::memcpy(pinned.mutable_raw_data(), component.raw_data(),
                        component.size_bytes());
          }
          component = std::move(pinned);
        }
        return element;
      },
      dataset.element_types());
}

}  // namespace muster
