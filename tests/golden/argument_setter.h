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

// The entry of a Keras class in tests/golden/keras_arguments.json. Keys are
// Keras' names of arguments: values for arguments without a default, and the
// allowed values of arguments that take only a few.
struct ClassArguments {
  nlohmann::ordered_json base = nlohmann::ordered_json::object();
  nlohmann::ordered_json values = nlohmann::ordered_json::object();
};

// Sets the arguments of an object: those of the base, and one other argument to
// one of its variants: the ends of its range, None, or each choice.
class ArgumentSetter : public ConfigVisitor {
 public:
  // `arguments` is borrowed. Sets `argument`, which may be empty, to its
  // variant number `variant`.
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

  // Returns the names of the visited arguments, in order.
  const std::vector<std::string>& names() const { return names_; }
  // True if the argument has a variant with that number.
  bool is_set() const { return is_set_; }
  // Returns the value to which it was set, as Keras stores it.
  const nlohmann::ordered_json& meant() const { return intended_; }
  // Returns the reason why the object refuses its arguments; empty if it
  // accepts them.
  const std::string& refusal() const { return refusal_; }

 private:
  template <typename T>
  void Set(ConfigName name, T& value, const std::vector<T>& variants);
  // Returns true if `name` is the argument to set and has a variant with that
  // number. Sets *index to the number of the variant, not counting None.
  bool IsChosen(ConfigName name, size_t count, size_t* index);
  void Choose(nlohmann::ordered_json meant);
  // Returns null if the base has no value.
  const nlohmann::ordered_json& BaseOf(ConfigName name);

  const ClassArguments& arguments_;
  const std::string argument_;
  const int variant_;
  std::vector<std::string> names_;
  // True if the current argument may be None, which is its variant 0.
  bool has_none_ = false;
  bool is_set_ = false;
  nlohmann::ordered_json intended_;
  std::string refusal_;
};

}  // namespace muster

#endif  // TESTS_GOLDEN_ARGUMENT_SETTER_H_
