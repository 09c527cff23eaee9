#include "common/learn/nn/layer.h"

#include <cxxabi.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <typeinfo>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "absl/types/span.h"
#include "common/compute/graph/graph_builder.h"
#include "common/compute/ops/ops.h"
#include "common/compute/variables/initializer.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"
#include "common/core/tensor/tensor_codec.h"
#include "common/learn/nn/dtype_policy.h"
#include "common/learn/nn/regularizers.h"
#include "common/learn/nn/weight.h"
#include "proto/variable.pb.h"

namespace muster {
namespace {

// "muster::(anonymous namespace)::Scale" -> "Scale".
std::string UnqualifiedClassName(const std::type_info& type) {
  int status = 0;
  char* demangled = abi::__cxa_demangle(type.name(), nullptr, nullptr, &status);
  std::string name = status == 0 ? demangled : "Layer";
  std::free(demangled);
  const size_t colons = name.rfind("::");
  return colons == std::string::npos ? name : name.substr(colons + 2);
}

int64_t NextCreationIndex() {
  static std::atomic<int64_t> next = 0;
  return next++;
}

std::string JoinPath(absl::string_view path, absl::string_view name) {
  return path.empty() ? std::string(name) : absl::StrCat(path, "/", name);
}

// A layer may occur in several places.
std::vector<Weight> WithoutRepetitions(std::vector<Weight> weights) {
  absl::flat_hash_set<const void*> seen;
  weights.erase(
      std::remove_if(weights.begin(), weights.end(),
                     [&](const Weight& weight) {
                       return !seen.insert(weight.identity().get()).second;
                     }),
      weights.end());
  return weights;
}

}  // namespace

std::string ToSnakeCase(absl::string_view name) {
  std::string snake;
  for (size_t i = 0; i < name.size(); ++i) {
    const bool starts_word =
        absl::ascii_isupper(name[i]) && i > 0 &&
        (absl::ascii_islower(name[i - 1]) ||
         (i + 1 < name.size() && absl::ascii_islower(name[i + 1])));
    if (starts_word) snake += '_';
    snake += absl::ascii_tolower(name[i]);
  }
  return snake;
}

Layer::Layer(absl::string_view name)
    : creation_index_(NextCreationIndex()), name_(name) {}

std::string Layer::kind() const {
  const std::string name = UnqualifiedClassName(typeid(*this));
  const absl::string_view short_name = absl::StripSuffix(name, "Layer");
  return std::string(short_name.empty() ? "Layer" : short_name);
}

const Shape& Layer::output_shape() const {
  static const Shape& kNone = *new Shape();
  return output_shapes_.empty() ? kNone : output_shapes_.front();
}

std::vector<Weight> Layer::weights() const {
  std::vector<Weight> all = OwnWeights(/*are_states=*/false);
  for (const LayerPtr& layer : layers_) {
    const std::vector<Weight> inner = layer->weights();
    all.insert(all.end(), inner.begin(), inner.end());
  }
  return WithoutRepetitions(std::move(all));
}

std::vector<Weight> Layer::states() const {
  std::vector<Weight> all = OwnWeights(/*are_states=*/true);
  for (const LayerPtr& layer : layers_) {
    const std::vector<Weight> inner = layer->states();
    all.insert(all.end(), inner.begin(), inner.end());
  }
  return WithoutRepetitions(std::move(all));
}

std::vector<Weight> Layer::OwnWeights(bool are_states) const {
  std::vector<Weight> own;
  for (const Weight& weight : weights_) {
    if (weight.is_state() == are_states) own.push_back(weight);
  }
  return own;
}

void Layer::set_trainable(bool trainable) {
  trainable_ = trainable;
  for (const Weight& weight : weights_) {
    weight.state_->is_frozen = !trainable;
  }
  for (const LayerPtr& layer : layers_) layer->set_trainable(trainable);
}

void Layer::SetPath(absl::string_view path) {
  absl::flat_hash_set<const Layer*> done;
  SetPathOnce(path, done);
}

void Layer::SetPathOnce(absl::string_view path,
                        absl::flat_hash_set<const Layer*>& done) {
  if (!done.insert(this).second) return;
  const std::string old_prefix = path_.empty() ? name_ : path_;
  path_ = std::string(path);
  if (name_.empty()) {
    name_ = path_.empty() ? ToSnakeCase(kind())
                          : path_.substr(path_.rfind('/') + 1);
  }
  for (const Weight& weight : weights_) {
    absl::string_view local_name = weight.name();
    absl::ConsumePrefix(&local_name, old_prefix + "/");
    weight.Rename(JoinPath(path_.empty() ? name_ : path_, local_name));
  }

  NameLayers();
  for (const LayerPtr& layer : layers_) {
    layer->SetPathOnce(JoinPath(path_, layer->name_), done);
  }
}

void Layer::NameLayers() {
  absl::flat_hash_set<std::string> taken;
  std::vector<Layer*> nameless;
  for (const LayerPtr& layer : layers_) {
    if (layer->name_.empty()) {
      nameless.push_back(layer.get());
    } else {
      taken.insert(layer->name_);
    }
  }
  // Numbered in the order of creation, as in Keras. The layers of functional
  // models are not stored in that order.
  std::sort(nameless.begin(), nameless.end(),
            [](const Layer* a, const Layer* b) {
              return a->creation_index_ < b->creation_index_;
            });
  absl::flat_hash_map<std::string, int> counts;
  for (Layer* const layer : nameless) {
    while (layer->name_.empty()) {
      const std::string base = ToSnakeCase(layer->kind());
      const int count = counts[base]++;
      std::string name = count == 0 ? base : absl::StrCat(base, "_", count);
      if (taken.insert(name).second) layer->name_ = std::move(name);
    }
  }
}

std::vector<std::string> Layer::output_names() const {
  if (output_count() == 1) return {name_};
  std::vector<std::string> names;
  for (int i = 1; i <= output_count(); ++i) {
    names.push_back(absl::StrCat("output_", i));
  }
  return names;
}

LayerPtr Layer::AddLayer(LayerPtr layer) {
  if (!trainable_) layer->set_trainable(false);
  layers_.push_back(layer);
  return layer;
}

Value Layer::operator()(Value x, const CallContext& context) {
  return (*this)(absl::MakeConstSpan(&x, 1), context);
}

Value Layer::operator()(absl::Span<const Value> inputs,
                        const CallContext& context) {
  const std::vector<Value> outputs = CallAll(inputs, context);
  return outputs.empty() ? Value() : outputs.front();
}

void Layer::EnsureBuilt(absl::Span<const Shape> inputs) {
  if (built_) return;
  BuildMany(inputs);
  built_ = true;
}

std::vector<Value> Layer::CallAll(absl::Span<const Value> inputs,
                                  const CallContext& context) {
  const std::vector<Value> poisoned(output_count());
  GraphBuilder* const builder =
      inputs.empty() ? nullptr : inputs.front().builder();
  if (builder == nullptr) return poisoned;
  for (const Value& input : inputs) {
    if (!input.ok()) return poisoned;
  }

  const std::string scope = name_.empty() ? ToSnakeCase(kind()) : name_;
  if (input_count() != kAnyCount &&
      input_count() != static_cast<int>(inputs.size())) {
    builder->ReportError(absl::InvalidArgumentError(
        absl::StrCat("layer ", scope, ": expected ", input_count(),
                     " inputs, got ", inputs.size())));
    return poisoned;
  }
  // A whole model has no path, and its layers' nodes have no prefix.
  std::optional<GraphBuilder::NameScope> name_scope;
  if (!path_.empty()) name_scope.emplace(builder, scope);

  std::vector<Shape> shapes;
  for (const Value& input : inputs) shapes.push_back(input.shape());
  EnsureBuilt(shapes);
  if (!LendWeights(scope, inputs.front())) return poisoned;
  Masks own_masks;
  CallContext shared = context;
  if (shared.masks == nullptr) shared.masks = &own_masks;
  std::vector<Value> outputs =
      CallMany(CastInputs(inputs, shared.masks), shared);
  if (keeps_mask() && !outputs.empty()) {
    shared.masks->Set(outputs.front(), shared.masks->Find(inputs.front()));
  }
  AddPenalties(outputs, shared.losses);
  CastOutputs(&outputs, shared.masks);
  for (const Weight& weight : weights_) weight.state_->builder = nullptr;
  const bool is_ok = std::all_of(outputs.begin(), outputs.end(),
                                 [](const Value& value) { return value.ok(); });
  if (is_ok) {
    output_shapes_.clear();
    for (const Value& output : outputs) {
      output_shapes_.push_back(output.shape());
    }
  }
  return outputs;
}

std::vector<Value> Layer::CastInputs(absl::Span<const Value> inputs,
                                     Masks* masks) const {
  std::vector<Value> cast(inputs.begin(), inputs.end());
  if (precision() == Precision::kAsTheyCome) return cast;
  const DType dtype = compute_dtype();
  for (Value& value : cast) {
    if (value.dtype() != dtype && IsFloating(value.dtype())) {
      const Value mask = masks->Find(value);
      value = Cast(value, dtype);
      masks->Set(value, mask);
    }
  }
  return cast;
}

void Layer::CastOutputs(std::vector<Value>* outputs, Masks* masks) const {
  if (precision() != Precision::kFloat32 || dtype_policy_ == kFloat32Policy) {
    return;
  }
  for (Value& value : *outputs) {
    if (value.ok() && IsFloating(value.dtype())) {
      const Value mask = masks->Find(value);
      value = Cast(value, dtype_policy_.compute);
      masks->Set(value, mask);
    }
  }
}

void Layer::AddPenalties(absl::Span<const Value> outputs,
                         std::vector<Value>* losses) const {
  if (!activity_regularizer_ || losses == nullptr) return;
  for (const Value& output : outputs) {
    losses->push_back(internal::ActivityPenalty(activity_regularizer_, output));
  }
}

Value internal::ActivityPenalty(const Regularizer& regularizer, Value output) {
  if (!output.ok()) return Value();
  const Value penalty = regularizer(Cast(output, DType::kFloat32));
  // A replica may have no rows in its last step.
  return penalty / Maximum(CountAlong(output, {0}), 1);
}

Value Layer::Call(Value x, const CallContext&) {
  x.builder()->ReportError(absl::UnimplementedError(absl::StrCat(
      "layer ", name_, ": ", kind(), " does not override Call()")));
  return Value();
}

bool Layer::LendWeights(absl::string_view scope, Value input) {
  GraphBuilder* const builder = input.builder();
  for (const Weight& weight : weights_) {
    if (!weight.state_->handle.type.shape.IsFullyKnown()) {
      builder->ReportError(absl::InvalidArgumentError(absl::StrCat(
          "layer ", scope, ": weight ", weight.name(), " would have type ",
          weight.state_->handle.type.ToString(), " because its input is ",
          input.type().ToString(),
          weight.is_state()
              ? "; what is carried from batch to batch needs batches of one "
                "size: give Input() a batch_size"
              : "; all extents but the batch's must be known")));
      return false;
    }
    weight.state_->builder = builder;
    weight.state_->compute_dtype = compute_dtype();
  }
  return true;
}

Weight Layer::AddWeight(absl::string_view name, const Shape& shape,
                        const Initializer& initializer,
                        const WeightOptions& options) {
  auto state = std::make_shared<Weight::State>();
  state->spec = std::make_shared<proto::VariableSpec>();
  proto::VariableSpec& spec = *state->spec;
  spec.set_name(JoinPath(path_.empty() ? name_ : path_, name));
  spec.set_dtype(EncodeDType(options.dtype));
  *spec.mutable_shape() = EncodeShape(shape);
  *spec.mutable_initializer() = initializer.definition();
  spec.set_trainable(options.trainable);
  spec.set_aggregation(options.aggregation);
  if (options.constraint) {
    *spec.mutable_constraint() = options.constraint.definition();
  }
  state->regularizer = options.regularizer;
  state->handle = {spec.name(), {options.dtype, shape}};
  state->is_frozen = !trainable_;
  weights_.push_back(Weight(std::move(state)));
  return weights_.back();
}

Weight Layer::AddState(absl::string_view name, const Shape& shape) {
  const Weight weight =
      AddWeight(name, shape, Initializer(), {.trainable = false});
  proto::VariableSpec& spec = *weight.state_->spec;
  spec.mutable_initializer()->mutable_constant()->set_value(0);
  spec.set_is_optimizer_state(true);
  return weight;
}

}  // namespace muster
