#include "common/learn/train/callbacks/save_interval.h"

#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace muster {

bool SaveInterval::IsDue(int64_t step) {
  if (!step_count_.has_value()) return false;
  steps_since_save_ += step - std::exchange(last_step_, step);
  if (steps_since_save_ < *step_count_) return false;
  steps_since_save_ = 0;
  return true;
}

std::string SaveInterval::Save() const {
  return absl::StrCat(steps_since_save_, ",", last_step_);
}

absl::Status SaveInterval::Restore(absl::string_view owner,
                                   absl::string_view state) {
  const std::pair<absl::string_view, absl::string_view> fields =
      absl::StrSplit(state, absl::MaxSplits(',', 1));
  int64_t steps_since_save = 0;
  int64_t last_step = -1;
  // Earlier builds have saved the first number alone.
  const bool is_right =
      absl::SimpleAtoi(fields.first, &steps_since_save) &&
      (fields.second.empty() || absl::SimpleAtoi(fields.second, &last_step));
  if (!is_right) {
    return absl::InvalidArgumentError(absl::StrCat(
        owner, ": the checkpoint contains the invalid state \"", state, "\""));
  }
  steps_since_save_ = steps_since_save;
  last_step_ = last_step;
  return absl::OkStatus();
}

}  // namespace muster
