#ifndef COMMON_DATASET_TESTING_TEST_ELEMENTS_H_
#define COMMON_DATASET_TESTING_TEST_ELEMENTS_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/tensor/tensor.h"
#include "common/dataset/dataset.h"
#include "gtest/gtest.h"

namespace muster {

// Returns all elements of one pass.
inline std::vector<Element> Elements(const Dataset& dataset,
                                     const InputContext& context = {},
                                     int64_t epoch = 0) {
  std::vector<Element> elements;
  auto iterator = dataset.MakeIterator(context, epoch);
  EXPECT_OK(iterator);
  if (!iterator.ok()) return elements;
  while (true) {
    Element element;  // A new one each time: earlier elements are kept.
    const auto more = (*iterator)->Next(&element);
    EXPECT_OK(more);
    if (!more.ok() || !*more) return elements;
    EXPECT_EQ(element.size(), dataset.element_types().size());
    for (size_t c = 0; c < element.size(); ++c) {
      EXPECT_EQ(element[c].dtype(), dataset.element_types()[c].dtype);
      EXPECT_TRUE(
          element[c].shape().IsCompatibleWith(dataset.element_types()[c].shape))
          << element[c].shape() << " " << dataset.element_types()[c].shape;
    }
    elements.push_back(std::move(element));
  }
}

// Returns the numbers of component 0 of all elements.
inline std::vector<int64_t> Numbers(const Dataset& dataset,
                                    const InputContext& context = {},
                                    int64_t epoch = 0) {
  std::vector<int64_t> numbers;
  for (const Element& element : Elements(dataset, context, epoch)) {
    for (int64_t i = 0; i < element[0].element_count(); ++i) {
      numbers.push_back(
          element[0].dtype() == DType::kInt64
              ? element[0].flat<int64_t>()[i]
              : static_cast<int64_t>(element[0].ElementAsDouble(i)));
    }
  }
  return numbers;
}

// Returns the shapes of component 0: "[2] [2] [1]".
inline std::string Shapes(const Dataset& dataset) {
  std::string shapes;
  for (const Element& element : Elements(dataset)) {
    if (!shapes.empty()) shapes += " ";
    shapes += element[0].shape().ToString();
  }
  return shapes;
}

// 0, 1, ..., count - 1 as elements that are not rows of a table, so that stages
// use their general implementation.
inline Dataset Stream(int64_t count) {
  return Dataset::Range(count).MapElements(
      [](Element element) -> absl::StatusOr<Element> { return element; },
      {{DType::kInt64, Shape()}});
}

// A stage that fails at element `number`.
inline Dataset FailAt(const Dataset& numbers, int64_t number) {
  return numbers.MapElements(
      [number](Element element) -> absl::StatusOr<Element> {
        if (element[0].scalar<int64_t>() == number) {
          return absl::DataLossError("bad record");
        }
        return element;
      },
      numbers.element_types());
}

}  // namespace muster

#endif  // COMMON_DATASET_TESTING_TEST_ELEMENTS_H_
