#include "common/dataset/row_tables.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "common/core/base/check.h"
#include "common/core/base/multiversion.h"
#include "common/core/base/status_macros.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"

namespace muster {
namespace {

MUSTER_MULTIVERSION void ScaleBytesToFloats(int64_t count, float scale,
                                            const uint8_t* __restrict bytes,
                                            float* __restrict floats) {
  for (int64_t i = 0; i < count; ++i) {
    floats[i] = static_cast<float>(bytes[i]) * scale;
  }
}

Shape RowShape(const Tensor& values) {
  return Shape(values.shape().dims().subspan(1));
}

Shape WithRows(int64_t rows, Shape shape) {
  shape.InsertDim(0, rows);
  return shape;
}

void CopyElements(const Tensor& from, int64_t begin, int64_t count, Tensor* to,
                  int64_t to_begin) {
  if (count == 0) return;
  if (from.dtype() == DType::kString) {
    const auto strings = from.flat<std::string>().subspan(begin, count);
    std::copy(strings.begin(), strings.end(),
              to->mutable_flat<std::string>().begin() + to_begin);
    return;
  }
  const size_t bytes = SizeOf(from.dtype());
  std::memcpy(to->mutable_raw_data() + to_begin * bytes,
              from.raw_data() + begin * bytes, count * bytes);
}

// Stacks `count` elements returned by at(i).
absl::Status Stack(int64_t count, absl::FunctionRef<const Element&(int64_t)> at,
                   absl::Span<Tensor> batch) {
  const Element& first = at(0);
  for (size_t c = 0; c < first.size(); ++c) {
    const Tensor& model = first[c];
    Tensor& out = batch[c];
    RETURN_IF_ERROR(
        PrepareTensor(model.dtype(), WithRows(count, model.shape()), &out));
    for (int64_t i = 0; i < count; ++i) {
      const Tensor& value = at(i)[c];
      if (value.dtype() != model.dtype() || value.shape() != model.shape()) {
        return absl::InvalidArgumentError(
            absl::StrCat("component ", c, " is ", value.type().ToString(),
                         " in one element and ", model.type().ToString(),
                         " in another; elements of a batch have one type"));
      }
      CopyElements(value, 0, value.element_count(), &out,
                   i * value.element_count());
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status PrepareTensor(DType dtype, const Shape& shape, Tensor* tensor) {
  if (tensor->IsValid() && tensor->dtype() == dtype &&
      tensor->shape() == shape && tensor->IsSoleOwner()) {
    return absl::OkStatus();
  }
  // The product of the extents of existing elements and the rows of one batch:
  // each factor is small, but the product may not be.
  double bytes = static_cast<double>(SizeOf(dtype));
  for (const int64_t extent : shape.dims()) {
    bytes *= static_cast<double>(extent);
  }
  if (bytes > static_cast<double>(kBatchBytesMax)) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "a batch of ", DTypeName(dtype), shape.ToString(), " needs ", bytes,
        " bytes; the limit is ", kBatchBytesMax, "; make batches smaller"));
  }
  *tensor = Tensor(dtype, shape);
  return absl::OkStatus();
}

absl::Status StackElements(absl::Span<const Element> elements, Element* batch) {
  for (const Element& element : elements) {
    if (element.size() == elements[0].size()) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("one element has ", element.size(),
                     " components and another ", elements[0].size()));
  }
  batch->resize(elements[0].size());
  return Stack(
      static_cast<int64_t>(elements.size()),
      [&](int64_t i) -> const Element& { return elements[i]; },
      absl::MakeSpan(*batch));
}

TensorTable::TensorTable(std::vector<Component> components)
    : components_(std::move(components)),
      component_count_(static_cast<int>(components_.size())) {
  MUSTER_CHECK(!components_.empty());
  row_count_ = components_[0].values.shape().dim(0);
}

absl::Status TensorTable::Get(int64_t row, absl::Span<Tensor> element) const {
  for (size_t c = 0; c < components_.size(); ++c) {
    const Component& component = components_[c];
    Tensor& out = element[c];
    Shape shape = RowShape(component.values);
    if (component.scale == 0) {
      out = component.values.SliceRows(row, row + 1).Reshaped(std::move(shape));
      continue;
    }
    RETURN_IF_ERROR(PrepareTensor(DType::kFloat32, shape, &out));
    const int64_t count = out.element_count();
    ScaleBytesToFloats(count, component.scale,
                       component.values.raw_data() + row * count,
                       out.mutable_flat<float>().data());
  }
  return absl::OkStatus();
}

absl::Status TensorTable::Gather(absl::Span<const int64_t> rows,
                                 absl::Span<Tensor> batch) const {
  for (size_t c = 0; c < components_.size(); ++c) {
    const Component& component = components_[c];
    Tensor& out = batch[c];
    Shape shape = component.values.shape();
    shape.set_dim(0, static_cast<int64_t>(rows.size()));
    RETURN_IF_ERROR(PrepareTensor(
        component.scale == 0 ? component.values.dtype() : DType::kFloat32,
        shape, &out));
    const int64_t elements = shape.ElementCountInRange(1, shape.rank());
    for (size_t i = 0; i < rows.size(); ++i) {
      const int64_t to = static_cast<int64_t>(i) * elements;
      if (component.scale == 0) {
        CopyElements(component.values, rows[i] * elements, elements, &out, to);
      } else {
        ScaleBytesToFloats(elements, component.scale,
                           component.values.raw_data() + rows[i] * elements,
                           out.mutable_flat<float>().data() + to);
      }
    }
  }
  return absl::OkStatus();
}

std::shared_ptr<const RowTable> TensorTable::Select(
    absl::Span<const int> components) const {
  std::vector<Component> selected;
  for (const int c : components) selected.push_back(components_[c]);
  return std::make_shared<TensorTable>(std::move(selected));
}

ZippedTable::ZippedTable(std::vector<std::shared_ptr<const RowTable>> tables)
    : tables_(std::move(tables)) {
  MUSTER_CHECK(!tables_.empty());
  row_count_ = tables_[0]->row_count();
  for (const auto& table : tables_) {
    row_count_ = std::min(row_count_, table->row_count());
    component_count_ += table->component_count();
  }
}

bool ZippedTable::is_stored() const {
  return std::all_of(tables_.begin(), tables_.end(),
                     [](const auto& table) { return table->is_stored(); });
}

absl::Status ZippedTable::Get(int64_t row, absl::Span<Tensor> element) const {
  for (const auto& table : tables_) {
    const int count = table->component_count();
    RETURN_IF_ERROR(table->Get(row, element.subspan(0, count)));
    element.remove_prefix(count);
  }
  return absl::OkStatus();
}

absl::Status ZippedTable::Gather(absl::Span<const int64_t> rows,
                                 absl::Span<Tensor> batch) const {
  for (const auto& table : tables_) {
    const int count = table->component_count();
    RETURN_IF_ERROR(table->Gather(rows, batch.subspan(0, count)));
    batch.remove_prefix(count);
  }
  return absl::OkStatus();
}

absl::Status ElementTable::Get(int64_t row, absl::Span<Tensor> element) const {
  std::copy(elements_[row].begin(), elements_[row].end(), element.begin());
  return absl::OkStatus();
}

absl::Status ElementTable::Gather(absl::Span<const int64_t> rows,
                                  absl::Span<Tensor> batch) const {
  return Stack(
      static_cast<int64_t>(rows.size()),
      [&](int64_t i) -> const Element& { return elements_[rows[i]]; }, batch);
}

}  // namespace muster
