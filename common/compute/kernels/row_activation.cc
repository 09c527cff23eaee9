#include "common/compute/kernels/row_activation.h"

#include <cstdint>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "common/compute/functions/cell_activation.h"
#include "common/core/base/check.h"

namespace muster {
namespace {

template <typename F, typename C>
void ForwardEach(int64_t count, const C* x, C* y) {
  for (int64_t i = 0; i < count; ++i) y[i] = F()(x[i]);
}

template <typename F, typename C>
void BackwardEach(int64_t count, const C* x, const C*, const C* dy, C* dx) {
  for (int64_t i = 0; i < count; ++i) {
    dx[i] = functions::GradientOf<F>(x[i], dy[i]);
  }
}

template <typename C>
using Table = absl::flat_hash_map<absl::string_view, RowActivation<C>>;

template <typename C>
Table<C> MakeTable() {
  return {
#define MUSTER_OF_ELEMENT(name, keras_name, function) \
  {keras_name,                                        \
   {ForwardEach<functions::function, C>,              \
    BackwardEach<functions::function, C>}},
#define MUSTER_OF_ROW(name, keras_name, function) \
  {keras_name,                                    \
   {functions::function::Forward<C>, functions::function::Backward<C>}},
      MUSTER_CELL_ACTIVATIONS(MUSTER_OF_ELEMENT)
          MUSTER_ROW_ACTIVATIONS(MUSTER_OF_ROW)
#undef MUSTER_OF_ELEMENT
#undef MUSTER_OF_ROW
  };
}

}  // namespace

template <typename C>
RowActivation<C> FindRowActivation(absl::string_view name) {
  static const auto* const kTable = new Table<C>(MakeTable<C>());
  const auto found = kTable->find(name);
  return found == kTable->end() ? RowActivation<C>() : found->second;
}

template RowActivation<float> FindRowActivation<float>(absl::string_view);
template RowActivation<double> FindRowActivation<double>(absl::string_view);

functions::CellActivation FindCellActivation(absl::string_view name) {
#define MUSTER_FIND(kind, keras_name, function) \
  if (name == keras_name) return functions::CellActivation::k##kind;
  MUSTER_CELL_ACTIVATIONS(MUSTER_FIND)
  MUSTER_ROW_ACTIVATIONS(MUSTER_FIND)
#undef MUSTER_FIND
  MUSTER_CHECK(!"an activation without a number");
  return functions::CellActivation::kLinear;
}

}  // namespace muster
