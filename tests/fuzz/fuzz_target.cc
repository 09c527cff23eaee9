#include "tests/fuzz/fuzz_target.h"

namespace muster {

std::vector<FuzzTarget> FuzzTargets() {
  std::vector<FuzzTarget> all;
  for (const auto& targets :
       {TextFuzzTargets(), WireFuzzTargets(), FileFuzzTargets()}) {
    all.insert(all.end(), targets.begin(), targets.end());
  }
  return all;
}

}  // namespace muster
