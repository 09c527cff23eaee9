#ifndef COMMON_COMPUTE_STABLEHLO_TRANSLATIONS_H_
#define COMMON_COMPUTE_STABLEHLO_TRANSLATIONS_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/compute/stablehlo/graph_translator.h"
#include "common/compute/stablehlo/hlo_builder.h"

namespace muster {

// How StableHLO computes an op, in one of these ways:
//
//   one            returns the only output
//   general        returns all outputs
//   is_variable    an HloVariables translates the op
//   refusal        why there is no translation, and what to do about it
struct HloTranslation {
  absl::string_view op;
  HloValue (*one)(const HloNode& node) = nullptr;
  absl::StatusOr<HloValues> (*general)(const HloNode& node) = nullptr;
  bool is_variable = false;
  absl::string_view refusal = {};
};

// The translations of all ops of BuiltinOps() but Parameter and Constant,
// sorted by name.
absl::Span<const HloTranslation> HloTranslations();

// Returns null if there is no such op.
const HloTranslation* FindHloTranslation(absl::string_view op);

// ---- The functions of the table, by the file that defines them.

// elementwise.cc
HloValue UnaryToHlo(const HloNode& node);
HloValue BinaryToHlo(const HloNode& node);
HloValue ComparisonToHlo(const HloNode& node);
HloValue CastToHlo(const HloNode& node);
HloValue ForwardToHlo(const HloNode& node);
HloValue FloorDivToHlo(const HloNode& node);
HloValue IsFiniteToHlo(const HloNode& node);
HloValue IsNanToHlo(const HloNode& node);
HloValue ModToHlo(const HloNode& node);
HloValue ReciprocalToHlo(const HloNode& node);
HloValue SelectToHlo(const HloNode& node);
HloValue SignToHlo(const HloNode& node);
HloValue SquareToHlo(const HloNode& node);
HloValue SquaredDifferenceToHlo(const HloNode& node);

// activations.cc
HloValue EluToHlo(const HloNode& node);
HloValue EluGradToHlo(const HloNode& node);
HloValue GeluToHlo(const HloNode& node);
HloValue GeluGradToHlo(const HloNode& node);
HloValue LeakyReluToHlo(const HloNode& node);
HloValue LeakyReluGradToHlo(const HloNode& node);
HloValue ReluToHlo(const HloNode& node);
HloValue ReluGradToHlo(const HloNode& node);
HloValue SigmoidToHlo(const HloNode& node);
HloValue SigmoidGradToHlo(const HloNode& node);
HloValue SoftmaxToHlo(const HloNode& node);
HloValue SoftmaxGradToHlo(const HloNode& node);
HloValue SoftplusToHlo(const HloNode& node);
HloValue SoftsignToHlo(const HloNode& node);
HloValue TanhGradToHlo(const HloNode& node);

// losses.cc
HloValue SigmoidCrossEntropyToHlo(const HloNode& node);
HloValue SoftmaxCrossEntropyToHlo(const HloNode& node);
HloValue SoftmaxCrossEntropyGradToHlo(const HloNode& node);

// shapes.cc
HloValue BroadcastToHlo(const HloNode& node);
HloValue ConcatToHlo(const HloNode& node);
HloValue OnesLikeToHlo(const HloNode& node);
HloValue PadToHlo(const HloNode& node);
HloValue ReshapeToHlo(const HloNode& node);
HloValue ReverseToHlo(const HloNode& node);
HloValue SliceToHlo(const HloNode& node);
absl::StatusOr<HloValues> SplitToHlo(const HloNode& node);
HloValue StackToHlo(const HloNode& node);
HloValue TransposeToHlo(const HloNode& node);
HloValue ZerosLikeToHlo(const HloNode& node);

// reductions.cc
HloValue ArgToHlo(const HloNode& node);
HloValue CountAlongToHlo(const HloNode& node);
HloValue CumSumToHlo(const HloNode& node);
HloValue MatMulToHlo(const HloNode& node);
HloValue MeanToHlo(const HloNode& node);
HloValue ReduceToHlo(const HloNode& node);
HloValue SumLikeToHlo(const HloNode& node);

// indices.cc
HloValue AddAlongRowsLikeToHlo(const HloNode& node);
HloValue GatherToHlo(const HloNode& node);
HloValue InTopKToHlo(const HloNode& node);
HloValue OneHotToHlo(const HloNode& node);
HloValue ScatterRowsLikeToHlo(const HloNode& node);
HloValue TakeAlongRowsToHlo(const HloNode& node);
absl::StatusOr<HloValues> TopKToHlo(const HloNode& node);

// images.cc
absl::StatusOr<HloValues> AveragePoolToHlo(const HloNode& node);
absl::StatusOr<HloValues> AveragePoolGradToHlo(const HloNode& node);
absl::StatusOr<HloValues> ConvToHlo(const HloNode& node);
absl::StatusOr<HloValues> MaxPoolToHlo(const HloNode& node);
absl::StatusOr<HloValues> MaxPoolGradToHlo(const HloNode& node);

// normalizations.cc
HloValue BatchNormInferenceToHlo(const HloNode& node);
absl::StatusOr<HloValues> BatchNormTrainingToHlo(const HloNode& node);
absl::StatusOr<HloValues> BatchNormTrainingGradToHlo(const HloNode& node);
absl::StatusOr<HloValues> LayerNormToHlo(const HloNode& node);
absl::StatusOr<HloValues> LayerNormGradToHlo(const HloNode& node);

// random.cc
HloValue FoldInSeedToHlo(const HloNode& node);
HloValue RandomNormalToHlo(const HloNode& node);
HloValue RandomUniformToHlo(const HloNode& node);
HloValue StepSeedToHlo(const HloNode& node);

// replicas.cc
absl::StatusOr<HloValues> AllReduceToHlo(const HloNode& node);
HloValue ReplicaCountToHlo(const HloNode& node);
HloValue ReplicaIdToHlo(const HloNode& node);

}  // namespace muster

#endif  // COMMON_COMPUTE_STABLEHLO_TRANSLATIONS_H_
