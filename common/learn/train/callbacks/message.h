#ifndef COMMON_LEARN_TRAIN_CALLBACKS_MESSAGE_H_
#define COMMON_LEARN_TRAIN_CALLBACKS_MESSAGE_H_

#include <ostream>
#include <string>

#include "absl/strings/string_view.h"
#include "common/learn/train/model.h"

namespace muster {

// A line for people about what a callback has done, to `output` or else to
// standard output. Of replicas that train in sync the chief alone says it.
void SayOnce(const Model& model, std::ostream* output, absl::string_view line);

// The shortest text that reads back as the same number, as Python prints it.
std::string ShortestText(double value);

}  // namespace muster

#endif  // COMMON_LEARN_TRAIN_CALLBACKS_MESSAGE_H_
