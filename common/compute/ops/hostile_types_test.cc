#include <iterator>
#include <limits>
#include <string>
#include <vector>

#include "common/compute/graph/op_registry.h"
#include "common/compute/ops/builtin_ops.h"
#include "common/core/base/random.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/tensor/attributes.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"
#include "common/core/tensor/tensor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

// Graphs are received over the network. No type rule may abort, overflow or
// allocate memory, whatever the types and attributes.
namespace muster {
namespace {

using List = std::vector<int64_t>;

constexpr int64_t kMax = std::numeric_limits<int64_t>::max();

// Draws hostile types and attributes.
class HostileTypeGenerator {
 public:
  explicit HostileTypeGenerator(uint64_t seed) : stream_(seed) {}

  int64_t Number() {
    constexpr int64_t kHostile[] = {0,
                                    1,
                                    -1,
                                    2,
                                    3,
                                    -2,
                                    8,
                                    9,
                                    1 << 20,
                                    kMax,
                                    -kMax - 1,
                                    kMax - 1,
                                    -kMax,
                                    int64_t{1} << 32,
                                    int64_t{1} << 62,
                                    (int64_t{1} << 31) - 1};
    return kHostile[stream_.Below(std::size(kHostile))];
  }

  List Numbers() {
    List numbers(stream_.Below(11));
    for (int64_t& number : numbers) number = Number();
    return numbers;
  }

  DType AnyDType() {
    constexpr DType kAll[] = {
        DType::kFloat32, DType::kFloat64, DType::kInt32, DType::kUint8,
        DType::kString,  DType::kInt64,   DType::kBool,  DType::kBfloat16,
        DType::kFloat16, DType::kFloat32};
    return kAll[stream_.Below(std::size(kAll))];
  }

  // All shapes pass Shape::Create() before they reach an op.
  Shape AnyShape() {
    while (true) {
      List dims(stream_.Below(5));
      for (int64_t& dim : dims) {
        dim = stream_.Below(4) == 0 ? Number()
                                    : static_cast<int64_t>(stream_.Below(4));
      }
      const auto shape = Shape::Create(dims, /*allow_unknown=*/true);
      if (shape.ok()) return *shape;
    }
  }

  Attribute AnyAttribute() {
    switch (stream_.Below(8)) {
      case 0:
        return stream_.Below(2) == 0;
      case 1:
        return static_cast<double>(Number());
      case 2:
        return std::string("x");
      case 3:
        return AnyDType();
      case 4:
        return AnyShape();
      case 5:
        return Tensor();
      case 6:
        return Number();
      default:
        return Numbers();
    }
  }

  std::string AnyPadding() {
    constexpr const char* kPaddings[] = {"VALID", "SAME", "EXPLICIT", ""};
    return kPaddings[stream_.Below(std::size(kPaddings))];
  }

  // Most attributes have the kind that ops expect.
  Attributes AnyAttributes() {
    Attributes attributes;
    for (const char* name : {"axis", "count", "depth", "k", "data"}) {
      attributes.Set(name, Number());
    }
    for (const char* name :
         {"axes", "shape", "permutation", "begin", "size", "sizes", "strides",
          "dilations", "window", "explicit_padding"}) {
      attributes.Set(name, Numbers());
    }
    attributes.Set("paddings", Numbers());
    for (const char* name : {"strides", "dilations", "window"}) {
      if (stream_.Below(2) == 0) attributes.Set(name, List{1, 2});
    }
    attributes.Set("dtype", AnyDType());
    attributes.Set("alpha", static_cast<double>(Number()));
    attributes.Set("variable", std::string("v"));
    attributes.Set("epsilon", static_cast<double>(Number()));
    attributes.Set("groups", Number());
    attributes.Set("padding", AnyPadding());
    if (stream_.Below(2) == 0) attributes.Set("shape", AnyShape());
    if (stream_.Below(4) == 0) {
      auto name = attributes.values().begin();
      std::advance(name, stream_.Below(attributes.values().size()));
      attributes.Set(std::string(name->first), AnyAttribute());
    }
    return attributes;
  }

  std::vector<TensorType> AnyInputs(const OpSchema& schema) {
    const int count_max = schema.input_count_max == OpSchema::kAnyCount
                              ? 5
                              : schema.input_count_max;
    const int count =
        schema.input_count_min +
        static_cast<int>(stream_.Below(count_max - schema.input_count_min + 1));
    const TensorType common = {AnyDType(), AnyShape()};
    std::vector<TensorType> inputs(count, common);
    for (TensorType& input : inputs) {
      if (stream_.Below(3) == 0) input.dtype = AnyDType();
      if (stream_.Below(3) == 0) input.shape = AnyShape();
    }
    return inputs;
  }

 private:
  RandomStream stream_;
};

TEST(TypeRulesTest, HandlesHostileTypesAndAttributes) {
  constexpr int kAttacks = 1000;
  int accepted_count = 0;
  for (const OpSchema* schema : BuiltinOps().AllSchemas()) {
    HostileTypeGenerator attacker(FoldIn(7, schema->name));
    for (int i = 0; i < kAttacks; ++i) {
      const Attributes attributes = attacker.AnyAttributes();
      const std::vector<TensorType> inputs = attacker.AnyInputs(*schema);
      const auto types = BuiltinOps().InferTypes(
          schema->name, "n", {.inputs = inputs, .attributes = attributes});
      if (!types.ok()) {
        ASSERT_THAT(types, StatusIs(absl::StatusCode::kInvalidArgument));
        continue;
      }
      ++accepted_count;
      for (const TensorType& type : *types) {
        // An accepted type must be valid.
        ASSERT_OK(Shape::Create(type.shape.dims(), /*allow_unknown=*/true))
            << schema->name << " -> " << type.ToString();
      }
    }
  }
  // If nearly all attempts failed an early check, this test would prove little.
  EXPECT_GT(accepted_count, 3000);
}

}  // namespace
}  // namespace muster
