#include "common/learn/train/job/job_config_reader.h"

#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/compute/variables/constraint.h"
#include "common/compute/variables/initializer.h"
#include "common/core/base/check.h"
#include "common/learn/nn/config_visitor.h"
#include "common/learn/nn/constraints.h"
#include "common/learn/nn/initializers.h"
#include "common/learn/nn/layer_ptr.h"
#include "common/learn/nn/regularizers.h"
#include "common/learn/train/job/job_schema.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"
#include "google/protobuf/reflection.h"

namespace muster {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

}  // namespace

JobConfigReader::JobConfigReader(absl::string_view kind, const Message& message,
                                 LayerBuilder build_layer)
    : kind_(kind), message_(message), build_layer_(std::move(build_layer)) {}

const FieldDescriptor* JobConfigReader::Find(ConfigName name) {
  if (name.job.empty()) return nullptr;
  const FieldDescriptor* const field =
      message_.GetDescriptor()->FindFieldByName(std::string(name.job));
  MUSTER_CHECK(field != nullptr);
  visited_.insert(field);
  const google::protobuf::Reflection& reflection = *message_.GetReflection();
  const bool is_present = field->is_repeated()
                              ? reflection.FieldSize(message_, field) > 0
                              : reflection.HasField(message_, field);
  return is_present ? field : nullptr;
}

const Message* JobConfigReader::FindMessage(ConfigName name) {
  const FieldDescriptor* const field = Find(name);
  if (field == nullptr) return nullptr;
  return &message_.GetReflection()->GetMessage(message_, field);
}

void JobConfigReader::Visit(ConfigName name, bool& value) {
  const FieldDescriptor* const field = Find(name);
  if (field == nullptr) return;
  value = message_.GetReflection()->GetBool(message_, field);
}

void JobConfigReader::Visit(ConfigName name, int64_t& value) {
  const FieldDescriptor* const field = Find(name);
  if (field == nullptr) return;
  const google::protobuf::Reflection& reflection = *message_.GetReflection();
  value = field->cpp_type() == FieldDescriptor::CPPTYPE_INT32
              ? reflection.GetInt32(message_, field)
              : reflection.GetInt64(message_, field);
}

void JobConfigReader::Visit(ConfigName name, double& value) {
  const FieldDescriptor* const field = Find(name);
  if (field == nullptr) return;
  value = message_.GetReflection()->GetDouble(message_, field);
}

void JobConfigReader::Visit(ConfigName name, uint64_t& seed) {
  const FieldDescriptor* const field = Find(name);
  if (field == nullptr) return;
  seed = message_.GetReflection()->GetUInt64(message_, field);
}

void JobConfigReader::Visit(ConfigName name, std::vector<int64_t>& values) {
  const FieldDescriptor* const field = Find(name);
  if (field == nullptr) return;
  const auto given =
      message_.GetReflection()->GetRepeatedFieldRef<int64_t>(message_, field);
  values.assign(given.begin(), given.end());
}

void JobConfigReader::Visit(ConfigName name, std::vector<double>& values) {
  const FieldDescriptor* const field = Find(name);
  if (field == nullptr) return;
  const auto given =
      message_.GetReflection()->GetRepeatedFieldRef<double>(message_, field);
  values.assign(given.begin(), given.end());
}

void JobConfigReader::Visit(ConfigName name, std::vector<std::string>& values) {
  const FieldDescriptor* const field = Find(name);
  if (field == nullptr) return;
  const auto given = message_.GetReflection()->GetRepeatedFieldRef<std::string>(
      message_, field);
  values.assign(given.begin(), given.end());
}

void JobConfigReader::Visit(ConfigName name, Initializer& value) {
  const Message* const given = FindMessage(name);
  if (given == nullptr || KindOf(*given).empty()) return;
  absl::StatusOr<Initializer> made = MakeOfKind<Initializer>(
      kInitializerKinds, *given, "glorot_uniform {}",
      [](const InitializerKind& kind, ConfigVisitor& visitor) {
        return kind.make(visitor);
      });
  if (!made.ok()) return Refuse(name, made.status().message());
  value = *std::move(made);
}

void JobConfigReader::Visit(ConfigName name, Regularizer& value) {
  const Message* const given = FindMessage(name);
  if (given == nullptr || KindOf(*given).empty()) return;
  absl::StatusOr<Regularizer> made = MakeOfKind<Regularizer>(
      kRegularizerKinds, *given, "l2 {}",
      [](const RegularizerKind& kind, ConfigVisitor& visitor) {
        return kind.make(visitor);
      });
  if (!made.ok()) return Refuse(name, made.status().message());
  const L1L2Options factors = made->factors().value_or(L1L2Options());
  const auto is_factor = [](double x) { return x >= 0 && std::isfinite(x); };
  if (!is_factor(factors.l1) || !is_factor(factors.l2)) {
    Refuse(name, absl::StrCat("must have finite factors of at least 0, got l1 ",
                              factors.l1, " and l2 ", factors.l2));
  }
  value = *std::move(made);
}

