#ifndef TESTS_GOLDEN_ARGUMENT_SETTER_H_
#define TESTS_GOLDEN_ARGUMENT_SETTER_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/learn/nn/config_visitor.h"
#include "common/learn/nn/layer_ptr.h"
#include "nlohmann/json.hpp"

namespace muster {

// What tests/golden/keras_arguments.json says of a class of Keras, by Keras'
// names of its arguments: values of those without a default, and for arguments
// that take few values, which.
struct ClassArguments {
  nlohmann::ordered_json base = nlohmann::ordered_json::object();
  nlohmann::ordered_json values = nlohmann::ordered_json::object();
};

// Sets the arguments of an object: those of the base, and one of the others to
// one of its variants: the ends of its range, None, each choice.
class ArgumentSetter : public ConfigVisitor {
 public:
  // `arguments` is borrowed. Sets `argument`, which may be empty, to the
  // variant with this index.
  ArgumentSetter(const ClassArguments& arguments, std::string argument,
                 int variant)
      : arguments_(arguments),
        argument_(std::move(argument)),
        variant_(variant) {}

  using ConfigVisitor::Visit;
  void Visit(ConfigName name, bool& value) override;
  void Visit(ConfigName name, int64_t& value) override;
  void Visit(ConfigName name, double& value) override;
  void Visit(ConfigName name, uint64_t& seed) override;
  void Visit(ConfigName name, std::string& value) override;
  void Visit(ConfigName name, std::vector<int64_t>& values) override;
  void Visit(ConfigName name, std::vector<double>& values) override;
  void Visit(ConfigName name, std::vector<std::string>& values) override;
  void Visit(ConfigName name, Initializer& value) override;
  void Visit(ConfigName name, Regularizer& value) override;
  void Visit(ConfigName name, Constraint& value) override;
  void Visit(ConfigName name, LayerPtr& layer) override;
  void VisitLayers(ConfigName name, std::vector<LayerPtr>& layers) override;
  void VisitChoice(ConfigName name, int& index,
                   absl::Span<const absl::string_view> names) override;
  void VisitPairs(ConfigName name, std::vector<int64_t>& values) override;
  void VisitExtents(ConfigName name, std::vector<int64_t>& values) override;
  void VisitNumbers(ConfigName name, std::vector<double>& values) override;
  bool IsPresent(ConfigName name, bool is_set) override;
  void Refuse(ConfigName name, absl::string_view what) override;

  // The arguments that were visited, in their order.
  const std::vector<std::string>& names() const { return names_; }
  // True if the argument had a variant with the index.
  bool is_set() const { return is_set_; }
  // The value that it was set to, as Keras has it.
  const nlohmann::ordered_json& meant() const { return meant_; }
  // Why the object refuses its arguments; empty if it takes them.
  const std::string& refusal() const { return refusal_; }

 private:
  template <typename T>
  void Set(ConfigName name, T& value, const std::vector<T>& variants);
  // Returns true if `name` is the argument that is set, and it has a variant
  // with the index; *index is that among the values after None.
  bool IsChosen(ConfigName name, size_t count, size_t* index);
  void Choose(nlohmann::ordered_json meant);
  // Null if the base has no value.
  const nlohmann::ordered_json& BaseOf(ConfigName name);

  const ClassArguments& arguments_;
  const std::string argument_;
  const int variant_;
  std::vector<std::string> names_;
  // Those that may be None, which is their variant 0.
  bool has_none_ = false;
  bool is_set_ = false;
  nlohmann::ordered_json meant_;
  std::string refusal_;
};

}  // namespace muster

#endif  // TESTS_GOLDEN_ARGUMENT_SETTER_H_
