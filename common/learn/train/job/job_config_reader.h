#ifndef COMMON_LEARN_TRAIN_JOB_JOB_CONFIG_READER_H_
#define COMMON_LEARN_TRAIN_JOB_JOB_CONFIG_READER_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/core/base/status_macros.h"
#include "common/learn/nn/config_visitor.h"
#include "common/learn/nn/layer_ptr.h"
#include "common/learn/nn/regularizers.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"

namespace muster {

// Sets hyperparameters to what a message of a job file has for them. The field
// of a hyperparameter has its name; one that is absent changes nothing. Values
// of an enum are Keras' names in capitals.
//
//   JobConfigReader reader("exporter", job.exporter());
//   reader.Visit("exports_to_keep", options.exports_to_keep);
//   RETURN_IF_ERROR(reader.Finish());
class JobConfigReader : public ConfigVisitor {
 public:
  // Makes the layer that a JobLayer inside another layer describes.
  using LayerBuilder = std::function<absl::StatusOr<LayerPtr>(
      const google::protobuf::Message& layer)>;

  // `kind` is how errors call the message. `message` is borrowed. Messages that
  // have layers need `build_layer`.
  JobConfigReader(absl::string_view kind,
                  const google::protobuf::Message& message,
                  LayerBuilder build_layer = nullptr);

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
  bool IsPresent(ConfigName name, bool is_set) override;
  void Refuse(ConfigName name, absl::string_view what) override;

  // To be called when everything was visited.
  //   kInvalidArgument  a value was refused, or the message has a field that
  //                     was not visited; names the field
  absl::Status Finish();

 private:
  // The field if the message has it, otherwise null. Crashes where the schema
  // has no such field.
  const google::protobuf::FieldDescriptor* Find(ConfigName name);
  // Makes the layer, or keeps the error.
  void MakeLayer(ConfigName name, const google::protobuf::Message& given,
                 LayerPtr* layer);
  // The message in the field if there is one, otherwise null.
  const google::protobuf::Message* FindMessage(ConfigName name);

  const std::string kind_;
  const google::protobuf::Message& message_;
  const LayerBuilder build_layer_;
  absl::flat_hash_set<const google::protobuf::FieldDescriptor*> visited_;
  absl::Status status_;
};

// Returns the name of the kind that a message of a job has (job_schema.h):
// "dense", "model". Empty if it has none.
std::string KindOf(const google::protobuf::Message& message);

// Returns read(kind, hyperparameters) with the name of the message's kind and
// the message of its hyperparameters. Returns OK if the message has no kind.
absl::Status ReadKind(const google::protobuf::Message& message,
                      absl::FunctionRef<absl::Status(
                          absl::string_view, const google::protobuf::Message&)>
                          read);

// Returns the options of a message of this kind, like "backup_and_restore",
// with what the file has set. Empty for a message of another kind. Whether the
// values are valid is for MakeOfKind() to report.
template <typename Options>
std::optional<Options> FindOptionsOfKind(
    absl::string_view kind, const google::protobuf::Message& message) {
  std::optional<Options> options;
  ReadKind(message, [&](absl::string_view found,
                        const google::protobuf::Message& hyperparameters) {
    if (found != kind) return absl::OkStatus();
    JobConfigReader reader(kind, hyperparameters);
    options.emplace().VisitConfig(reader);
    return reader.Finish();
  }).IgnoreError();
  return options;
}

// Makes what the kind of `message` says: make(kind, visitor), with the entry of
// the table, like kLossKinds, and a visitor that sets what the file has.
// `build_layer` makes the layers inside.
//   kInvalidArgument  it has no kind, or none of the table; quotes `example`.
//                     Or as JobConfigReader::Finish()
//   others            of `make`
template <typename Made, typename Kind, size_t count, typename Make>
absl::StatusOr<Made> MakeOfKind(
    const Kind (&kinds)[count], const google::protobuf::Message& message,
    absl::string_view example, const Make& make,
    JobConfigReader::LayerBuilder build_layer = nullptr) {
  absl::StatusOr<Made> made = absl::InvalidArgumentError(
      absl::StrCat("says nothing; expected for example ", example));
  RETURN_IF_ERROR(
      ReadKind(message, [&](absl::string_view name,
                            const google::protobuf::Message& hyperparameters) {
        for (const Kind& kind : kinds) {
          if (kind.name != name) continue;
          JobConfigReader reader(name, hyperparameters, std::move(build_layer));
          made = make(kind, reader);
          return reader.Finish();
        }
        return absl::InvalidArgumentError(absl::StrCat(
            name, " cannot stand here; expected for example ", example));
      }));
  return made;
}

}  // namespace muster

#endif  // COMMON_LEARN_TRAIN_JOB_JOB_CONFIG_READER_H_
