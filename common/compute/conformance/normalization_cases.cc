#include "common/compute/conformance/normalization_cases.h"

#include <utility>
#include <vector>

#include "common/compute/conformance/case_types.h"
#include "common/compute/ops/testing/op_cases.h"
#include "common/core/tensor/attributes.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"

namespace muster {

void AddNormalizationCases(std::vector<OpCase>* cases) {
  const Attributes epsilon = {{"epsilon", 1e-3}};
  // Devices split the rows of the last shapes into parts of unequal size, and
  // the channels of two shapes into blocks, with and without vectors.
  for (const Shape& shape : {Shape{64, 10},
                             {3, 5, 7, 33},
                             {2, 9, 8, 16},
                             {5000, 3},
                             {1, 4},
                             {0, 8},
                             {1300, 32},
                             {333, 136},
                             {130, 1100},
                             {70, 514}}) {
    const Shape channels = {shape.dim(shape.rank() - 1)};
    for (const auto& [dtype, channel_dtype] :
         std::vector<std::pair<DType, DType>>{
             {kF32, kF32},
             {DType::kFloat64, DType::kFloat64},
             {DType::kBfloat16, kF32},
             {DType::kFloat16, kF32}}) {
      const OpInput x = {dtype, shape, -2, 4};
      const OpInput any = {channel_dtype, channels, -1, 1};
      const OpInput positive = {channel_dtype, channels, 0.5, 2};
      cases->push_back({"BatchNormTraining", epsilon, {x, any, any}});
      cases->push_back(
          {"BatchNormTrainingGrad", epsilon, {x, x, any, any, positive}});
      cases->push_back(
          {"BatchNormInference", epsilon, {x, any, any, any, positive}});
    }
  }
}

// Adds cases that devices handle differently: rows with one vector for each
// lane and with several; rows with and without vectors; several rows to a
// block; rows split into parts of unequal size; and rows that are too long for
// registers, which are processed in tiles.
void AddLayerNormCases(std::vector<OpCase>* cases) {
  struct Shapes {
    Shape x;
    int feature_rank;
  };
  for (const auto& [shape, feature_rank] : {Shapes{{64, 10}, 1},
                                            {{3, 5, 7, 33}, 1},
                                            {{2, 3, 4, 5}, 2},
                                            {{7}, 1},
                                            {{1300, 8}, 1},
                                            {{5000, 3}, 1},
                                            {{333, 136}, 1},
                                            {{9, 1540}, 1},
                                            {{70, 515}, 1},
                                            {{17, 4, 1029}, 2},
                                            {{5, 1027}, 1},
                                            {{0, 8}, 1},
                                            {{3, 0}, 1}}) {
    const int row_rank = shape.rank() - feature_rank;
    const Shape rows(shape.dims().subspan(0, row_rank));
    const Shape features(shape.dims().subspan(row_rank));
    for (const auto& [dtype, wide] : std::vector<std::pair<DType, DType>>{
             {kF32, kF32},
             {DType::kFloat64, DType::kFloat64},
             {DType::kBfloat16, kF32},
             {DType::kFloat16, kF32}}) {
      const OpInput x = {dtype, shape, -2, 4};
      const OpInput any = {wide, features, -1, 1};
      cases->push_back({"LayerNorm", {{"epsilon", 1e-3}}, {x, any, any}});
      cases->push_back(
          {"LayerNormGrad",
           {{"epsilon", 1e-3}},
           {x, x, any, {wide, rows, -1, 1}, {wide, rows, 0.5, 2}}});
    }
  }
}

}  // namespace muster
