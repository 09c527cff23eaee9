#ifndef COMMON_LEARN_NN_PROGRAMS_PROGRAM_LOSS_H_
#define COMMON_LEARN_NN_PROGRAMS_PROGRAM_LOSS_H_

#include <string>

#include "absl/strings/string_view.h"
#include "common/learn/nn/config_visitor.h"
#include "common/learn/nn/loss.h"
#include "common/learn/nn/metric.h"

namespace muster {

// Loss::name() of each ProgramLoss(), and Metric::kind() of each
// ProgramMetric().
inline constexpr absl::string_view kProgramName = "program";

// The losses of examples as a program: labels, predictions -> [batch, ...],
// with a gradient for the predictions.
struct ProgramLossOptions {
  // Encoded. Empty: the model computes the losses, which are the first column
  // of the predictions, [batch, columns].
  std::string program;
  Reduction reduction = Reduction::kSumOverBatchSize;

  void VisitConfig(ConfigVisitor& visitor);
};

// A loss that a program computes. An invalid program, and one for labels and
// predictions of other types, is reported to the builder.
//
// Equivalent to: a function or a class of losses of the user's in Keras.
Loss ProgramLoss(const ProgramLossOptions& options);

// A metric as programs. `statistics_program` and `weighted_program` return
// float32[n], the numbers that add up over batches.
struct ProgramMetricOptions {
  // Labels, predictions -> float32[n]. Empty: the model computes the numbers,
  // which are sums over the columns of the predictions after the first.
  std::string statistics_program;
  // Labels, predictions, float32 weights of examples -> float32[n]. Empty: the
  // metric takes no weights and no masks.
  std::string weighted_program;
  // float32[n] -> the value, float32, or a list of values, float32[k].
  std::string result_program;

  void VisitConfig(ConfigVisitor& visitor);
};

// A metric that programs compute. Errors as ProgramLoss(). The value is NaN if
// the program for it cannot be run in this process; the reason is logged.
//
// Equivalent to: a function or a class of metrics of the user's in Keras.
Metric ProgramMetric(const ProgramMetricOptions& options);

}  // namespace muster

#endif  // COMMON_LEARN_NN_PROGRAMS_PROGRAM_LOSS_H_