void JobConfigReader::Visit(ConfigName name, Constraint& value) {
  const Message* const given = FindMessage(name);
  if (given == nullptr || KindOf(*given).empty()) return;
  absl::StatusOr<Constraint> made = MakeOfKind<Constraint>(
      kConstraintKinds, *given, "max_norm {}",
      [](const ConstraintKind& kind, ConfigVisitor& visitor) {
        return kind.make(visitor);
      });
  if (!made.ok()) return Refuse(name, made.status().message());
  const absl::Status status = CheckConstraint(made->definition());
  if (!status.ok()) {
    return Refuse(name, absl::StrCat("is invalid: ", status.message()));
  }
  value = *std::move(made);
}

void JobConfigReader::Visit(ConfigName name, LayerPtr& layer) {
  const Message* const given = FindMessage(name);
  if (given != nullptr) MakeLayer(name, *given, &layer);
}

void JobConfigReader::VisitLayers(ConfigName name,
                                  std::vector<LayerPtr>& layers) {
  const FieldDescriptor* const field = Find(name);
  if (field == nullptr) return;
  const google::protobuf::Reflection& reflection = *message_.GetReflection();
  layers.assign(reflection.FieldSize(message_, field), nullptr);
  for (size_t i = 0; i < layers.size(); ++i) {
    MakeLayer(
        name,
        reflection.GetRepeatedMessage(message_, field, static_cast<int>(i)),
        &layers[i]);
  }
}

void JobConfigReader::MakeLayer(ConfigName name, const Message& given,
                                LayerPtr* layer) {
  MUSTER_CHECK(build_layer_ != nullptr);
  absl::StatusOr<LayerPtr> made = build_layer_(given);
  if (made.ok()) {
    *layer = *std::move(made);
  } else if (status_.ok()) {
    status_ = absl::InvalidArgumentError(
        absl::StrCat(kind_, ".", name.job, ": ", made.status().message()));
  }
}

void JobConfigReader::Visit(ConfigName name, std::string& value) {
  const FieldDescriptor* const field = Find(name);
  if (field == nullptr) return;
  value = message_.GetReflection()->GetString(message_, field);
}

void JobConfigReader::VisitChoice(ConfigName name, int& index,
                                  absl::Span<const absl::string_view> names) {
  const FieldDescriptor* const field = Find(name);
  if (field == nullptr) return;
  const std::string given = absl::AsciiStrToLower(
      message_.GetReflection()->GetEnum(message_, field)->name());
  for (size_t i = 0; i < names.size(); ++i) {
    if (absl::AsciiStrToLower(names[i]) != given) continue;
    index = static_cast<int>(i);
    return;
  }
  Refuse(name, absl::StrCat("must be one of ", absl::StrJoin(names, ", "),
                            ", in capitals, got ", given));
}

void JobConfigReader::VisitPairs(ConfigName name,
                                 std::vector<int64_t>& values) {
  Visit(name, values);
}

bool JobConfigReader::IsPresent(ConfigName name, bool) {
  return Find(name) != nullptr;
}

void JobConfigReader::Refuse(ConfigName name, absl::string_view what) {
  if (!status_.ok()) return;
  status_ =
      absl::InvalidArgumentError(absl::StrCat(kind_, ".", name.job, " ", what));
}

absl::Status JobConfigReader::Finish() {
  std::vector<const FieldDescriptor*> fields;
  message_.GetReflection()->ListFields(message_, &fields);
  for (const FieldDescriptor* const field : fields) {
    if (visited_.contains(field)) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(kind_, " has no ", field->name(), "; remove it"));
  }
  return status_;
}

namespace {

// The field of the message's oneof `kind` that is set; null if none is. The
// message is one of the schema.
const FieldDescriptor* FieldOfKind(const Message& message) {
  const google::protobuf::OneofDescriptor* const kinds =
      message.GetDescriptor()->FindOneofByName("kind");
  MUSTER_CHECK(kinds != nullptr);
  return message.GetReflection()->GetOneofFieldDescriptor(message, kinds);
}

}  // namespace

std::string KindOf(const Message& message) {
  std::string name;
  ReadKind(message, [&](absl::string_view kind, const Message&) {
    name = std::string(kind);
    return absl::OkStatus();
  }).IgnoreError();
  return name;
}

absl::Status ReadKind(
    const Message& message,
    absl::FunctionRef<absl::Status(absl::string_view, const Message&)> read) {
  // The message of a generated class has no fields of kinds.
  const bool is_generated =
      message.GetDescriptor()->file()->pool() != &JobSchema();
  const std::unique_ptr<Message> copy =
      is_generated ? WithKinds(message) : nullptr;
  const Message& with_kinds = is_generated ? *copy : message;
  const FieldDescriptor* const field = FieldOfKind(with_kinds);
  if (field == nullptr) return absl::OkStatus();
  return read(field->name(),
              with_kinds.GetReflection()->GetMessage(with_kinds, field));
}

}  // namespace muster
