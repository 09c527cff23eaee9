#ifndef COMMON_COMPUTE_RUNTIME_TESTING_TEST_OPS_H_
#define COMMON_COMPUTE_RUNTIME_TESTING_TEST_OPS_H_

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/compute/graph/graph_builder.h"
#include "common/compute/graph/op_registry.h"
#include "common/compute/kernels/kernel.h"
#include "common/compute/variables/variable_session.h"
#include "common/core/tensor/tensor.h"

namespace muster {

// Some ops on floats (and one on strings), so that tests of the runtime depend
// only on the runtime: Add, AddReversed, Mul, MatMul, Relu, ReluGrad (no
// kernel), Halves (two outputs), AllocatedHalves (in memory of the kernel),
// Identity, Reshape, ReshapeLike, SumLike, Concatenate (of strings), Fail (at
// run time), StepSeed, and variable ops.
const OpRegistry& TestOps();

// `with_fusion` adds FusedMatMulBias.
KernelRegistry MakeTestKernels(bool with_fusion = false);

// Builders of the variable ops, for float variables.
Value ReadVariableForTest(GraphBuilder& builder, absl::string_view variable,
                          const Shape& shape);
void UpdateVariableForTest(absl::string_view op, absl::string_view variable,
                           absl::Span<const Value> inputs);

// Variables in a map. Commit() fails if the value of an update has changed
// since Update(), and Gather() returns separate memory. Records the calls of a
// session, as in {"begin 3", "read w", "update w", "commit"}.
class FakeVariableStore : public VariableSessionFactory {
 public:
  explicit FakeVariableStore(std::map<std::string, Tensor> values)
      : values_(std::move(values)) {}

  absl::StatusOr<std::unique_ptr<VariableSession>> OpenSession(
      absl::Span<const VariableUse> uses) override;
  absl::StatusOr<std::unique_ptr<VariableSession>> OpenDeviceSession(
      absl::Span<const VariableUse>, Device*, DeviceStream*) override {
    return nullptr;
  }

  std::vector<std::string>& events() { return events_; }
  // True if no other tensor shared the variable at the last update.
  bool last_update_was_in_place() const { return last_update_was_in_place_; }
  void FailNextUpdate(absl::Status status) { next_update_ = status; }

 private:
  class Session;

  std::map<std::string, Tensor> values_;
  std::vector<std::string> events_;
  bool last_update_was_in_place_ = false;
  absl::Status next_update_;
};

}  // namespace muster

#endif  // COMMON_COMPUTE_RUNTIME_TESTING_TEST_OPS_H_
