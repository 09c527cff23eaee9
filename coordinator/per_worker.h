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

// In traced code: the iterator of the worker that runs the step. Every Next()
// takes one element per run of the step; a step may call it several times.
class Iterator {
 public:
  // `builder` is borrowed. `argument` is the index of the argument.
  Iterator(GraphBuilder* builder, int argument,
           std::vector<TensorType> element_types)
      : state_(std::make_shared<State>(
            State{builder, argument, 0, std::move(element_types)})) {}

  // Returns the components of the next element.
  std::vector<Value> Next() const;

  // As above for a known number of components: auto [x, y] = it.Next<2>().
  // Reports an error if elements have another number of components.
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

// A value with one instance for each worker. A closure uses the instance of the
// worker that runs it.
//
// Equivalent to: tf.distribute.experimental.coordinator.PerWorkerValues.
template <typename T>
class PerWorker;

template <>
class PerWorker<Tensor> {
 public:
  PerWorker() = default;
  // By worker; all have the same type.
  explicit PerWorker(std::vector<Tensor> values) : values_(std::move(values)) {}
  const std::vector<Tensor>& values() const { return values_; }

 private:
  std::vector<Tensor> values_;
};

// Created by ClusterCoordinator::CreatePerWorkerDataset().
template <>
class PerWorker<Iterator> {
 public:
  PerWorker() = default;  // Not valid().
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
void ReportComponentCount(GraphBuilder* builder, size_t wanted,
                          size_t received);
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
