// Compares the schema of job files with the tables that it is made of.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/core/base/check.h"
#include "common/learn/nn/applications/applications.h"
#include "common/learn/nn/config_visitor.h"
#include "common/learn/nn/constraints.h"
#include "common/learn/nn/initializers.h"
#include "common/learn/nn/layer.h"
#include "common/learn/nn/layers/layers.h"
#include "common/learn/nn/losses.h"
#include "common/learn/nn/metrics.h"
#include "common/learn/nn/regularizers.h"
#include "common/learn/train/callbacks/callbacks.h"
#include "common/learn/train/job/job_schema.h"
#include "gmock/gmock.h"
#include "google/protobuf/descriptor.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::OneofDescriptor;
using ::testing::UnorderedElementsAreArray;

// Collects the hyperparameters that are visited, by their names in job files.
// A choice must have every value of the field's enum.
class HyperparameterCollector : public ConfigVisitor {
 public:
  explicit HyperparameterCollector(const Descriptor& message)
      : message_(message) {}

  using ConfigVisitor::Visit;
  void Visit(ConfigName name, bool&) override { Add(name); }
  void Visit(ConfigName name, int64_t&) override { Add(name); }
  void Visit(ConfigName name, double&) override { Add(name); }
  void Visit(ConfigName name, uint64_t&) override { Add(name); }
  void Visit(ConfigName name, std::string&) override { Add(name); }
  void Visit(ConfigName name, std::vector<int64_t>&) override { Add(name); }
  void Visit(ConfigName name, std::vector<double>&) override { Add(name); }
  void Visit(ConfigName name, std::vector<std::string>&) override { Add(name); }
  void Visit(ConfigName name, Initializer&) override { Add(name); }
  void Visit(ConfigName name, Regularizer&) override { Add(name); }
  void Visit(ConfigName name, Constraint&) override { Add(name); }
  void Visit(ConfigName name, LayerPtr&) override { Add(name); }
  void VisitLayers(ConfigName name, std::vector<LayerPtr>&) override {
    Add(name);
  }
  void VisitChoice(ConfigName name, int&,
                   absl::Span<const absl::string_view> names) override {
    const FieldDescriptor* const field = Add(name);
    if (field == nullptr) return;
    ASSERT_NE(field->enum_type(), nullptr) << field->full_name();
    for (int i = 0; i < field->enum_type()->value_count(); ++i) {
      const std::string& value = field->enum_type()->value(i)->name();
      EXPECT_TRUE(HasName(names, value))
          << field->full_name() << " can be " << value
          << ", which the table does not know";
    }
  }
  void VisitPairs(ConfigName name, std::vector<int64_t>&) override {
    Add(name);
  }
  bool IsPresent(ConfigName name, bool) override {
    Add(name);
    return true;
  }
  void Refuse(ConfigName, absl::string_view) override {}

  const absl::flat_hash_set<std::string>& names() const { return names_; }

 private:
  static bool HasName(absl::Span<const absl::string_view> names,
                      absl::string_view value) {
    for (const absl::string_view name : names) {
      if (absl::EqualsIgnoreCase(name, value)) return true;
    }
    return false;
  }

  const FieldDescriptor* Add(ConfigName name) {
    if (name.job.empty()) return nullptr;
    names_.emplace(name.job);
    const FieldDescriptor* const field =
        message_.FindFieldByName(std::string(name.job));
    EXPECT_NE(field, nullptr)
        << message_.full_name() << " has no field " << name.job;
    return field;
  }

  const Descriptor& message_;
  absl::flat_hash_set<std::string> names_;
};

// Expects a table to have the cases of the oneof `kind` of `schema`, except
// `others`, and no other; and each kind to have the fields of its message.
template <typename Kind, size_t count, typename Visit>
void ExpectTableFitsSchema(const Kind (&kinds)[count], const Descriptor& schema,
                           const absl::flat_hash_set<std::string>& others,
                           Visit visit) {
  SCOPED_TRACE(schema.full_name());
  const OneofDescriptor* const cases = schema.FindOneofByName("kind");
  ASSERT_NE(cases, nullptr);
  std::vector<std::string> in_schema;
  absl::flat_hash_set<std::string> fields;
  for (int i = 0; i < cases->field_count(); ++i) {
    const FieldDescriptor& field = *cases->field(i);
    if (others.contains(field.name())) continue;
    in_schema.push_back(field.name());
    for (int j = 0; j < field.message_type()->field_count(); ++j) {
      fields.insert(field.message_type()->field(j)->full_name());
    }
  }
  std::vector<std::string> in_table;
  absl::flat_hash_set<std::string> visited;
  for (const Kind& kind : kinds) {
    SCOPED_TRACE(kind.name);
    in_table.emplace_back(kind.name);
    const FieldDescriptor* const field =
        schema.FindFieldByName(std::string(kind.name));
    if (field == nullptr) continue;
    const Descriptor& message = *field->message_type();
    HyperparameterCollector collector(message);
    visit(kind, collector);
    for (const std::string& name : collector.names()) {
      visited.insert(absl::StrCat(message.full_name(), ".", name));
    }
  }
  EXPECT_THAT(in_table, UnorderedElementsAreArray(in_schema));
  EXPECT_THAT(visited, UnorderedElementsAreArray(fields));
}

const Descriptor& SchemaOf(const std::string& message) {
  const Descriptor* const found =
      JobSchema().FindMessageTypeByName("muster.proto." + message);
  MUSTER_CHECK(found != nullptr);
  return *found;
}

template <typename Kind>
void MakeWith(const Kind& kind, ConfigVisitor& visitor) {
  kind.make(visitor);
}

TEST(JobKindsTest, Layers) {
  ExpectTableFitsSchema(kLayerKinds, SchemaOf("JobLayer"), {"model", "call"},
                        [](const LayerKind& kind, ConfigVisitor& visitor) {
                          kind.make()->VisitConfig(visitor);
                        });
}

TEST(JobKindsTest, Applications) {
  ExpectTableFitsSchema(kApplicationKinds, SchemaOf("JobApplication"), {},
                        MakeWith<ApplicationKind>);
}

TEST(JobKindsTest, Initializers) {
  ExpectTableFitsSchema(kInitializerKinds, SchemaOf("JobInitializer"), {},
                        MakeWith<InitializerKind>);
}

TEST(JobKindsTest, Regularizers) {
  ExpectTableFitsSchema(kRegularizerKinds, SchemaOf("JobRegularizer"), {},
                        MakeWith<RegularizerKind>);
}

TEST(JobKindsTest, Constraints) {
  ExpectTableFitsSchema(kConstraintKinds, SchemaOf("JobConstraint"), {},
                        MakeWith<ConstraintKind>);
}

TEST(JobKindsTest, Losses) {
  ExpectTableFitsSchema(kLossKinds, SchemaOf("JobLoss"), {},
                        MakeWith<LossKind>);
}

TEST(JobKindsTest, Metrics) {
  ExpectTableFitsSchema(kMetricKinds, SchemaOf("JobMetric"), {},
                        MakeWith<MetricKind>);
}

TEST(JobKindsTest, Callbacks) {
  ExpectTableFitsSchema(
      kCallbackKinds, SchemaOf("JobCallback"), {},
      [](const CallbackKind& kind, ConfigVisitor& visitor) {
        // Options without a default are refused here.
        kind.make(visitor, /*output=*/nullptr).status().IgnoreError();
      });
}

}  // namespace
}  // namespace muster
