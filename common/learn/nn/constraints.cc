#include "common/learn/nn/constraints.h"

#include "common/compute/variables/constraint.h"
#include "common/learn/nn/config_visitor.h"
#include "proto/variable.pb.h"

namespace muster {

void MaxNormOptions::VisitConfig(ConfigVisitor& visitor) {
  visitor.Visit("max_value", max_value);
  visitor.Visit(Described("axis",
                          "The axes over which a norm is computed; of conv2d "
                          "for example [0, 1, 2]."),
                axis);
}

Constraint MaxNorm(const MaxNormOptions& options) {
  proto::Constraint constraint;
  proto::Constraint::MaxNorm& norm = *constraint.mutable_max_norm();
  norm.set_max_value(options.max_value);
  norm.mutable_axis()->Add(options.axis.begin(), options.axis.end());
  return Constraint(constraint);
}

Constraint NonNeg() {
  proto::Constraint constraint;
  constraint.mutable_non_neg();
  return Constraint(constraint);
}

void UnitNormOptions::VisitConfig(ConfigVisitor& visitor) {
  visitor.Visit(Described("axis",
                          "The axes over which a norm is computed; of conv2d "
                          "for example [0, 1, 2]."),
                axis);
}

Constraint UnitNorm(const UnitNormOptions& options) {
  proto::Constraint constraint;
  constraint.mutable_unit_norm()->mutable_axis()->Add(options.axis.begin(),
                                                      options.axis.end());
  return Constraint(constraint);
}

void MinMaxNormOptions::VisitConfig(ConfigVisitor& visitor) {
  visitor.Visit("min_value", min_value);
  visitor.Visit("max_value", max_value);
  visitor.Visit("rate", rate);
  visitor.Visit(Described("axis",
                          "The axes over which a norm is computed; of conv2d "
                          "for example [0, 1, 2]."),
                axis);
}

Constraint MinMaxNorm(const MinMaxNormOptions& options) {
  proto::Constraint constraint;
  proto::Constraint::MinMaxNorm& norm = *constraint.mutable_min_max_norm();
  norm.set_min_value(options.min_value);
  norm.set_max_value(options.max_value);
  norm.set_rate(options.rate);
  norm.mutable_axis()->Add(options.axis.begin(), options.axis.end());
  return Constraint(constraint);
}

}  // namespace muster
