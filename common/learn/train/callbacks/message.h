#ifndef COMMON_LEARN_TRAIN_CALLBACKS_MESSAGE_H_
#define COMMON_LEARN_TRAIN_CALLBACKS_MESSAGE_H_

#include <ostream>
#include <string>

#include "absl/strings/string_view.h"
#include "common/learn/train/model.h"

namespace muster {

// Prints a message of a callback to `output`, by default to standard output. Of
// synchronous replicas only the chief prints it.
void SayOnce(const Model& model, std::ostream* output, absl::string_view line);

// Returns the shortest text that parses to the same number, as Python does.
std::string ShortestText(double value);

}  // namespace muster

#endif  // COMMON_LEARN_TRAIN_CALLBACKS_MESSAGE_H_
