#ifndef COORDINATOR_PER_WORKER_H_
#define COORDINATOR_PER_WORKER_H_

#include <array>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "common/compute/graph/graph_builder.h"
#include "common/core/tensor/tensor.h"

namespace muster {

// In traced code: the executing worker's own position in a dataset. Every
// Next() takes one element when the step runs; a step may take several.
class Iterator {
 public:
  // `builder` is borrowed. `argument` is the position among the arguments.
  Iterator(GraphBuilder* builder, int argument,
           std::vector<TensorType> element_types)
      : state_(std::make_shared<State>(
            State{builder, argument, 0, std::move(element_types)})) {}

  // The components of the next element.
  std::vector<Value> Next() const;

  // The same where their number is known: auto [x, y] = it.Next<2>(). Reported
  // as a mistake when the elements have another number of components.
  template <size_t component_count>
  std::array<Value, component_count> Next() const;

 private:
  struct State {
    GraphBuilder* builder;
    int argument;
    int taken_count;
    std::vector<TensorType> element_types;
  };
  std::shared_ptr<State> state_;
};

// A value of which each worker has its own. A closure that takes one is given
// that of the worker which runs it.
//
// Equivalent to: tf.distribute.experimental.coordinator.PerWorkerValues.
template <typename T>
class PerWorker;

template <>
class PerWorker<Tensor> {
 public:
  PerWorker() = default;
  // By worker; all of one type.
  explicit PerWorker(std::vector<Tensor> values) : values_(std::move(values)) {}
  const std::vector<Tensor>& values() const { return values_; }

 private:
  std::vector<Tensor> values_;
};

// Made by ClusterCoordinator::CreatePerWorkerDataset().
template <>
class PerWorker<Iterator> {
 public:
  PerWorker() = default;  // Of no dataset.
  PerWorker(uint32_t iterator_id, std::vector<TensorType> element_types)
      : iterator_id_(iterator_id),
        element_types_(std::move(element_types)),
        valid_(true) {}

  bool valid() const { return valid_; }
  uint32_t iterator_id() const { return iterator_id_; }
  const std::vector<TensorType>& element_types() const {
    return element_types_;
  }

 private:
  uint32_t iterator_id_ = 0;
  std::vector<TensorType> element_types_;
  bool valid_ = false;
};

namespace internal {
void ReportComponentCount(GraphBuilder* builder, size_t wanted, size_t came);
}  // namespace internal

template <size_t component_count>
std::array<Value, component_count> Iterator::Next() const {
  const std::vector<Value> components = Next();
  std::array<Value, component_count> result;
  if (components.size() != component_count) {
    internal::ReportComponentCount(state_->builder, component_count,
                                   components.size());
    return result;
  }
  for (size_t i = 0; i < component_count; ++i) result[i] = components[i];
  return result;
}

}  // namespace muster

#endif  // COORDINATOR_PER_WORKER_H_
