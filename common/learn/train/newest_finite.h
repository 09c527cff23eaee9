#ifndef COMMON_LEARN_TRAIN_NEWEST_FINITE_H_
#define COMMON_LEARN_TRAIN_NEWEST_FINITE_H_

#include <string>
#include <vector>

#include "common/learn/train/base/callback.h"

namespace muster {

// Says which is the newest of the checkpoints and files that the callbacks have
// saved (Callback::saved()) in which all numbers are finite: a clause of an
// error message. Those of later turns come first: a backup can be resumed from.
// Reads them, and passes over those that cannot be read.
std::string DescribeNewestFinite(const std::vector<Callback*>& callbacks);

}  // namespace muster

#endif  // COMMON_LEARN_TRAIN_NEWEST_FINITE_H_
