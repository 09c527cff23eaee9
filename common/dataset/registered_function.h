#ifndef COMMON_DATASET_REGISTERED_FUNCTION_H_
#define COMMON_DATASET_REGISTERED_FUNCTION_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/core/tensor/tensor.h"
#include "common/dataset/components.h"
#include "common/dataset/dataset.h"
#include "common/dataset/element_function.h"

namespace muster {

// C++ functions of elements that have names. A dataset with such a function can
// be sent to other processes: to workers of parameter servers, for example, if
// they run the program that registers it.
//
//   absl::StatusOr<RegisteredFunction> MakeScale(
//       absl::string_view factor, const ElementSpec& elements) {...}
//   const bool kIsRegistered = RegisterElementFunction("scale", MakeScale);
//
//   dataset = MapRegistered(dataset, "scale", "0.5");
//
// Where the ops suffice, Map() of a traced function does the same in any
// process.
struct RegisteredFunction {
  Dataset::ElementFunction function;
  std::vector<TensorType> output_types;
  // None, or one for each, as ElementSpec::names.
  std::vector<std::string> output_names = {};
};

// Makes a function from the `argument` of MapRegistered() and what the elements
// are: elements.Find("age") is the position of a component. Called in each
// process that has the dataset. Thread-safe, and equal arguments make equal
// functions.
using RegisteredFunctionMaker =
    std::function<absl::StatusOr<RegisteredFunction>(
        absl::string_view argument, const ElementSpec& elements)>;

// Registers a function for the rest of the process, before any dataset uses it:
// in a source file that the program uses, since linkers leave out others.
// Returns true, so that it can initialize a variable before main(); false if
// the name is taken, and then MapRegistered() refuses it. Thread-safe.
bool RegisterElementFunction(const std::string& name,
                             RegisteredFunctionMaker maker);

// As MapElements() with the function of that name.
//   kNotFound       this process has no function of that name; lists those it
//                   has
//   kAlreadyExists  it has several
//   kInvalidArgument  output_names are not one for each component, or two are
//                     equal
//   others          as the maker
Dataset MapRegistered(const Dataset& dataset, const std::string& name,
                      const std::string& argument = "",
                      const MapOptions& options = {});

// The function as a dataset's stage has it. Errors are those of
// MapRegistered().
absl::StatusOr<std::shared_ptr<const ElementFunctionFactory>>
MakeRegisteredFunction(const std::string& name, const std::string& argument,
                       const ElementSpec& elements);

}  // namespace muster

#endif  // COMMON_DATASET_REGISTERED_FUNCTION_H_
