#include "common/compute/conformance/control_flow_cases.h"

#include <utility>

#include "common/compute/ops/testing/control_flow_samples.h"
#include "common/core/tensor/dtype.h"

namespace muster {

void AddControlFlowCases(std::vector<OpCase>* cases) {
  for (const DType dtype :
       {DType::kFloat32, DType::kFloat64, DType::kBfloat16, DType::kFloat16}) {
    for (const ControlFlowSample& sample : ControlFlowSamples(dtype)) {
      OpCase one = {sample.op, sample.attributes, {}, sample.subgraphs};
      for (const TensorType& type : sample.inputs) {
        one.inputs.push_back({type.dtype, type.shape, -2, 2});
      }
      cases->push_back(std::move(one));
    }
  }
}

}  // namespace muster
