#ifndef TESTS_SIMULATION_SCHEDULER_SYSTEM_FUNCTION_H_
#define TESTS_SIMULATION_SCHEDULER_SYSTEM_FUNCTION_H_

#include <dlfcn.h>

namespace muster::sim {

// The function that a hook of this executable replaces: the one of the next
// library that defines the symbol. Constant-initialized, because hooks are
// called before static initializers have run.
template <typename Function>
class SystemFunction {
 public:
  // `version` selects one of several versions of a symbol; null for the
  // default.
  constexpr explicit SystemFunction(const char* name,
                                    const char* version = nullptr)
      : name_(name), version_(version) {}

  template <typename... Arguments>
  auto operator()(Arguments... arguments) {
    if (function_ == nullptr) {
      void* const found = version_ == nullptr
                              ? dlsym(RTLD_NEXT, name_)
                              : dlvsym(RTLD_NEXT, name_, version_);
      function_ = reinterpret_cast<Function*>(found);
    }
    return function_(arguments...);
  }

 private:
  const char* const name_;
  const char* const version_;
  Function* function_ = nullptr;
};

}  // namespace muster::sim

#endif  // TESTS_SIMULATION_SCHEDULER_SYSTEM_FUNCTION_H_
