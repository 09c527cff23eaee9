#ifndef COMMON_LEARN_TRAIN_NEWEST_FINITE_H_
#define COMMON_LEARN_TRAIN_NEWEST_FINITE_H_

#include <string>
#include <vector>

#include "common/learn/train/base/callback.h"

namespace muster {

// Returns a clause of an error message that names the newest checkpoint or
// file, of those that the callbacks have saved (Callback::saved()), in which
// all numbers are finite. Callbacks of later turns come first, because training
// can resume from a backup. Reads the files and skips those that cannot be
// read.
std::string DescribeNewestFinite(const std::vector<Callback*>& callbacks);

}  // namespace muster

#endif  // COMMON_LEARN_TRAIN_NEWEST_FINITE_H_
