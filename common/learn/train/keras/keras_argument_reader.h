#ifndef COMMON_LEARN_TRAIN_KERAS_KERAS_ARGUMENT_READER_H_
#define COMMON_LEARN_TRAIN_KERAS_KERAS_ARGUMENT_READER_H_

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/learn/nn/config_visitor.h"
#include "common/learn/nn/layer_ptr.h"
#include "common/learn/nn/regularizers.h"
#include "common/learn/train/keras/keras_object.h"

namespace muster {

// Sets hyperparameters to what a config of Keras has for them. One that is
// absent or null changes nothing. One that Keras has as an argument of the call
// is read under its name in job files.
//
//   KerasArgumentReader reader("layer dense (Dense)", config);
//   layer->VisitConfig(reader);
//   RETURN_IF_ERROR(reader.Finish());
class KerasArgumentReader : public ConfigVisitor {
 public:
  // Makes the layer that a config inside that of another layer describes.
  using LayerReader =
      std::function<absl::StatusOr<LayerPtr>(const KerasJson& layer)>;

  // `place` is how errors call the object. `config` is an object, borrowed.
  // Objects that have layers need `read_layer`.
  KerasArgumentReader(absl::string_view place, const KerasJson& config,
                      LayerReader read_layer = nullptr)
      : place_(place), config_(config), read_layer_(std::move(read_layer)) {}

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
  bool IsPresent(ConfigName name, bool is_set) override;
  void Refuse(ConfigName name, absl::string_view what) override;

  // To be called when everything was visited.
  //   kInvalidArgument  a value was refused, or the config has an argument that
  //                     was not visited and asks for something that Muster does
  //                     not do; names place and argument
  absl::Status Finish();

 private:
  // The value if the config has it, and null otherwise.
  const KerasJson& Find(ConfigName name);
  void RefuseType(ConfigName name, absl::string_view expected,
                  const KerasJson& value);

  const std::string place_;
  const KerasJson& config_;
  const LayerReader read_layer_;
  absl::flat_hash_set<std::string> visited_;
  absl::Status status_;
};

}  // namespace muster

#endif  // COMMON_LEARN_TRAIN_KERAS_KERAS_ARGUMENT_READER_H_
