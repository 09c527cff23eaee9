#include "common/compute/kernels/cuda/cudnn/fake/fake_attention.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <limits>
#include <string>
#include <type_traits>
#include <utility>

#include "common/compute/kernels/cuda/testing/library_elements.h"
#include "common/core/tensor/dtype.h"

namespace muster {

using cudnn::AttributeName;
using cudnn::DescriptorType;
using cudnn::PointwiseMode;
using cudnn::ReductionOperator;

namespace {

using Axes = std::array<int64_t, 4>;

int64_t CountOf(const Axes& extents) {
  return extents[0] * extents[1] * extents[2] * extents[3];
}

// Calls `visit` with each index, in row order.
template <typename Visit>
void ForEach(const Axes& extents, Visit visit) {
  for (int64_t a = 0; a < extents[0]; ++a) {
    for (int64_t b = 0; b < extents[1]; ++b) {
      for (int64_t c = 0; c < extents[2]; ++c) {
        for (int64_t d = 0; d < extents[3]; ++d) visit(Axes{a, b, c, d});
      }
    }
  }
}

// Returns the position in row order. Axes of extent 1 are broadcast.
int64_t PositionOf(const Axes& extents, const Axes& index) {
  int64_t position = 0;
  for (int axis = 0; axis < 4; ++axis) {
    position =
        position * extents[axis] + (extents[axis] == 1 ? 0 : index[axis]);
  }
  return position;
}

int64_t OffsetOf(const FakeTensor& tensor, const Axes& index) {
  return tensor.Index(index[0], index[1], index[2], index[3]);
}

// True if each extent of `from` equals that of `to` or is 1.
bool IsBroadcast(const Axes& from, const Axes& to) {
  for (int axis = 0; axis < 4; ++axis) {
    if (from[axis] != to[axis] && from[axis] != 1) return false;
  }
  return true;
}

bool IsOf16Bits(const FakeTensor& tensor) {
  return tensor.type == cudnn::CudnnDataType::kBfloat16 ||
         tensor.type == cudnn::CudnnDataType::kFloat16;
}

// The sequences of operations that engines support, with one letter for each
// operation: 'm' is a product and 'r' a reshape; 's' and '^' are the sum and
// the maximum of rows; the elementwise operations are '*', '/', '-', '+', 'e'
// for exp, 'l' for log, 'i' for an index, '>', and '?' for a selection.
constexpr const char* kKnown[] = {
    "m*^-esl+/m",             // Attention.
    "m*+^-esl+/m",            // With a bias.
    "m*ii>?^-esl+/m",         // With a causal mask.
    "*s*m*-ermm-**rmrm",      // The gradients.
    "*s*m*+-ermm-**rmrm",     //
    "*s*m*ii>?-ermm-**rmrm",  //
};

char FunctionOf(DescriptorType type, int mode) {
  switch (type) {
    case DescriptorType::kMatMulOperation:
      return 'm';
    case DescriptorType::kReshapeOperation:
      return 'r';
    case DescriptorType::kReductionOperation:
      switch (static_cast<ReductionOperator>(mode)) {
        case ReductionOperator::kAdd:
          return 's';
        case ReductionOperator::kMax:
          return '^';
      }
      break;
    default:
      switch (static_cast<PointwiseMode>(mode)) {
        case PointwiseMode::kAdd:
          return '+';
        case PointwiseMode::kMul:
          return '*';
        case PointwiseMode::kDiv:
          return '/';
        case PointwiseMode::kSub:
          return '-';
        case PointwiseMode::kExp:
          return 'e';
        case PointwiseMode::kLog:
          return 'l';
        case PointwiseMode::kIndex:
          return 'i';
        case PointwiseMode::kGreaterEqual:
          return '>';
        case PointwiseMode::kSelect:
          return '?';
      }
  }
  return '?';
}

// Returns the type of a function's result; for floating numbers it is float32.
cudnn::CudnnDataType ComputeTypeOf(char function) {
  switch (function) {
    case 'i':
      return cudnn::CudnnDataType::kInt32;
    case '>':
      return cudnn::CudnnDataType::kBool;
    default:
      return cudnn::CudnnDataType::kFloat32;
  }
}

struct PointwiseElements {
  double x, b, t;
  int64_t index;
};

double Apply(PointwiseMode mode, const PointwiseElements& of) {
  const auto [x, b, t, index] = of;
  switch (mode) {
    case PointwiseMode::kAdd:
      return x + b;
    case PointwiseMode::kMul:
      return x * b;
    case PointwiseMode::kDiv:
      return x / b;
    case PointwiseMode::kSub:
      return x - b;
    case PointwiseMode::kExp:
      return std::exp(x);
    case PointwiseMode::kLog:
      return std::log(x);
    case PointwiseMode::kIndex:
      return static_cast<double>(index);
    case PointwiseMode::kGreaterEqual:
      return x >= b ? 1 : 0;
    case PointwiseMode::kSelect:
      return t != 0 ? x : b;
  }
  return std::numeric_limits<double>::quiet_NaN();
}

bool IsSet(const FakeDescriptor& descriptor, AttributeName attribute) {
  return descriptor.Has(attribute) && descriptor.Get<uint8_t>(attribute) != 0;
}

// The attributes of an operation and of its function.
struct OperationNames {
  AttributeName a, y;
  std::optional<AttributeName> b = {};
  std::optional<AttributeName> t = {};
  std::optional<AttributeName> function = {};
  DescriptorType function_type = DescriptorType::kMatMul;
  AttributeName compute_type = AttributeName::kMatMulComputeType;
  std::optional<AttributeName> mode = {};
};

std::optional<OperationNames> OperationNamesOf(DescriptorType type) {
  switch (type) {
    case DescriptorType::kMatMulOperation:
      return OperationNames{.a = AttributeName::kMatMulOperationA,
                            .y = AttributeName::kMatMulOperationC,
                            .b = AttributeName::kMatMulOperationB,
                            .function = AttributeName::kMatMulOperationMatMul,
                            .function_type = DescriptorType::kMatMul,
                            .compute_type = AttributeName::kMatMulComputeType};
    case DescriptorType::kPointwiseOperation:
      return OperationNames{
          .a = AttributeName::kPointwiseOperationX,
          .y = AttributeName::kPointwiseOperationY,
          .b = AttributeName::kPointwiseOperationB,
          .t = AttributeName::kPointwiseOperationT,
          .function = AttributeName::kPointwiseOperationPointwise,
          .function_type = DescriptorType::kPointwise,
          .compute_type = AttributeName::kPointwiseComputeType,
          .mode = AttributeName::kPointwiseMode};
    case DescriptorType::kReductionOperation:
      return OperationNames{
          .a = AttributeName::kReductionOperationX,
          .y = AttributeName::kReductionOperationY,
          .function = AttributeName::kReductionOperationReduction,
          .function_type = DescriptorType::kReduction,
          .compute_type = AttributeName::kReductionComputeType,
          .mode = AttributeName::kReductionOperator};
    case DescriptorType::kReshapeOperation:
      return OperationNames{.a = AttributeName::kReshapeOperationX,
                            .y = AttributeName::kReshapeOperationY};
    default:
      return std::nullopt;
  }
}

// Rounds elements to a type of floating numbers.
void RoundTo(DType dtype, std::vector<double>* elements) {
  VisitNumber(dtype, [&]<typename T>() {
    if constexpr (!std::is_integral_v<T>) {
      for (double& element : *elements) {
        T rounded;
        StoreDouble<T>(element, &rounded, 0);
        element = LoadDouble<T>(&rounded, 0);
      }
    }
  });
}

}  // namespace

std::optional<FakeAttention> FakeAttention::Of(
    const std::vector<FakeDescriptor*>& operations) {
  FakeAttention made;
  for (const FakeDescriptor* operation : operations) {
    if (!operation->IsComplete() || !made.AddStep(*operation)) {
      return std::nullopt;
    }
  }
  if (!made.IsKnown()) return std::nullopt;
  return made;
}

bool FakeAttention::IsKnown() const {
  std::string functions;
  for (const Step& step : steps_) {
    functions += FunctionOf(step.type, step.mode);
  }
  return std::find(std::begin(kKnown), std::end(kKnown), functions) !=
         std::end(kKnown);
}

std::optional<int64_t> FakeAttention::AddOperand(
    const FakeDescriptor& descriptor) {
  const std::optional<FakeTensor> tensor = FakeTensor::Of(descriptor);
  if (!tensor.has_value()) return std::nullopt;
  Operand operand = {
      .tensor = *tensor,
      .is_virtual = IsSet(descriptor, AttributeName::kTensorIsVirtual),
      .is_by_value = IsSet(descriptor, AttributeName::kTensorIsByValue)};
  const bool is_scalar = CountOf(tensor->extents) == 1 &&
                         tensor->type == cudnn::CudnnDataType::kFloat32;
  if (operand.is_by_value && (operand.is_virtual || !is_scalar)) {
    return std::nullopt;
  }
  operands_.try_emplace(tensor->id, operand);
  return tensor->id;
}

bool FakeAttention::AddStep(const FakeDescriptor& operation) {
  const std::optional<OperationNames> names =
      OperationNamesOf(operation.type());
  if (!names.has_value()) return false;
  Step step = {.type = operation.type()};
  if (names->function.has_value()) {
    const FakeDescriptor& function = *operation.Descriptor(*names->function);
    if (function.type() != names->function_type) return false;
    if (names->mode.has_value()) step.mode = function.Get<int>(*names->mode);
    const bool is_index = FunctionOf(step.type, step.mode) == 'i';
    if (function.Get<cudnn::CudnnDataType>(names->compute_type) !=
            ComputeTypeOf(FunctionOf(step.type, step.mode)) ||
        function.Has(AttributeName::kPointwiseAxis) != is_index) {
      return false;
    }
    if (is_index) {
      step.axis = function.Get<int64_t>(AttributeName::kPointwiseAxis);
    }
  }
  const bool has_b = names->b.has_value() && operation.Has(*names->b);
  const bool has_t = names->t.has_value() && operation.Has(*names->t);
  const char function = FunctionOf(step.type, step.mode);
  if (step.type == DescriptorType::kPointwiseOperation &&
      (has_b == (function == 'e' || function == 'l' || function == 'i') ||
       has_t != (function == '?'))) {
    return false;
  }
  const auto add = [&](AttributeName attribute, int64_t* id) {
    const auto added = AddOperand(*operation.Descriptor(attribute));
    if (added.has_value()) *id = *added;
    return added.has_value();
  };
  if (!add(names->a, &step.a) || (has_b && !add(*names->b, &step.b)) ||
      (has_t && !add(*names->t, &step.t)) || !add(names->y, &step.y) ||
      !DoesStepFit(step)) {
    return false;
  }
  operands_.at(step.y).is_written = true;
  steps_.push_back(step);
  return true;
}

bool FakeAttention::DoesStepFit(const Step& step) const {
  const Operand& y = operands_.at(step.y);
  if (y.is_written || y.is_by_value) return false;
  for (const int64_t id :
       {step.a, step.b < 0 ? step.a : step.b, step.t < 0 ? step.a : step.t}) {
    const Operand& input = operands_.at(id);
    if (input.is_virtual && !input.is_written) return false;
  }
  const Axes& to = y.tensor.extents;
  const FakeTensor& a = operands_.at(step.a).tensor;
  const FakeTensor& b = operands_.at(step.b < 0 ? step.a : step.b).tensor;
  switch (step.type) {
    case DescriptorType::kMatMulOperation:
      // Engines convert at most one operand: the gradient of the scores.
      return a.extents[0] == to[0] && a.extents[1] == to[1] &&
             b.extents[0] == to[0] && b.extents[1] == to[1] &&
             a.extents[2] == to[2] && a.extents[3] == b.extents[2] &&
             b.extents[3] == to[3] && IsOf16Bits(b) &&
             (a.type == b.type || operands_.at(step.a).is_virtual);
    case DescriptorType::kPointwiseOperation:
      // A bias in memory is broadcast along batch and heads only.
      return a.extents == to && IsBroadcast(b.extents, to) &&
             (step.t < 0 || operands_.at(step.t).tensor.extents == to) &&
             step.axis >= 0 && step.axis < 4 &&
             (FunctionOf(step.type, step.mode) != '+' ||
              operands_.at(step.b).is_virtual || b.extents[2] == to[2]);
    case DescriptorType::kReductionOperation:
      return IsBroadcast(to, a.extents) && to[3] == 1;
    default:
      return CountOf(a.extents) == CountOf(to);
  }
}

FakeAttention::Elements FakeAttention::Load(int64_t id) const {
  const Operand& operand = operands_.at(id);
  if (operand.is_by_value) return {operand.value};
  if (operand.is_virtual) return virtual_elements_.at(id);
  Elements elements;
  VisitNumber(operand.tensor.dtype(), [&]<typename T>() {
    if constexpr (!std::is_integral_v<T>) {
      ForEach(operand.tensor.extents, [&](const Axes& index) {
        elements.push_back(LoadDouble<T>(operand.tensor.data,
                                         OffsetOf(operand.tensor, index)));
      });
    }
  });
  return elements;
}

void FakeAttention::Store(int64_t id, const Elements& elements) {
  const Operand& operand = operands_.at(id);
  if (operand.is_virtual) {
    Elements& kept = virtual_elements_[id] = elements;
    RoundTo(operand.tensor.dtype(), &kept);
    return;
  }
  VisitNumber(operand.tensor.dtype(), [&]<typename T>() {
    if constexpr (!std::is_integral_v<T>) {
      size_t i = 0;
      ForEach(operand.tensor.extents, [&](const Axes& index) {
        StoreDouble<T>(elements[i++], operand.tensor.data,
                       OffsetOf(operand.tensor, index));
      });
    }
  });
}

FakeAttention::Elements FakeAttention::MatMul(const Step& step) const {
  const Axes& a_extents = operands_.at(step.a).tensor.extents;
  const Axes& b_extents = operands_.at(step.b).tensor.extents;
  Elements a = Load(step.a);
  const Elements b = Load(step.b);
  RoundTo(operands_.at(step.b).tensor.dtype(), &a);
  Elements y;
  ForEach(operands_.at(step.y).tensor.extents, [&](const Axes& index) {
    double sum = 0;
    for (int64_t i = 0; i < a_extents[3]; ++i) {
      sum += a[PositionOf(a_extents, {index[0], index[1], index[2], i})] *
             b[PositionOf(b_extents, {index[0], index[1], i, index[3]})];
    }
    y.push_back(sum);
  });
  return y;
}

FakeAttention::Elements FakeAttention::Pointwise(const Step& step) const {
  const Elements a = Load(step.a);
  const bool has_b = step.b >= 0;
  const Elements b = has_b ? Load(step.b) : Elements{0};
  const Axes b_extents =
      has_b ? operands_.at(step.b).tensor.extents : Axes{1, 1, 1, 1};
  const Elements t = step.t >= 0 ? Load(step.t) : Elements(a.size());
  Elements y;
  ForEach(operands_.at(step.y).tensor.extents, [&](const Axes& index) {
    const size_t i = y.size();
    y.push_back(Apply(static_cast<PointwiseMode>(step.mode),
                      {.x = a[i],
                       .b = b[PositionOf(b_extents, index)],
                       .t = t[i],
                       .index = index[step.axis]}));
  });
  return y;
}

FakeAttention::Elements FakeAttention::Reduce(const Step& step) const {
  const bool is_sum =
      static_cast<ReductionOperator>(step.mode) == ReductionOperator::kAdd;
  const Axes& to = operands_.at(step.y).tensor.extents;
  const Elements a = Load(step.a);
  Elements y(CountOf(to),
             is_sum ? 0 : -std::numeric_limits<double>::infinity());
  size_t i = 0;
  ForEach(operands_.at(step.a).tensor.extents, [&](const Axes& index) {
    double& reduced = y[PositionOf(to, index)];
    reduced = is_sum ? reduced + a[i] : std::max(reduced, a[i]);
    ++i;
  });
  return y;
}

// Elements are stored by the strides of x and read by the strides of y.
FakeAttention::Elements FakeAttention::Reshape(const Step& step) const {
  const FakeTensor& from = operands_.at(step.a).tensor;
  const FakeTensor& to = operands_.at(step.y).tensor;
  const Elements a = Load(step.a);
  std::map<int64_t, double> memory;
  size_t i = 0;
  ForEach(from.extents,
          [&](const Axes& index) { memory[OffsetOf(from, index)] = a[i++]; });
  Elements y;
  ForEach(to.extents, [&](const Axes& index) {
    const auto found = memory.find(OffsetOf(to, index));
    y.push_back(found == memory.end() ? std::numeric_limits<double>::quiet_NaN()
                                      : found->second);
  });
  return y;
}

FakeAttention::Elements FakeAttention::Run(const Step& step) const {
  switch (step.type) {
    case DescriptorType::kMatMulOperation:
      return MatMul(step);
    case DescriptorType::kPointwiseOperation:
      return Pointwise(step);
    case DescriptorType::kReductionOperation:
      return Reduce(step);
    default:
      return Reshape(step);
  }
}

void FakeAttention::Compute() {
  for (const Step& step : steps_) Store(step.y, Run(step));
}

}  // namespace muster
