#ifndef COMMON_CORE_DEVICE_SIMULATED_LAUNCH_ARGUMENTS_H_
#define COMMON_CORE_DEVICE_SIMULATED_LAUNCH_ARGUMENTS_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "absl/types/span.h"

namespace muster::simulated {

// The arguments of a launch, copied when it is enqueued.
class LaunchArguments {
 public:
  LaunchArguments(absl::Span<const uint32_t> sizes, void** arguments) {
    size_t count = 0;
    for (const uint32_t size : sizes) count += Units(size);
    storage_.resize(count);
    auto* to = storage_.data();
    for (size_t i = 0; i < sizes.size(); ++i) {
      std::memcpy(to, arguments[i], sizes[i]);
      pointers_.push_back(to);
      to += Units(sizes[i]);
    }
  }
  void** pointers() { return pointers_.data(); }

 private:
  static size_t Units(uint32_t size) {
    return (size + sizeof(std::max_align_t) - 1) / sizeof(std::max_align_t);
  }

  std::vector<std::max_align_t> storage_;
  std::vector<void*> pointers_;
};

}  // namespace muster::simulated

#endif  // COMMON_CORE_DEVICE_SIMULATED_LAUNCH_ARGUMENTS_H_
