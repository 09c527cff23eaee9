#include "common/compute/kernels/cuda/cudnn/fake/fake_descriptor.h"

#include <algorithm>

namespace muster {

using cudnn::AttributeName;
using cudnn::AttributeType;
using cudnn::DescriptorType;

namespace {

// Any number of values.
constexpr int64_t kAny = -1;

// An attribute of all descriptors of a type. Factors are float or double.
struct Rule {
  DescriptorType descriptor;
  AttributeName attribute;
  AttributeType type;
  int64_t count;
  bool is_optional = false;
};

constexpr auto kConvolution = DescriptorType::kConvolution;
constexpr auto kForward = DescriptorType::kConvolutionForward;
constexpr auto kData = DescriptorType::kConvolutionBackwardData;
constexpr auto kFilter = DescriptorType::kConvolutionBackwardFilter;
constexpr auto kPointwise = DescriptorType::kPointwiseOperation;
constexpr auto kMatMul = DescriptorType::kMatMulOperation;
constexpr auto kReduction = DescriptorType::kReductionOperation;
constexpr auto kReshape = DescriptorType::kReshapeOperation;
constexpr auto kGraph = DescriptorType::kOperationGraph;
constexpr auto kHeuristic = DescriptorType::kEngineHeuristic;
constexpr auto kPlan = DescriptorType::kExecutionPlan;
constexpr auto kPack = DescriptorType::kVariantPack;
constexpr auto kTensor = DescriptorType::kTensor;

constexpr Rule kRules[] = {
    {kTensor, AttributeName::kTensorDataType, AttributeType::kDataType, 1},
    {kTensor, AttributeName::kTensorDimensions, AttributeType::kInt64, 4},
    {kTensor, AttributeName::kTensorStrides, AttributeType::kInt64, 4},
    {kTensor, AttributeName::kTensorUniqueId, AttributeType::kInt64, 1},
    {kTensor, AttributeName::kTensorByteAlignment, AttributeType::kInt64, 1},
    {kTensor, AttributeName::kTensorIsVirtual, AttributeType::kBoolean, 1,
     /*is_optional=*/true},
    {kTensor, AttributeName::kTensorIsByValue, AttributeType::kBoolean, 1,
     /*is_optional=*/true},

    {kConvolution, AttributeName::kConvolutionComputeType,
     AttributeType::kDataType, 1},
    {kConvolution, AttributeName::kConvolutionMode,
     AttributeType::kConvolutionMode, 1},
    {kConvolution, AttributeName::kConvolutionSpatialDimensions,
     AttributeType::kInt64, 1},
    {kConvolution, AttributeName::kConvolutionPrePaddings,
     AttributeType::kInt64, 2},
    {kConvolution, AttributeName::kConvolutionPostPaddings,
     AttributeType::kInt64, 2},
    {kConvolution, AttributeName::kConvolutionStrides, AttributeType::kInt64,
     2},
    {kConvolution, AttributeName::kConvolutionDilations, AttributeType::kInt64,
     2},

    {kForward, AttributeName::kForwardAlpha, AttributeType::kFloat, 1},
    {kForward, AttributeName::kForwardBeta, AttributeType::kFloat, 1},
    {kForward, AttributeName::kForwardConvolution, AttributeType::kDescriptor,
     1},
    {kForward, AttributeName::kForwardX, AttributeType::kDescriptor, 1},
    {kForward, AttributeName::kForwardW, AttributeType::kDescriptor, 1},
    {kForward, AttributeName::kForwardY, AttributeType::kDescriptor, 1},

    {kData, AttributeName::kBackwardDataAlpha, AttributeType::kFloat, 1},
    {kData, AttributeName::kBackwardDataBeta, AttributeType::kFloat, 1},
    {kData, AttributeName::kBackwardDataConvolution, AttributeType::kDescriptor,
     1},
    {kData, AttributeName::kBackwardDataDx, AttributeType::kDescriptor, 1},
    {kData, AttributeName::kBackwardDataW, AttributeType::kDescriptor, 1},
    {kData, AttributeName::kBackwardDataDy, AttributeType::kDescriptor, 1},

    {kFilter, AttributeName::kBackwardFilterAlpha, AttributeType::kFloat, 1},
    {kFilter, AttributeName::kBackwardFilterBeta, AttributeType::kFloat, 1},
    {kFilter, AttributeName::kBackwardFilterConvolution,
     AttributeType::kDescriptor, 1},
    {kFilter, AttributeName::kBackwardFilterX, AttributeType::kDescriptor, 1},
    {kFilter, AttributeName::kBackwardFilterDw, AttributeType::kDescriptor, 1},
    {kFilter, AttributeName::kBackwardFilterDy, AttributeType::kDescriptor, 1},

    {DescriptorType::kPointwise, AttributeName::kPointwiseMode,
     AttributeType::kPointwiseMode, 1},
    {DescriptorType::kPointwise, AttributeName::kPointwiseComputeType,
     AttributeType::kDataType, 1},
    {DescriptorType::kPointwise, AttributeName::kPointwiseAxis,
     AttributeType::kInt64, 1, /*is_optional=*/true},
    {kPointwise, AttributeName::kPointwiseOperationPointwise,
     AttributeType::kDescriptor, 1},
    {kPointwise, AttributeName::kPointwiseOperationX,
     AttributeType::kDescriptor, 1},
    {kPointwise, AttributeName::kPointwiseOperationB,
     AttributeType::kDescriptor, 1, /*is_optional=*/true},
    {kPointwise, AttributeName::kPointwiseOperationY,
     AttributeType::kDescriptor, 1},
    {kPointwise, AttributeName::kPointwiseOperationT,
     AttributeType::kDescriptor, 1, /*is_optional=*/true},

    {DescriptorType::kMatMul, AttributeName::kMatMulComputeType,
     AttributeType::kDataType, 1},
    {kMatMul, AttributeName::kMatMulOperationMatMul, AttributeType::kDescriptor,
     1},
    {kMatMul, AttributeName::kMatMulOperationA, AttributeType::kDescriptor, 1},
    {kMatMul, AttributeName::kMatMulOperationB, AttributeType::kDescriptor, 1},
    {kMatMul, AttributeName::kMatMulOperationC, AttributeType::kDescriptor, 1},

    {DescriptorType::kReduction, AttributeName::kReductionOperator,
     AttributeType::kReductionOperator, 1},
    {DescriptorType::kReduction, AttributeName::kReductionComputeType,
     AttributeType::kDataType, 1},
    {kReduction, AttributeName::kReductionOperationReduction,
     AttributeType::kDescriptor, 1},
    {kReduction, AttributeName::kReductionOperationX,
     AttributeType::kDescriptor, 1},
    {kReduction, AttributeName::kReductionOperationY,
     AttributeType::kDescriptor, 1},

    {kReshape, AttributeName::kReshapeOperationX, AttributeType::kDescriptor,
     1},
    {kReshape, AttributeName::kReshapeOperationY, AttributeType::kDescriptor,
     1},

    {kGraph, AttributeName::kGraphHandle, AttributeType::kHandle, 1},
    {kGraph, AttributeName::kGraphOperations, AttributeType::kDescriptor, kAny},

    {kHeuristic, AttributeName::kHeuristicMode, AttributeType::kHeuristicMode,
     1},
    {kHeuristic, AttributeName::kHeuristicOperationGraph,
     AttributeType::kDescriptor, 1},

    {kPlan, AttributeName::kPlanHandle, AttributeType::kHandle, 1},
    {kPlan, AttributeName::kPlanEngineConfig, AttributeType::kDescriptor, 1},

    {kPack, AttributeName::kPackUniqueIds, AttributeType::kInt64, kAny},
    {kPack, AttributeName::kPackDataPointers, AttributeType::kVoidPointer,
     kAny},
    {kPack, AttributeName::kPackWorkspace, AttributeType::kVoidPointer, 1},
};

size_t SizeOfValue(AttributeType type) {
  switch (type) {
    case AttributeType::kHandle:
    case AttributeType::kVoidPointer:
    case AttributeType::kDescriptor:
    case AttributeType::kInt64:
    case AttributeType::kDouble:
      return 8;
    case AttributeType::kBoolean:
    case AttributeType::kChar:
      return 1;
    default:
      return 4;
  }
}

bool IsTaken(const Rule& rule, AttributeType type) {
  return type == rule.type ||
         (rule.type == AttributeType::kFloat && type == AttributeType::kDouble);
}

}  // namespace

cudnn::Result FakeDescriptor::Set(AttributeName attribute,
                                  AttributeType value_type, int64_t count,
                                  const void* values) {
  const Rule* const rule =
      std::find_if(std::begin(kRules), std::end(kRules), [&](const Rule& one) {
        return one.descriptor == type_ && one.attribute == attribute;
      });
  if (is_finalized_ || rule == std::end(kRules) ||
      !IsTaken(*rule, value_type) || count < 1 ||
      (count != rule->count && rule->count != kAny) || values == nullptr) {
    return cudnn::kBadParam;
  }
  const auto* const begin = static_cast<const uint8_t*>(values);
  values_[attribute] = {value_type,
                        {begin, begin + count * SizeOfValue(value_type)}};
  return cudnn::kSuccess;
}

bool FakeDescriptor::IsComplete() const {
  return std::all_of(std::begin(kRules), std::end(kRules),
                     [&](const Rule& rule) {
                       return rule.descriptor != type_ || rule.is_optional ||
                              Has(rule.attribute);
                     });
}

std::vector<FakeDescriptor*> FakeDescriptor::References() const {
  std::vector<FakeDescriptor*> references;
  for (const auto& [attribute, value] : values_) {
    if (value.type == AttributeType::kDescriptor) {
      for (FakeDescriptor* one : List<FakeDescriptor*>(attribute)) {
        references.push_back(one);
      }
    }
  }
  return references;
}

}  // namespace muster
