#include "common/learn/train/base/non_finite.h"

#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace muster {

std::string ToString(const NonFiniteValue& found) {
  return absl::StrCat(found.name, " is ", found.value, " after step ",
                      found.step, " of epoch ", found.epoch + 1);
}

absl::Status NonFiniteError(const NonFiniteValue& found,
                            absl::string_view resumption) {
  return absl::InternalError(absl::StrCat(
      "training diverged: ", ToString(found),
      "; lower the learning rate, clip gradients, or look for NaN in the data; "
      "--check_numerics names the operation that makes the first one. ",
      resumption, resumption.empty() ? "" : ". ",
      "With fail_on_non_finite false training continues, and such a run counts "
      "as a success"));
}

}  // namespace muster
