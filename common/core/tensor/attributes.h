#ifndef COMMON_CORE_TENSOR_ATTRIBUTES_H_
#define COMMON_CORE_TENSOR_ATTRIBUTES_H_

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <map>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"
#include "common/core/tensor/tensor.h"

namespace muster {

namespace proto {
class AttributeValue;
}  // namespace proto

// One constant argument of an operation.
using Attribute = std::variant<int64_t, double, bool, std::string,
                               std::vector<int64_t>, DType, Shape, Tensor>;

// The constant arguments of an operation, by name. Ordered, so that printing
// and encoding are deterministic.
//
// The readers return kInvalidArgument, naming the attribute, if it is absent or
// of another kind: attributes are received over the network.
class Attributes {
 public:
  using Map = std::map<std::string, Attribute, std::less<>>;

  Attributes();
  Attributes(const Attributes& other);
  Attributes(Attributes&& other) noexcept;
  Attributes& operator=(const Attributes& other);
  Attributes& operator=(Attributes&& other) noexcept;
  ~Attributes();

  Attributes(
      std::initializer_list<std::pair<const std::string, Attribute>> values);

  void Set(absl::string_view name, Attribute value);
  bool Has(absl::string_view name) const;

  // T is one of Attribute's alternatives.
  template <typename T>
  absl::StatusOr<T> Get(absl::string_view name) const;

  // Returns `fallback` if absent. The operation's schema has checked the kind
  // of an attribute that is present.
  template <typename T>
  T GetOr(absl::string_view name, T fallback) const;

  const Map& values() const { return values_; }

 private:
  // Returns null if there is none.
  const Attribute* Find(absl::string_view name) const;

  Map values_;
};

// "7", "\"relu\"", "[0,1]", "float32".
std::string AttributeToString(const Attribute& attribute);

proto::AttributeValue EncodeAttribute(const Attribute& attribute);
//   kInvalidArgument  no kind is set, or a dtype, shape or tensor is invalid
absl::StatusOr<Attribute> DecodeAttribute(const proto::AttributeValue& value);

}  // namespace muster

#endif  // COMMON_CORE_TENSOR_ATTRIBUTES_H_
