#include "common/learn/train/job/job_config_reader.h"

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/core/base/check.h"
#include "common/learn/nn/config_visitor.h"
#include "common/learn/nn/initializers.h"
#include "common/learn/nn/regularizers.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"
#include "google/protobuf/reflection.h"
#include "proto/job_layer.pb.h"
#include "proto/variable.pb.h"

namespace muster {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using proto::JobInitializer;
using proto::JobRegularizer;

// Of a message without a kind: `fallback`.
proto::Initializer ToInitializer(const JobInitializer& job,
                                 const proto::Initializer& fallback) {
  // Absent fields keep what the options of the initializer have.
  const auto normal = [](const auto& given) {
    RandomNormalOptions options;
    if (given.has_mean()) options.mean = given.mean();
    if (given.has_stddev()) options.stddev = given.stddev();
    return options;
  };
  switch (job.kind_case()) {
    case JobInitializer::kZeros:
      return Zeros();
    case JobInitializer::kOnes:
      return Ones();
    case JobInitializer::kConstant:
      return Constant(job.constant().value());
    case JobInitializer::kRandomUniform: {
      const JobInitializer::RandomUniform& given = job.random_uniform();
      RandomUniformOptions options;
      if (given.has_minval()) options.minval = given.minval();
      if (given.has_maxval()) options.maxval = given.maxval();
      return RandomUniform(options);
    }
    case JobInitializer::kRandomNormal:
      return RandomNormal(normal(job.random_normal()));
    case JobInitializer::kTruncatedNormal:
      return TruncatedNormal(normal(job.truncated_normal()));
    case JobInitializer::kGlorotUniform:
      return GlorotUniform();
    case JobInitializer::kGlorotNormal:
      return GlorotNormal();
    case JobInitializer::kHeUniform:
      return HeUniform();
    case JobInitializer::kHeNormal:
      return HeNormal();
    case JobInitializer::kLecunUniform:
      return LecunUniform();
    case JobInitializer::kLecunNormal:
      return LecunNormal();
    case JobInitializer::kOrthogonal: {
      OrthogonalOptions options;
      if (job.orthogonal().has_gain()) options.gain = job.orthogonal().gain();
      return Orthogonal(options);
    }
    case JobInitializer::KIND_NOT_SET:
      break;
  }
  return fallback;
}

L1L2Options ToFactors(const JobRegularizer& job) {
  switch (job.kind_case()) {
    case JobRegularizer::kL1:
      return {.l1 = job.l1().has_l1() ? job.l1().l1() : 0.01};
    case JobRegularizer::kL2:
      return {.l2 = job.l2().has_l2() ? job.l2().l2() : 0.01};
    case JobRegularizer::kL1L2:
      return {.l1 = job.l1_l2().l1(), .l2 = job.l1_l2().l2()};
    case JobRegularizer::KIND_NOT_SET:
      break;
  }
  return {};
}

}  // namespace

JobConfigReader::JobConfigReader(absl::string_view kind, const Message& message)
    : kind_(kind), message_(message) {}

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
  value = message_.GetReflection()->GetInt64(message_, field);
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

void JobConfigReader::Visit(ConfigName name, proto::Initializer& value) {
  const Message* const given = FindMessage(name);
  if (given == nullptr) return;
  value = ToInitializer(static_cast<const JobInitializer&>(*given), value);
}

void JobConfigReader::Visit(ConfigName name, Regularizer& value) {
  const Message* const given = FindMessage(name);
  if (given == nullptr) return;
  const auto& job = static_cast<const JobRegularizer&>(*given);
  if (job.kind_case() == JobRegularizer::KIND_NOT_SET) return;
  const L1L2Options factors = ToFactors(job);
  const auto is_factor = [](double x) { return x >= 0 && std::isfinite(x); };
  if (!is_factor(factors.l1) || !is_factor(factors.l2)) {
    Refuse(name, absl::StrCat("must have finite factors of at least 0, got l1 ",
                              factors.l1, " and l2 ", factors.l2));
  }
  value = L1L2(factors);
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
    if (names[i] != given) continue;
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

}  // namespace muster
