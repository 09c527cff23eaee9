#ifndef COMMON_LEARN_TRAIN_JOB_JOB_LAYER_PARTS_H_
#define COMMON_LEARN_TRAIN_JOB_JOB_LAYER_PARTS_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/learn/nn/activations.h"
#include "common/learn/nn/regularizers.h"
#include "proto/training_job.pb.h"
#include "proto/variable.pb.h"

// What the layers of a job file are made of. All errors are kInvalidArgument
// and name the field.
namespace muster {

absl::StatusOr<Activation> ToActivation(
    proto::JobActivation::Function function);

// `fallback` when the job says nothing.
proto::Initializer ToInitializer(const proto::JobInitializer& job,
                                 const proto::Initializer& fallback);

// None when the job says nothing; errors begin with the field.
absl::StatusOr<Regularizer> ToRegularizer(absl::string_view field,
                                          const proto::JobRegularizer& job);

absl::Status ExpectPositive(absl::string_view field, int64_t value);

}  // namespace muster

#endif  // COMMON_LEARN_TRAIN_JOB_JOB_LAYER_PARTS_H_
