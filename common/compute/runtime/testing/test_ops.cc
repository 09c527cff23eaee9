#include "common/compute/runtime/testing/test_ops.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/core/base/status_macros.h"
#include "common/core/tensor/attributes.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"

namespace muster {
namespace {

using Types = absl::StatusOr<std::vector<TensorType>>;

Types BroadcastRule(const TypeRuleArguments& arguments) {
  ASSIGN_OR_RETURN(Shape shape, BroadcastShapes(arguments.inputs[0].shape,
                                                arguments.inputs[1].shape));
  return std::vector<TensorType>{{arguments.inputs[0].dtype, shape}};
}

Types SameRule(const TypeRuleArguments& arguments) {
  return std::vector<TensorType>{arguments.inputs[0]};
}

Types LikeRule(const TypeRuleArguments& arguments) {
  return std::vector<TensorType>{arguments.inputs[1]};
}

Types HalvesRule(const TypeRuleArguments& arguments) {
  return std::vector<TensorType>{arguments.inputs[0], arguments.inputs[0]};
}

Types MatMulRule(const TypeRuleArguments& arguments) {
  const Shape& a = arguments.inputs[0].shape;
  const Shape& b = arguments.inputs[1].shape;
  if (a.rank() != 2 || b.rank() != 2) {
    return absl::InvalidArgumentError("operands are matrices");
  }
  if (!Shape({a.dim(1)}).IsCompatibleWith(Shape({b.dim(0)}))) {
    return absl::InvalidArgumentError("inner extents differ");
  }
  return std::vector<TensorType>{
      {arguments.inputs[0].dtype, {a.dim(0), b.dim(1)}}};
}

Types ReshapeRule(const TypeRuleArguments& arguments) {
  ASSIGN_OR_RETURN(auto dims,
                   arguments.attributes.Get<std::vector<int64_t>>("shape"));
  return std::vector<TensorType>{{arguments.inputs[0].dtype, Shape(dims)}};
}

Types SeedRule(const TypeRuleArguments&) {
  return std::vector<TensorType>{{DType::kInt64, {2}}};
}

Types AttributeRule(const TypeRuleArguments& arguments) {
  ASSIGN_OR_RETURN(DType dtype, arguments.attributes.Get<DType>("dtype"));
  ASSIGN_OR_RETURN(Shape shape, arguments.attributes.Get<Shape>("shape"));
  return std::vector<TensorType>{{dtype, shape}};
}

Types GatherRule(const TypeRuleArguments& arguments) {
  ASSIGN_OR_RETURN(Shape shape, arguments.attributes.Get<Shape>("shape"));
  shape.set_dim(0, arguments.inputs[0].shape.dim(0));
  return std::vector<TensorType>{{DType::kFloat32, shape}};
}

Types NoOutputs(const TypeRuleArguments&) { return std::vector<TensorType>(); }

OpRegistry MakeTestOps() {
  OpRegistry ops;
  const auto add = [&](const char* name, int input_count,
                       OpSchema::TypeRule rule,
                       OpEffect effect = OpEffect::kNone) {
    ops.Register({.name = name,
                  .input_count_min = input_count,
                  .input_count_max = input_count,
                  .type_rule = rule,
                  .effect = effect});
  };
  const auto add_view = [&](const char* name, int input_count,
                            OpSchema::TypeRule rule) {
    ops.Register({.name = name,
                  .input_count_min = input_count,
                  .input_count_max = input_count,
                  .type_rule = rule,
                  .is_view = true});
  };
  add("Add", 2, BroadcastRule);
  add("Mul", 2, BroadcastRule);
  add("MatMul", 2, MatMulRule);
  add("Relu", 1, SameRule);
  add("ReluGrad", 2, SameRule);
  add("AddReversed", 2, SameRule);
  add("Fail", 1, SameRule);
  add("Concatenate", 2, BroadcastRule);
  add_view("Identity", 1, SameRule);
  add("Halves", 1, HalvesRule);
  add("AllocatedHalves", 1, HalvesRule);
  add_view("Reshape", 1, ReshapeRule);
  add_view("ReshapeLike", 2, LikeRule);
  ops.Register({.name = "SumLike",
                .input_count_min = 2,
                .input_count_max = 2,
                .type_rule = LikeRule,
                .keeps_unchanged_type = true});
  ops.Register(
      {.name = "StepSeed", .type_rule = SeedRule, .reads = OpReads::kStep});
  add("ReadVariable", 0, AttributeRule, OpEffect::kReadVariable);
  add("GatherVariable", 1, GatherRule, OpEffect::kReadVariable);
  add("AssignVariable", 1, NoOutputs, OpEffect::kUpdateVariable);
  add("AssignAddVariable", 1, NoOutputs, OpEffect::kUpdateVariable);
  add("ScatterAddVariable", 2, NoOutputs, OpEffect::kUpdateVariable);
  add("ApplyGradient", 1, NoOutputs, OpEffect::kUpdateVariable);
  return ops;
}

// A kernel that calls a function with the arguments.
template <typename Body>
class FunctionKernel : public Kernel {
 public:
  FunctionKernel(Body body, int shared_input_count)
      : body_(std::move(body)), shared_input_count_(shared_input_count) {}

