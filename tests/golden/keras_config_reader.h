#ifndef TESTS_GOLDEN_KERAS_CONFIG_READER_H_
#define TESTS_GOLDEN_KERAS_CONFIG_READER_H_

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/core/base/check.h"
#include "common/learn/nn/config_visitor.h"
#include "common/learn/nn/layer_ptr.h"
#include "nlohmann/json.hpp"

namespace muster {

// Sets hyperparameters from Keras' config, by Keras' names. An absent or null
// entry changes nothing. Crashes if a value has another type, or if a choice
// has an unknown name.
class KerasConfigReader : public ConfigVisitor {
 public:
  // `config` is borrowed.
  explicit KerasConfigReader(const nlohmann::json& config) : config_(config) {}

  using ConfigVisitor::Visit;
  void Visit(ConfigName name, bool& value) override { Read(name, value); }
  void Visit(ConfigName name, int64_t& value) override { Read(name, value); }
  void Visit(ConfigName name, double& value) override { Read(name, value); }
  void Visit(ConfigName name, uint64_t& seed) override { Read(name, seed); }
  void Visit(ConfigName name, std::string& value) override {
    Read(name, value);
  }
  void Visit(ConfigName name, std::vector<int64_t>& values) override {
    Read(name, values);
  }
  void Visit(ConfigName name, std::vector<double>& values) override {
    Read(name, values);
  }
  void Visit(ConfigName name, std::vector<std::string>& values) override {
    Read(name, values);
  }
  void Visit(ConfigName name, Initializer&) override {
    MUSTER_CHECK(!IsPresent(name, false));
  }
  void Visit(ConfigName name, Regularizer&) override {
    MUSTER_CHECK(!IsPresent(name, false));
  }
  void Visit(ConfigName name, Constraint&) override {
    MUSTER_CHECK(!IsPresent(name, false));
  }
  void Visit(ConfigName name, LayerPtr&) override {
    MUSTER_CHECK(!IsPresent(name, false));
  }
  void VisitLayers(ConfigName name, std::vector<LayerPtr>&) override {
    MUSTER_CHECK(!IsPresent(name, false));
  }
  void VisitChoice(ConfigName name, int& index,
                   absl::Span<const absl::string_view> names) override {
    std::string given;
    Read(name, given);
    const bool is_none =
        given.empty() && config_.contains(std::string(name.keras)) &&
        std::find(names.begin(), names.end(), "none") != names.end();
    if (is_none) given = "none";
    if (given.empty()) return;
    index = 0;
    while (names.at(index) != given) ++index;
  }
  void VisitPairs(ConfigName name, std::vector<int64_t>&) override {
    MUSTER_CHECK(!IsPresent(name, false));
  }
  void VisitNumbers(ConfigName name, std::vector<double>& values) override {
    if (!IsPresent(name, false)) return;
    const nlohmann::json& given = config_.at(std::string(name.keras));
    values = given.is_array() ? given.get<std::vector<double>>()
                              : std::vector<double>{given.get<double>()};
  }
  bool IsPresent(ConfigName name, bool) override {
    const auto found = config_.find(std::string(name.keras));
    return found != config_.end() && !found->is_null();
  }
  void Refuse(ConfigName, absl::string_view) override { MUSTER_CHECK(false); }

 private:
  template <typename T>
  void Read(ConfigName name, T& value) {
    if (!IsPresent(name, false)) return;
    value = config_.at(std::string(name.keras)).get<T>();
  }

  const nlohmann::json& config_;
};

// Returns the entry of a table, like kLossKinds, for the config's class; null
// if the table lacks it.
template <typename Kind, size_t count>
const Kind* FindKerasKind(const Kind (&kinds)[count],
                          const nlohmann::json& config) {
  for (const Kind& kind : kinds) {
    if (config.at("class_name") == std::string(kind.keras_class)) return &kind;
  }
  return nullptr;
}

}  // namespace muster

#endif  // TESTS_GOLDEN_KERAS_CONFIG_READER_H_
