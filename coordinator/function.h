#ifndef COORDINATOR_FUNCTION_H_
#define COORDINATOR_FUNCTION_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "common/compute/graph/graph.h"
#include "common/compute/graph/graph_builder.h"
#include "common/core/tensor/tensor.h"
#include "common/learn/strategy/replica/replica_context.h"
#include "coordinator/per_worker.h"

namespace muster {

// An argument of a scheduled function: a tensor, or a tensor or iterator of
// each worker. A RemoteValue must be fetched first.
using FunctionArgument =
    std::variant<Tensor, PerWorker<Tensor>, PerWorker<Iterator>>;

// A step function. It is traced when it is first scheduled, and again only for
// arguments of other types. Cheap to copy. Thread-safe.
//
// Equivalent to: tf.function.
class Function {
 public:
  using TracedArgument = std::variant<Value, Iterator>;
  // Traces the function and adds its results to the builder.
  using Trace =
      std::function<void(GraphBuilder&, absl::Span<const TracedArgument>)>;

  Function() = default;  // Not valid().
  Function(absl::string_view name, int parameter_count, Trace trace);

  // `callable` has Value and Iterator parameters in the order of the arguments,
  // optionally preceded by a GraphBuilder& or a const ReplicaContext&. It
  // returns a Value, a vector of Values, or nothing.
  template <typename Callable>
  static Function Of(absl::string_view name, Callable callable);

  bool valid() const { return state_ != nullptr; }

  // Returns the id of the function for arguments of these types. At the first
  // call with these types, traces the function and calls `add` with the graph.
  //   kInvalidArgument  wrong number of arguments, or an error in the traced
  //                     code
  absl::StatusOr<uint32_t> Resolve(
      absl::Span<const FunctionArgument> arguments,
      absl::FunctionRef<uint32_t(const Graph&)> add) const;

 private:
  struct ArgumentType {
    bool is_iterator = false;
    // The type of the tensor, or the types of an element's components.
    std::vector<TensorType> types;
    bool operator==(const ArgumentType&) const = default;
  };
  struct Traced {
    std::vector<ArgumentType> types;
    uint32_t function_id = 0;
  };
  struct State {
    std::string name;
    int parameter_count = 0;
    Trace trace;
    absl::Mutex mutex;
    std::vector<Traced> traced ABSL_GUARDED_BY(mutex);
  };

  static bool Matches(const ArgumentType& type,
                      const FunctionArgument& argument);
  static ArgumentType TypeOf(const FunctionArgument& argument);
  absl::StatusOr<Graph> TraceFor(const std::vector<ArgumentType>& types) const;

  std::shared_ptr<State> state_;
};

namespace internal {

template <typename T>
struct CallableTraits : CallableTraits<decltype(&T::operator())> {};
template <typename R, typename C, typename... A>
struct CallableTraits<R (C::*)(A...) const> {
  using Parameters = std::tuple<A...>;
  using Result = R;
};
template <typename R, typename C, typename... A>
struct CallableTraits<R (C::*)(A...)> {
  using Parameters = std::tuple<A...>;
  using Result = R;
};

template <typename Parameters>
inline constexpr bool kTakesBuilder = false;
template <typename First, typename... Rest>
inline constexpr bool kTakesBuilder<std::tuple<First, Rest...>> =
    std::is_same_v<std::decay_t<First>, GraphBuilder> ||
    std::is_same_v<std::decay_t<First>, ReplicaContext>;

// Returns the first argument of a callable that takes a builder or a context.
// With parameter servers, each worker runs the only replica of its step.
template <typename First>
decltype(auto) FirstArgument(GraphBuilder& builder) {
  if constexpr (std::is_same_v<First, ReplicaContext>) {
    return ReplicaContext(&builder);
  } else {
    return (builder);
  }
}

inline void AddResults(GraphBuilder& builder, Value value) {
  builder.AddResult(value);
}
inline void AddResults(GraphBuilder& builder,
                       const std::vector<Value>& values) {
  for (const Value& value : values) builder.AddResult(value);
}

template <typename Parameters, size_t offset, typename Callable, size_t... i>
void CallTraced(Callable& callable, GraphBuilder& builder,
                absl::Span<const Function::TracedArgument> arguments,
                std::index_sequence<i...>) {
  const auto call = [&]() {
    if constexpr (offset == 1) {
      return callable(
          FirstArgument<std::decay_t<std::tuple_element_t<0, Parameters>>>(
              builder),
          std::get<std::decay_t<std::tuple_element_t<i + 1, Parameters>>>(
              arguments[i])...);
    } else {
      return callable(
          std::get<std::decay_t<std::tuple_element_t<i, Parameters>>>(
              arguments[i])...);
    }
  };
  if constexpr (std::is_void_v<decltype(call())>) {
    call();
  } else {
    AddResults(builder, call());
  }
}

// True if each argument is a tensor or an iterator as its parameter requires.
template <typename Parameters, size_t offset, size_t... i>
bool KindsFit(
    [[maybe_unused]] absl::Span<const Function::TracedArgument> arguments,
    std::index_sequence<i...>) {
  return (std::holds_alternative<
              std::decay_t<std::tuple_element_t<i + offset, Parameters>>>(
              arguments[i]) &&
          ...);
}

void ReportKinds(GraphBuilder& builder);

}  // namespace internal

template <typename Callable>
Function Function::Of(absl::string_view name, Callable callable) {
  using Parameters = typename internal::CallableTraits<Callable>::Parameters;
  constexpr size_t kOffset = internal::kTakesBuilder<Parameters> ? 1 : 0;
  constexpr size_t kCount = std::tuple_size_v<Parameters> - kOffset;
  using Indices = std::make_index_sequence<kCount>;
  return Function(
      name, static_cast<int>(kCount),
      [callable = std::move(callable)](
          GraphBuilder& builder,
          absl::Span<const TracedArgument> arguments) mutable {
        if (!internal::KindsFit<Parameters, kOffset>(arguments, Indices())) {
          internal::ReportKinds(builder);
          return;
        }
        internal::CallTraced<Parameters, kOffset>(callable, builder, arguments,
                                                  Indices());
      });
}

}  // namespace muster

#endif  // COORDINATOR_FUNCTION_H_
