#ifndef COORDINATOR_CLOSURE_ARGUMENTS_H_
#define COORDINATOR_CLOSURE_ARGUMENTS_H_

#include <cstdint>
#include <vector>

#include "common/core/tensor/tensor.h"

namespace muster {

// One argument of a closure, independent of the worker that runs it.
struct ClosureArgument {
  // The id of the iterator, which is the same on every worker; -1 for tensors.
  int64_t iterator_id = -1;
  // One tensor for all workers, or one for each worker.
  std::vector<Tensor> tensors;

  const Tensor& TensorFor(int worker) const {
    return tensors.size() == 1 ? tensors[0] : tensors[worker];
  }
};

struct ClosureArguments {
  std::vector<ClosureArgument> arguments;

  // True if both have only iterators, and the same ones. Closures with these
  // arguments can then be sent as one run.
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