  absl::Status Run(const KernelArguments& arguments) override {
    return body_(arguments);
  }
  bool MayShareOutputWithInput(int input) const override {
    return input < shared_input_count_;
  }

 private:
  Body body_;
  const int shared_input_count_;
};

// As Halves, in memory that each run allocates.
class AllocatedHalvesKernel : public Kernel {
 public:
  absl::Status Run(const KernelArguments& arguments) override {
    for (Tensor* const output : arguments.outputs) {
      *output = Tensor();
      Tensor halves(DType::kFloat32, arguments.inputs[0]->shape());
      const auto in = arguments.inputs[0]->flat<float>();
      for (size_t i = 0; i < in.size(); ++i) {
        halves.mutable_flat<float>()[i] = in[i] / 2;
      }
      *output = std::move(halves);
    }
    return absl::OkStatus();
  }
  bool AllocatesOutputs() const override { return true; }
};

template <typename Body>
void Register(KernelRegistry* kernels, absl::string_view op,
              int shared_input_count, Body body) {
  kernels->Register(
      op,
      [=](const KernelSpec&, int) -> absl::StatusOr<std::unique_ptr<Kernel>> {
        return std::make_unique<FunctionKernel<Body>>(body, shared_input_count);
      });
}

// Operands repeat cyclically to the size of the output.
template <typename Function>
void RegisterBinary(KernelRegistry* kernels, absl::string_view op,
                    Function function) {
  Register(kernels, op, 2, [=](const KernelArguments& arguments) {
    const auto a = arguments.inputs[0]->flat<float>();
    const auto b = arguments.inputs[1]->flat<float>();
    const auto out = arguments.outputs[0]->mutable_flat<float>();
    for (size_t i = 0; i < out.size(); ++i) {
      out[i] = function(a[i % a.size()], b[i % b.size()]);
    }
    return absl::OkStatus();
  });
}

void MultiplyMatrices(const Tensor& a, const Tensor& b, Tensor* out) {
  const int64_t rows = a.shape().dim(0);
  const int64_t inner = a.shape().dim(1);
  const int64_t columns = b.shape().dim(1);
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < columns; ++j) {
      float sum = 0;
      for (int64_t k = 0; k < inner; ++k) {
        sum +=
            a.flat<float>()[i * inner + k] * b.flat<float>()[k * columns + j];
      }
      out->mutable_flat<float>()[i * columns + j] = sum;
    }
  }
}

