#ifndef COMMON_LEARN_STRATEGY_REPLICA_STEP_FUNCTION_H_
#define COMMON_LEARN_STRATEGY_REPLICA_STEP_FUNCTION_H_

#include <functional>
#include <memory>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/compute/graph/graph.h"
#include "common/compute/graph/graph_builder.h"
#include "common/core/tensor/tensor.h"
#include "common/learn/strategy/replica/replica_context.h"

namespace muster {

// The code of one replica for one step. It is traced, and each replica runs the
// graph on its own arguments.
//
//   const auto step = StepFunction::Of("step", [&](Value x, Value y) {
//     const Value loss = ...;
//     Minimize(loss, weights);  // Gradients are summed over the replicas.
//     return loss;
//   });
//
// A value, cheap to copy; copies refer to the same function. Thread-safe.
//
// Equivalent to: tf.function.
class StepFunction {
 public:
  // Traces the function and adds its results to the builder.
  using Trace =
      std::function<void(const ReplicaContext&, absl::Span<const Value>)>;

  StepFunction() = default;  // No function.
  StepFunction(absl::string_view name, int parameter_count, Trace trace);

  // `callable` takes Values, one for each argument, and optionally a const
  // ReplicaContext& before them. It returns a Value, a vector of Values, or
  // nothing.
  template <typename Callable>
  static StepFunction Of(absl::string_view name, Callable callable);

  bool valid() const { return state_ != nullptr; }
  const std::string& name() const { return state_->name; }
  int parameter_count() const { return state_->parameter_count; }
  // An id that is equal for copies and unique among existing functions.
  const void* id() const { return state_.get(); }

  // Traces the function for arguments of these types; calls the C++ code each
  // time.
  //   kInvalidArgument  no function, another number of arguments, or an error
  //                     in the traced code
  absl::StatusOr<Graph> TraceFor(absl::Span<const TensorType> arguments,
                                 int num_replicas_in_sync) const;

 private:
  struct State {
    std::string name;
    int parameter_count = 0;
    Trace trace;
  };

  std::shared_ptr<const State> state_;
};

namespace internal {

template <typename Signature>
struct StepCall;

template <typename Result, typename... Parameters>
struct StepCall<std::function<Result(Parameters...)>> {
  template <typename T>
  static constexpr bool kIsContext =
      std::is_same_v<std::decay_t<T>, ReplicaContext>;

  static constexpr bool kTakesContext = (kIsContext<Parameters> || ...);
  static constexpr int kValueCount =
      static_cast<int>(sizeof...(Parameters)) - (kTakesContext ? 1 : 0);

  template <typename Callable, size_t... i>
  static void Add(const Callable& callable, const ReplicaContext& context,
                  absl::Span<const Value> values, std::index_sequence<i...>) {
    const auto call = [&]() -> Result {
      if constexpr (kTakesContext) {
        return callable(context, values[i]...);
      } else {
        return callable(values[i]...);
      }
    };
    if constexpr (std::is_void_v<Result>) {
      call();
    } else if constexpr (std::is_same_v<Result, Value>) {
      context.builder().AddResult(call());
    } else {
      for (const Value& value : call()) context.builder().AddResult(value);
    }
  }
};

}  // namespace internal

template <typename Callable>
StepFunction StepFunction::Of(absl::string_view name, Callable callable) {
  using Call = internal::StepCall<decltype(std::function(callable))>;
  return StepFunction(
      name, Call::kValueCount,
      [callable = std::move(callable)](const ReplicaContext& context,
                                       absl::Span<const Value> values) {
        Call::Add(callable, context, values,
                  std::make_index_sequence<Call::kValueCount>());
      });
}

}  // namespace muster

#endif  // COMMON_LEARN_STRATEGY_REPLICA_STEP_FUNCTION_H_
