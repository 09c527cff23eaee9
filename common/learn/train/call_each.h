#ifndef COMMON_LEARN_TRAIN_CALL_EACH_H_
#define COMMON_LEARN_TRAIN_CALL_EACH_H_

#include <vector>

#include "absl/status/status.h"
#include "common/core/base/status_macros.h"
#include "common/learn/train/base/callback.h"

namespace muster {

// Calls `hook` of each callback in turn, until one fails:
//
//   CallEach(callbacks, &Callback::OnEpochBegin, model, epoch)
template <typename Hook, typename... Arguments>
absl::Status CallEach(const std::vector<Callback*>& callbacks, Hook hook,
                      Arguments&&... arguments) {
  for (Callback* const callback : callbacks) {
    RETURN_IF_ERROR((callback->*hook)(arguments...));
  }
  return absl::OkStatus();
}

}  // namespace muster

#endif  // COMMON_LEARN_TRAIN_CALL_EACH_H_