absl::Status FusedMatMul(const KernelArguments& arguments) {
  MultiplyMatrices(*arguments.inputs[0], *arguments.inputs[1],
                   arguments.outputs[0]);
  const auto bias = arguments.inputs[2]->flat<float>();
  const auto out = arguments.outputs[0]->mutable_flat<float>();
  for (size_t i = 0; i < out.size(); ++i) {
    out[i] = std::max(out[i] + bias[i % bias.size()], 0.0f);
  }
  return absl::OkStatus();
}

void RegisterOthers(KernelRegistry* kernels) {
  Register(kernels, "MatMul", 0, [](const KernelArguments& arguments) {
    MultiplyMatrices(*arguments.inputs[0], *arguments.inputs[1],
                     arguments.outputs[0]);
    return absl::OkStatus();
  });
  // Reads only its first input in order.
  Register(kernels, "AddReversed", 1, [](const KernelArguments& arguments) {
    const auto a = arguments.inputs[0]->flat<float>();
    const auto b = arguments.inputs[1]->flat<float>();
    const auto out = arguments.outputs[0]->mutable_flat<float>();
    for (size_t i = 0; i < out.size(); ++i) {
      out[i] = a[i] + b[b.size() - 1 - i];
    }
    return absl::OkStatus();
  });
  Register(kernels, "Halves", 0, [](const KernelArguments& arguments) {
    const auto in = arguments.inputs[0]->flat<float>();
    for (Tensor* const output : arguments.outputs) {
      for (size_t i = 0; i < in.size(); ++i) {
        output->mutable_flat<float>()[i] = in[i] / 2;
      }
    }
    return absl::OkStatus();
  });
  kernels->Register(
      "AllocatedHalves",
      [](const KernelSpec&, int) -> absl::StatusOr<std::unique_ptr<Kernel>> {
        return std::make_unique<AllocatedHalvesKernel>();
      });
  Register(kernels, "Concatenate", 0, [](const KernelArguments& arguments) {
    const auto a = arguments.inputs[0]->flat<std::string>();
    const auto b = arguments.inputs[1]->flat<std::string>();
    for (size_t i = 0; i < a.size(); ++i) {
      arguments.outputs[0]->mutable_flat<std::string>()[i] = a[i] + b[i];
    }
    return absl::OkStatus();
  });
  Register(kernels, "StepSeed", 0, [](const KernelArguments& arguments) {
    const auto out = arguments.outputs[0]->mutable_flat<int64_t>();
    out[0] = static_cast<int64_t>(arguments.step_seed);
    out[1] = 0;
    return absl::OkStatus();
  });
  Register(kernels, "Fail", 1, [](const KernelArguments&) -> absl::Status {
    return absl::InvalidArgumentError("element 0 is out of range");
  });
}

}  // namespace

const OpRegistry& TestOps() {
  static const OpRegistry* const kOps = new OpRegistry(MakeTestOps());
  return *kOps;
}

KernelRegistry MakeTestKernels(bool with_fusion) {
  KernelRegistry kernels;
  RegisterBinary(&kernels, "Add", [](float a, float b) { return a + b; });
  RegisterBinary(&kernels, "Mul", [](float a, float b) { return a * b; });
  Register(&kernels, "Relu", 1, [](const KernelArguments& arguments) {
    const auto in = arguments.inputs[0]->flat<float>();
    const auto out = arguments.outputs[0]->mutable_flat<float>();
    for (size_t i = 0; i < in.size(); ++i) out[i] = std::max(in[i], 0.0f);
    return absl::OkStatus();
  });
  RegisterOthers(&kernels);
  if (with_fusion) Register(&kernels, "FusedMatMulBias", 0, FusedMatMul);
  return kernels;
}

Value ReadVariableForTest(GraphBuilder& builder, absl::string_view variable,
                          const Shape& shape) {
  return builder.Op("ReadVariable", {},
                    {{"variable", std::string(variable)},
                     {"dtype", DType::kFloat32},
                     {"shape", shape}});
}

