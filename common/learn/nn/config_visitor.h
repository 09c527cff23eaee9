#ifndef COMMON_LEARN_NN_CONFIG_VISITOR_H_
#define COMMON_LEARN_NN_CONFIG_VISITOR_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/learn/nn/activations.h"

namespace muster {

class Constraint;
class Initializer;
class Layer;
class Regularizer;
template <typename T>
class LayerPtrTo;
using LayerPtr = LayerPtrTo<Layer>;

// The name of a hyperparameter in job files and in Keras' config. Empty if the
// hyperparameter does not exist there.
struct ConfigName {
  ConfigName(const char* both) : job(both), keras(both) {}         // NOLINT
  ConfigName(const std::string& both) : job(both), keras(both) {}  // NOLINT
  ConfigName(absl::string_view job, absl::string_view keras)
      : job(job), keras(keras) {}

  absl::string_view job;
  absl::string_view keras;
  // What the reference of job files says beside name, type and default: units,
  // special values, what the name leaves open.
  absl::string_view description = "";
};

// Returns the name with this description, which must outlive the call that it
// is an argument of.
inline ConfigName Described(ConfigName name, absl::string_view description) {
  name.description = description;
  return name;
}

// Visits the hyperparameters of a layer, one call for each. A layer lists them
// once, in Layer::VisitConfig(). Readers and writers of layers are visitors,
// and so is the schema of job files, which has a field for each hyperparameter.
// The reader of job files sets the values that the file contains and leaves the
// others at the layer's defaults. The writer of Keras' config copies the
// values. The options of losses, metrics, initializers and callbacks have a
// VisitConfig() for the same visitors.
//
//   void DenseLayer::VisitConfig(ConfigVisitor& visitor) {
//     visitor.VisitPositive("units", units_);
//     visitor.Visit("activation", options_.activation);
//     visitor.VisitWeight("kernel", options_.kernel_initializer,
//                         options_.kernel_regularizer,
//                         options_.kernel_constraint);
//   }
//
// Not thread-safe.
class ConfigVisitor {
 public:
  virtual ~ConfigVisitor() = default;

  virtual void Visit(ConfigName name, bool& value) = 0;
  virtual void Visit(ConfigName name, int64_t& value) = 0;
  // A number that the options keep as an int.
  virtual void VisitInt32(ConfigName name, int64_t& value) {
    Visit(name, value);
  }
  virtual void Visit(ConfigName name, double& value) = 0;
  // A seed; 0 means none.
  virtual void Visit(ConfigName name, uint64_t& seed) = 0;
  virtual void Visit(ConfigName name, std::string& value) = 0;
  // An empty list is Keras' None.
  virtual void Visit(ConfigName name, std::vector<int64_t>& values) = 0;
  virtual void Visit(ConfigName name, std::vector<double>& values) = 0;
  virtual void Visit(ConfigName name, std::vector<std::string>& values) = 0;
  virtual void Visit(ConfigName name, Initializer& value) = 0;
  virtual void Visit(ConfigName name, Regularizer& value) = 0;
  virtual void Visit(ConfigName name, Constraint& value) = 0;
  // A layer inside a layer. Null means none.
  virtual void Visit(ConfigName name, LayerPtr& layer) = 0;
  // A list of layers.
  virtual void VisitLayers(ConfigName name, std::vector<LayerPtr>& layers) = 0;
  // `index` is a position in `names`, which are spelled as in Keras. "none" is
  // Keras' None.
  virtual void VisitChoice(ConfigName name, int& index,
                           absl::Span<const absl::string_view> names) = 0;
  // A flat list of pairs, which is nested in Keras' config: [[1, 1], [2, 2]].
  virtual void VisitPairs(ConfigName name, std::vector<int64_t>& values) = 0;
  // Extents, of which an unknown one, -1, is None in a list of Keras' config.
  virtual void VisitExtents(ConfigName name, std::vector<int64_t>& values) {
    Visit(name, values);
  }

  // Numbers, of which a single one is no list in Keras' config: 0.5, or
  // [0.5, 1].
  virtual void VisitNumbers(ConfigName name, std::vector<double>& values) {
    Visit(name, values);
  }

  // Returns true if an optional hyperparameter is set. A reader returns whether
  // it found the hyperparameter. A writer returns `is_set`, and writes None if
  // it is false.
  virtual bool IsPresent(ConfigName name, bool is_set) = 0;
  // Reports an invalid value. `what` follows the name in the message: "must be
  // at least 1, got 0". A reader keeps the first report; a writer ignores all.
  virtual void Refuse(ConfigName name, absl::string_view what) = 0;
  // Says what the kind is for, where its name does not.
  virtual void Describe(absl::string_view) {}

  template <typename T>
  void Visit(ConfigName name, std::optional<T>& value) {
    if (!IsPresent(name, value.has_value())) return;
    T present = value.value_or(T());
    Visit(name, present);
    value = present;
  }
  // An enum whose values are the positions in `names`, from 0.
  template <typename Enum, size_t count>
  void Visit(ConfigName name, Enum& value,
             const absl::string_view (&names)[count]) {
    int index = static_cast<int>(value);
    VisitChoice(name, index, names);
    value = static_cast<Enum>(index);
  }
  void Visit(ConfigName name, Activation& value);
  // A file cannot have a number here that is no int.
  void Visit(ConfigName name, int& value);

  // Refuses values below 1.
  void VisitPositive(ConfigName name, int64_t& value);
  // Refuses values outside [0, 1).
  void VisitRate(ConfigName name, double& value);
  // "<weight>_initializer", "<weight>_regularizer" and "<weight>_constraint".
  void VisitWeight(absl::string_view weight, Initializer& initializer,
                   Regularizer& regularizer, Constraint& constraint);
};

// The options of what has none.
struct NoOptions {
  void VisitConfig(ConfigVisitor&) {}
};

// Returns make(options), where `options` are the defaults with what the visitor
// has set. For the tables of kinds: kLossKinds, kMetricKinds,
// kInitializerKinds.
template <typename Made, typename Options, Made (*make)(const Options&)>
Made MakeConfigured(ConfigVisitor& visitor) {
  Options options;
  options.VisitConfig(visitor);
  return make(options);
}

}  // namespace muster

#endif  // COMMON_LEARN_NN_CONFIG_VISITOR_H_
