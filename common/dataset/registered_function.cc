#include "common/dataset/registered_function.h"

#include <map>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/synchronization/mutex.h"
#include "common/core/base/status_macros.h"
#include "common/dataset/dataset_node.h"
#include "common/dataset/map_stages.h"
#include "proto/dataset.pb.h"

namespace muster {
namespace {

class Registry {
 public:
  // Never destroyed: threads of datasets may outlive main().
  static Registry& OfProcess() {
    static auto* const registry = new Registry;
    return *registry;
  }

  bool Add(const std::string& name, RegisteredFunctionMaker maker) {
    absl::MutexLock lock(&mutex_);
    std::vector<RegisteredFunctionMaker>& makers = makers_[name];
    makers.push_back(std::move(maker));
    return makers.size() == 1;
  }

  absl::StatusOr<RegisteredFunctionMaker> Find(const std::string& name) const {
    absl::MutexLock lock(&mutex_);
    const auto found = makers_.find(name);
    if (found != makers_.end() && found->second.size() == 1) {
      return found->second.front();
    }
    if (found != makers_.end()) {
      return absl::AlreadyExistsError(
          absl::StrCat("this process registered ", found->second.size(),
                       " element functions \"", name, "\""));
    }
    std::vector<std::string> names;
    for (const auto& makers : makers_) names.push_back(makers.first);
    return absl::NotFoundError(absl::StrCat(
        "this process has no element function \"", name, "\"; it has ",
        names.empty() ? "none" : absl::StrJoin(names, ", "),
        ". The program that runs the dataset must register it: "
        "RegisterElementFunction()"));
  }

 private:
  mutable absl::Mutex mutex_;
  // More than one of a name: a mistake of the program.
  std::map<std::string, std::vector<RegisteredFunctionMaker>> makers_
      ABSL_GUARDED_BY(mutex_);
};

// A function of this process that is encoded by its name.
class RegisteredFactory final : public ElementFunctionFactory {
 public:
  RegisteredFactory(std::string name, std::string argument,
                    std::shared_ptr<const ElementFunctionFactory> function)
      : name_(std::move(name)),
        argument_(std::move(argument)),
        function_(std::move(function)) {}

  absl::StatusOr<std::unique_ptr<ElementFunction>> Create() const override {
    return function_->Create();
  }
  const char* name() const override { return name_.c_str(); }
  const Graph* graph() const override { return nullptr; }
  bool Encode(proto::DatasetStage::Map* map) const override {
    map->mutable_registered()->set_name(name_);
    map->mutable_registered()->set_argument(argument_);
    return true;
  }
  const std::vector<TensorType>& result_types() const override {
    return function_->result_types();
  }
  std::vector<std::string> ResultNames(
      const std::vector<std::string>& argument_names) const override {
    return function_->ResultNames(argument_names);
  }

 private:
  const std::string name_;
  const std::string argument_;
  const std::shared_ptr<const ElementFunctionFactory> function_;
};

absl::Status CheckOutputNames(const RegisteredFunction& made) {
  if (!made.output_names.empty() &&
      made.output_names.size() != made.output_types.size()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "its maker gives ", made.output_names.size(), " names to ",
        made.output_types.size(), " components; expected one for each"));
  }
  return CheckUniqueNames(made.output_names);
}

}  // namespace

bool RegisterElementFunction(const std::string& name,
                             RegisteredFunctionMaker maker) {
  return Registry::OfProcess().Add(name, std::move(maker));
}

absl::StatusOr<std::shared_ptr<const ElementFunctionFactory>>
MakeRegisteredFunction(const std::string& name, const std::string& argument,
                       const ElementSpec& elements) {
  ASSIGN_OR_RETURN(const RegisteredFunctionMaker maker,
                   Registry::OfProcess().Find(name));
  absl::StatusOr<RegisteredFunction> made = maker(argument, elements);
  if (made.ok() && made->function == nullptr) {
    made = absl::InternalError("its maker returned no function");
  }
  if (made.ok()) {
    const absl::Status names = CheckOutputNames(*made);
    if (!names.ok()) made = names;
  }
  if (!made.ok()) {
    return absl::Status(
        made.status().code(),
        absl::StrCat("element function \"", name, "\" of \"", argument,
                     "\": ", made.status().message()));
  }
  return std::make_shared<RegisteredFactory>(
      name, argument,
      MakeHostFunction(
          std::move(made->function),
          {std::move(made->output_types), std::move(made->output_names)}));
}

Dataset MapRegistered(const Dataset& dataset, const std::string& name,
                      const std::string& argument, const MapOptions& options) {
  if (!dataset.status().ok()) return dataset;
  auto function =
      MakeRegisteredFunction(name, argument, dataset.element_spec());
  if (!function.ok()) {
    return Dataset(absl::StatusOr<NodePointer>(function.status()));
  }
  return Dataset(MakeMap(dataset.node(), *std::move(function), options));
}

}  // namespace muster