void UpdateVariableForTest(absl::string_view op, absl::string_view variable,
                           absl::Span<const Value> inputs) {
  inputs[0].builder()->OpWithOutputs(op, inputs,
                                     {{"variable", std::string(variable)}});
}

class FakeVariableStore::Session : public VariableSession {
 public:
  Session(FakeVariableStore* store, absl::Span<const VariableUse> uses)
      : store_(store), uses_(uses.begin(), uses.end()) {}

  absl::Status BeginPart(uint64_t step_id, int part) override {
    store_->events_.push_back(
        part == 0 ? absl::StrCat("begin ", step_id)
                  : absl::StrCat("begin ", step_id, " part ", part));
    return absl::OkStatus();
  }
  absl::StatusOr<Tensor> Read(int variable) override {
    store_->events_.push_back("read " + uses_[variable].name);
    return store_->values_.at(uses_[variable].name);
  }
  absl::Status Gather(int variable, const Tensor& indices,
                      Tensor* rows) override {
    store_->events_.push_back("gather " + uses_[variable].name);
    const Tensor& value = store_->values_.at(uses_[variable].name);
    const int64_t width = value.element_count() / value.shape().dim(0);
    *rows = Tensor(DType::kFloat32, {indices.element_count(), width});
    for (int64_t i = 0; i < indices.element_count(); ++i) {
      const int64_t row = indices.flat<int64_t>()[i];
      std::copy_n(value.flat<float>().data() + row * width, width,
                  rows->mutable_flat<float>().data() + i * width);
    }
    return absl::OkStatus();
  }
  absl::Status Update(int variable, UpdateKind kind, const Tensor& value,
                      const Tensor& indices) override {
    RETURN_IF_ERROR(std::exchange(store_->next_update_, absl::OkStatus()));
    Tensor& held = store_->values_.at(uses_[variable].name);
    store_->events_.push_back(absl::StrCat(
        indices.IsValid() ? "scatter " : "update ", uses_[variable].name));
    store_->last_update_was_in_place_ = held.IsSoleOwner();
    Tensor updated = held.Clone();
    for (int64_t i = 0; i < value.element_count(); ++i) {
      float& element = updated.mutable_flat<float>()[i];
      element =
          (kind == UpdateKind::kAssign ? 0 : element) + value.flat<float>()[i];
    }
    held = updated;
    values_.push_back(value);
    copies_.push_back(value.Clone());
    return absl::OkStatus();
  }
  absl::Status SetLossDenominator(double weight) override {
    store_->events_.push_back(absl::StrCat("weight ", weight));
    return absl::OkStatus();
  }
  bool needs_loss_denominator() const override { return true; }
  // Gather() and Update() return data errors at once.
  absl::Status DataError(int) override { return absl::OkStatus(); }
  GradientAccumulator* accumulator() override { return nullptr; }
  // No gate: the store is on the host.
  GatedSteps* UseGate(StepGate*) override { return nullptr; }
  absl::Status Commit() override {
    store_->events_.push_back("commit");
    for (size_t i = 0; i < values_.size(); ++i) {
      if (BitwiseEqual(values_[i], copies_[i])) continue;
      return absl::InternalError("the value of an update changed");
    }
    values_.clear();
    copies_.clear();
    return absl::OkStatus();
  }

 private:
  FakeVariableStore* const store_;
  const std::vector<VariableUse> uses_;
  // The values of updates, and copies of them from the time of the update.
  std::vector<Tensor> values_;
  std::vector<Tensor> copies_;
};

absl::StatusOr<std::unique_ptr<VariableSession>> FakeVariableStore::OpenSession(
    absl::Span<const VariableUse> uses) {
  for (const VariableUse& use : uses) {
    if (!values_.contains(use.name)) return absl::NotFoundError(use.name);
  }
  return std::make_unique<Session>(this, uses);
}

}  // namespace muster
