#ifndef TESTS_FUZZ_FUZZ_TARGET_H_
#define TESTS_FUZZ_FUZZ_TARGET_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace muster {

// A parser of bytes from outside of the process.
struct FuzzTarget {
  // The name, such as "tf_config". It is also the folder of its inputs in
  // tests/fuzz/corpus.
  absl::string_view name;
  // Parses `input` completely. Returns true if it was accepted. Any crash, any
  // hang, and any memory use that is out of proportion is a bug.
  bool (*run)(absl::string_view input);
  // Valid inputs to start from.
  std::vector<std::string> (*seeds)();
};

// The targets of each kind of input; see FuzzTargets().
std::vector<FuzzTarget> TextFuzzTargets();
std::vector<FuzzTarget> WireFuzzTargets();
std::vector<FuzzTarget> FileFuzzTargets();

// Returns all targets, in the order of the lists above.
std::vector<FuzzTarget> FuzzTargets();

}  // namespace muster

#endif  // TESTS_FUZZ_FUZZ_TARGET_H_
