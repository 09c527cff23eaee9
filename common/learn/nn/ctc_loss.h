#ifndef COMMON_LEARN_NN_CTC_LOSS_H_
#define COMMON_LEARN_NN_CTC_LOSS_H_

#include "common/learn/nn/loss.h"
#include "common/learn/nn/loss_options.h"

namespace muster {

// Connectionist temporal classification: the negative log-probability that the
// time steps of an example spell its labels, summed over all ways to do so. A
// step names a class, or 0, the blank; equal classes in a row count once, and
// blanks not at all.
//
// Labels are class numbers [batch, length], whose rows end with as many 0 as
// they are shorter. Predictions are logits [batch, time, classes] of at least
// one step; all steps count. The loss is [batch], infinite if there are too few
// steps for the labels. Length and time may differ from batch to batch.
//
// Computed in the domain of logarithms by a loop over the steps, which a
// gradient runs once more.
//
// Reported to the builder: kInvalidArgument for other shapes. A label that is
// no class fails the step.
//
// Source: Graves et al., "Connectionist Temporal Classification", 2006;
// keras.losses.CTC.
Loss CTC(const LossOptions& options = {});

}  // namespace muster

#endif  // COMMON_LEARN_NN_CTC_LOSS_H_
