// The entry points of libFuzzer (https://llvm.org/docs/LibFuzzer.html).
// MUSTER_FUZZ_TARGET names the target. MUSTER_FUZZ_SEEDS names a folder to
// which the seeds of the target are written before the run; pass it to
// libFuzzer as a corpus.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/core/system/log.h"
#include "tests/fuzz/fuzz_target.h"

namespace muster {
namespace {

absl::string_view Environment(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

FuzzTarget ChosenTarget() {
  const absl::string_view name = Environment("MUSTER_FUZZ_TARGET");
  for (const FuzzTarget& target : FuzzTargets()) {
    if (target.name == name) return target;
  }
  std::cerr << "MUSTER_FUZZ_TARGET=" << std::string(name)
            << " is not a target; there are:";
  for (const FuzzTarget& target : FuzzTargets()) {
    std::cerr << " " << std::string(target.name);
  }
  std::cerr << std::endl;
  std::exit(2);
}

const FuzzTarget& Target() {
  static const auto* const target = new FuzzTarget(ChosenTarget());
  return *target;
}

void WriteSeeds(absl::string_view folder) {
  const std::vector<std::string> seeds = Target().seeds();
  for (size_t i = 0; i < seeds.size(); ++i) {
    std::ofstream(absl::StrCat(folder, "/seed-", i), std::ios::binary)
        << seeds[i];
  }
}

}  // namespace
}  // namespace muster

extern "C" int LLVMFuzzerInitialize(int* /*argc*/, char*** /*argv*/) {
  // Parsers log warnings about parts that they skip.
  muster::SetMinimumLogSeverity(muster::LogSeverity::kError);
  muster::Target();
  const absl::string_view folder = muster::Environment("MUSTER_FUZZ_SEEDS");
  if (!folder.empty()) muster::WriteSeeds(folder);
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  muster::Target().run(
      absl::string_view(reinterpret_cast<const char*>(data), size));
  return 0;
}
