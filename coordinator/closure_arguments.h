#ifndef COORDINATOR_CLOSURE_ARGUMENTS_H_
#define COORDINATOR_CLOSURE_ARGUMENTS_H_

#include <cstdint>
#include <vector>

#include "common/core/tensor/tensor.h"

namespace muster {

// One argument of a closure, whoever will run it.
struct ClosureArgument {
  // The worker's own iterator of that id; -1 for tensors.
  int64_t iterator_id = -1;
  // One tensor for all workers, or one for each.
  std::vector<Tensor> tensors;

  const Tensor& TensorFor(int worker) const {
    return tensors.size() == 1 ? tensors[0] : tensors[worker];
  }
};

struct ClosureArguments {
  std::vector<ClosureArgument> arguments;

  // Whether both are iterators only, and the same ones: then closures can
  // travel together.
  static bool SameIterators(const ClosureArguments* a,
                            const ClosureArguments* b);
};

inline bool ClosureArguments::SameIterators(const ClosureArguments* a,
                                            const ClosureArguments* b) {
  if (a == b) return true;
  if (a == nullptr || b == nullptr) return false;
  if (a->arguments.size() != b->arguments.size()) return false;
  for (size_t i = 0; i < a->arguments.size(); ++i) {
    if (a->arguments[i].iterator_id < 0 ||
        a->arguments[i].iterator_id != b->arguments[i].iterator_id) {
      return false;
    }
  }
  return true;
}

}  // namespace muster

#endif  // COORDINATOR_CLOSURE_ARGUMENTS_H_
