#include "common/learn/train/callbacks/message.h"

#include <charconv>
#include <cmath>
#include <iostream>

#include "common/learn/strategy/strategy.h"

namespace muster {

void SayOnce(const Model& model, std::ostream* output, absl::string_view line) {
  if (!model.strategy()->is_chief()) return;
  (output == nullptr ? std::cout : *output) << line << std::endl;
}

std::string ShortestText(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  char buffer[32];
  const std::to_chars_result end =
      std::to_chars(buffer, buffer + sizeof(buffer), value);
  std::string text(buffer, end.ptr);
  const bool looks_whole = text.find_first_of(".e") == std::string::npos;
  return looks_whole ? text + ".0" : text;
}

}  // namespace muster
