#ifndef TESTS_FUZZ_FUZZ_TARGET_H_
#define TESTS_FUZZ_FUZZ_TARGET_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace muster {

// A parser of bytes that come from outside of the process.
struct FuzzTarget {
  // "tf_config": also the folder of its inputs in tests/fuzz/corpus.
  absl::string_view name;
  // Parses `input` and everything that is in it. Returns whether it was
  // accepted. Any crash, hang or use of memory out of proportion is a bug.
  bool (*run)(absl::string_view input);
  // Valid inputs to start from.
  std::vector<std::string> (*seeds)();
};

// By kind of input; see FuzzTargets().
std::vector<FuzzTarget> TextFuzzTargets();
std::vector<FuzzTarget> WireFuzzTargets();
std::vector<FuzzTarget> FileFuzzTargets();

// All targets, in the order of the lists above.
std::vector<FuzzTarget> FuzzTargets();

}  // namespace muster

#endif  // TESTS_FUZZ_FUZZ_TARGET_H_
