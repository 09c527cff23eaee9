#include "common/learn/nn/config_visitor.h"

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/learn/nn/activations.h"

namespace muster {
namespace {

const std::vector<absl::string_view>& ActivationNames() {
  static const auto& kNames = *[] {
    auto* const names = new std::vector<absl::string_view>();
    while (true) {
      const auto activation = static_cast<Activation>(names->size());
      const absl::string_view name = ActivationName(activation);
      if (name.empty()) return names;
      names->push_back(name);
    }
  }();
  return kNames;
}

}  // namespace

void ConfigVisitor::Visit(ConfigName name, Activation& value) {
  if (name.description.empty()) {
    name.description = "HARD_SIGMOID_KERAS2: clip(0.2 x + 0.5, 0, 1).";
  }
  int index = static_cast<int>(value);
  VisitChoice(name, index, ActivationNames());
  value = static_cast<Activation>(index);
}

void ConfigVisitor::Visit(ConfigName name, int& value) {
  int64_t wide = value;
  VisitInt32(name, wide);
  value = static_cast<int>(wide);
}

void ConfigVisitor::VisitPositive(ConfigName name, int64_t& value) {
  Visit(name, value);
  if (value < 1) {
    Refuse(name, absl::StrCat("must be at least 1, got ", value));
  }
}

void ConfigVisitor::VisitRate(ConfigName name, double& value) {
  Visit(name, value);
  if (!(value >= 0 && value < 1)) {
    Refuse(name,
           absl::StrCat("must be at least 0 and less than 1, got ", value));
  }
}

void ConfigVisitor::VisitWeight(absl::string_view weight,
                                Initializer& initializer,
                                Regularizer& regularizer,
                                Constraint& constraint) {
  Visit(absl::StrCat(weight, "_initializer"), initializer);
  Visit(absl::StrCat(weight, "_regularizer"), regularizer);
  Visit(absl::StrCat(weight, "_constraint"), constraint);
}

}  // namespace muster
