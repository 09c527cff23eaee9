#include "common/core/tensor/check_numerics.h"

#include <atomic>
#include <cmath>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "common/core/tensor/dtype.h"

namespace muster {
namespace {

std::atomic<bool> is_enabled = false;

}  // namespace

void EnableCheckNumerics(bool enable) { is_enabled = enable; }

bool ChecksNumerics() { return is_enabled; }

absl::Status CheckFinite(const Tensor& value) {
  if (!IsFloating(value.dtype())) return absl::OkStatus();
  int64_t count = 0;
  int64_t first = 0;
  for (int64_t i = 0; i < value.element_count(); ++i) {
    if (std::isfinite(value.ElementAsDouble(i))) continue;
    if (count++ == 0) first = i;
  }
  if (count == 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(count, " of ", value.element_count(), " elements of ",
                   value.type().ToString(), " are not finite; the first is ",
                   value.ElementAsDouble(first), ", element ", first));
}

}  // namespace muster
