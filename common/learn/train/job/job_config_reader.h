#ifndef COMMON_LEARN_TRAIN_JOB_JOB_CONFIG_READER_H_
#define COMMON_LEARN_TRAIN_JOB_JOB_CONFIG_READER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/learn/nn/config_visitor.h"
#include "common/learn/nn/regularizers.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"
#include "proto/variable.pb.h"

namespace muster {

// Sets hyperparameters to what a message of a job file has for them. The field
// of a hyperparameter has its name; one that is absent changes nothing. Values
// of an enum are Keras' names in capitals.
//
//   JobConfigReader reader("dense", job.dense());
//   layer->VisitConfig(reader);
//   RETURN_IF_ERROR(reader.Finish());
class JobConfigReader : public ConfigVisitor {
 public:
  // `kind` is how errors call the message. `message` is borrowed.
  JobConfigReader(absl::string_view kind,
                  const google::protobuf::Message& message);

  using ConfigVisitor::Visit;
  void Visit(ConfigName name, bool& value) override;
  void Visit(ConfigName name, int64_t& value) override;
  void Visit(ConfigName name, double& value) override;
  void Visit(ConfigName name, uint64_t& seed) override;
  void Visit(ConfigName name, std::vector<int64_t>& values) override;
  void Visit(ConfigName name, std::vector<double>& values) override;
  void Visit(ConfigName name, proto::Initializer& value) override;
  void Visit(ConfigName name, Regularizer& value) override;
  void Visit(ConfigName name, std::string& value);
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
  // The message in the field if there is one, otherwise null.
  const google::protobuf::Message* FindMessage(ConfigName name);

  const std::string kind_;
  const google::protobuf::Message& message_;
  absl::flat_hash_set<const google::protobuf::FieldDescriptor*> visited_;
  absl::Status status_;
};

}  // namespace muster

#endif  // COMMON_LEARN_TRAIN_JOB_JOB_CONFIG_READER_H_
