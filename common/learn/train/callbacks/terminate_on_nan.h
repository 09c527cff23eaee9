#ifndef COMMON_LEARN_TRAIN_CALLBACKS_TERMINATE_ON_NAN_H_
#define COMMON_LEARN_TRAIN_CALLBACKS_TERMINATE_ON_NAN_H_

#include <cstdint>
#include <ostream>

#include "absl/status/status.h"
#include "common/learn/nn/config_visitor.h"
#include "common/learn/train/base/callback.h"
#include "common/learn/train/base/history.h"

namespace muster {

struct TerminateOnNanOptions {
  // Ends Fit() with an error instead of normally. OnTrainEnd() is not called,
  // so an earlier backup is kept.
  bool raise_error = false;
  std::ostream* output = nullptr;  // Borrowed; null: standard output.

  void VisitConfig(ConfigVisitor& visitor);
};

// Stops training when the loss is NaN or infinite.
//
// Equivalent to: keras.callbacks.TerminateOnNaN.
class TerminateOnNan final : public Callback {
 public:
  explicit TerminateOnNan(TerminateOnNanOptions options = {})
      : options_(options) {}

  //   kInternal  the loss is not a finite number; with raise_error only
  absl::Status OnTrainBatchEnd(Model& model, int64_t step,
                               const Logs& logs) override;

 private:
  const TerminateOnNanOptions options_;
};

}  // namespace muster

#endif  // COMMON_LEARN_TRAIN_CALLBACKS_TERMINATE_ON_NAN_H_
