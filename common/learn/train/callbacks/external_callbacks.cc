#include "common/learn/train/callbacks/external_callbacks.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "common/core/base/status_macros.h"
#include "common/core/system/log.h"
#include "common/io/storage/disk.h"
#include "common/learn/strategy/chief_result.h"
#include "common/learn/strategy/strategy.h"
#include "common/learn/train/base/log_lists.h"
#include "common/learn/train/model.h"

namespace muster {
namespace {

using Json = nlohmann::json;

// Below the timeout of collectives, so that replicas do not give up the chief
// while it waits for a slow callback.
constexpr absl::Duration kRound = absl::Seconds(10);
constexpr absl::Duration kWarningDelay = absl::Seconds(30);
constexpr char kTrainBegin[] = "train_begin";
constexpr char kWeights[] = "weights";

// JSON has no numbers that are not finite.
Json JsonOf(double value) {
  if (std::isfinite(value)) return value;
  return std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf";
}

Json JsonOf(const Logs& logs) {
  Json object = Json::object();
  for (const LoggedMetric& metric : MetricsOf(logs)) {
    if (!metric.is_list) {
      object[metric.name] = JsonOf(metric.values.front());
      continue;
    }
    Json& list = object[metric.name] = Json::array();
    for (const double value : metric.values) list.push_back(JsonOf(value));
  }
  return object;
}

absl::Status InvalidAnswer(absl::string_view field, const Json& value,
                           absl::string_view expected) {
  return absl::InvalidArgumentError(
      absl::StrCat("the answer of a callback has ", field, ": ",
                   value.dump().substr(0, 100), "; expected ", expected));
}

absl::StatusOr<double> NumberOf(absl::string_view field, const Json& value) {
  if (value.is_number()) return value.get<double>();
  double number;
  if (value.is_string() &&
      absl::SimpleAtod(value.get_ref<const std::string&>(), &number)) {
    return number;
  }
  return InvalidAnswer(field, value, "a number");
}

absl::StatusOr<Logs> LogsOf(const Json& answer) {
  Logs logs;
  const auto found = answer.find("logs");
  if (found == answer.end()) return logs;
  if (!found->is_object()) return InvalidAnswer("logs", *found, "an object");
  for (const auto& [name, value] : found->items()) {
    ASSIGN_OR_RETURN(logs[name], NumberOf(absl::StrCat("logs.", name), value));
  }
  return logs;
}

absl::StatusOr<bool> FlagOf(const Json& answer, const char* field) {
  const auto found = answer.find(field);
  if (found == answer.end()) return false;
  if (found->is_boolean()) return found->get<bool>();
  return InvalidAnswer(field, *found, "true or false");
}

absl::StatusOr<std::string> TextOf(const Json& answer, const char* field) {
  const auto found = answer.find(field);
  if (found == answer.end()) return "";
  if (found->is_string()) return found->get<std::string>();
  return InvalidAnswer(field, *found, "a string");
}

absl::Status Apply(Model& model, const Json& answer) {
  ASSIGN_OR_RETURN(const std::string weights, TextOf(answer, kWeights));
  if (!weights.empty()) RETURN_IF_ERROR(model.LoadWeights(weights));
  if (const auto rate = answer.find("learning_rate"); rate != answer.end()) {
    ASSIGN_OR_RETURN(const double number, NumberOf("learning_rate", *rate));
    RETURN_IF_ERROR(model.SetLearningRate(number));
  }
  ASSIGN_OR_RETURN(const bool stops, FlagOf(answer, "stop_training"));
  if (stops) model.StopTraining();
  return absl::OkStatus();
}

}  // namespace

void ExternalCallbacksOptions::VisitConfig(ConfigVisitor& visitor) {
  visitor.Describe(
      "Calls hooks of another process, as muster.fit() does for callbacks that "
      "are Python code.");
  visitor.Visit("directory", directory);
  visitor.Visit(Described("hooks", "Such as \"epoch_end\"."), hooks);
  visitor.Visit(Described("batch_interval",
                          "Batch hooks are called once for this many batches."),
                batch_interval);
  visitor.Visit(Described("timeout_seconds", "For each hook."),
                timeout_seconds);
}

ExternalCallbacks::ExternalCallbacks(ExternalCallbacksOptions options)
    : options_(std::move(options)) {}

absl::Status ExternalCallbacks::CheckOptions(
    const ExternalCallbacksOptions& options) {
  if (options.directory.empty()) {
    return absl::InvalidArgumentError(
        "external: directory is missing; expected a folder");
  }
  for (const std::string& hook : options.hooks) {
    if (std::find(std::begin(kHookNames), std::end(kHookNames), hook) ==
        std::end(kHookNames)) {
      return absl::InvalidArgumentError(
          absl::StrCat("external: hooks has \"", hook, "\"; expected some of ",
                       absl::StrJoin(kHookNames, ", ")));
    }
  }
  if (options.batch_interval < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("external: batch_interval must be at least 1, got ",
                     options.batch_interval));
  }
  if (!(options.timeout_seconds > 0)) {
    return absl::InvalidArgumentError(
        absl::StrCat("external: timeout_seconds must be above 0, got ",
                     options.timeout_seconds));
  }
  return absl::OkStatus();
}

bool ExternalCallbacks::IsSent(absl::string_view hook) const {
  return std::find(options_.hooks.begin(), options_.hooks.end(), hook) !=
         options_.hooks.end();
}

bool ExternalCallbacks::watches_steps() const {
  return IsSent("train_batch_begin") || IsSent("train_batch_end");
}

absl::StatusOr<std::string> ExternalCallbacks::Answer(absl::string_view hook,
                                                      absl::Duration waited) {
  const absl::Duration timeout = absl::Seconds(options_.timeout_seconds);
  ASSIGN_OR_RETURN(const std::optional<Json> answer,
                   exchange_->Receive(std::min(kRound, timeout - waited)));
  if (answer.has_value()) return answer->dump();
  if (waited + kRound < timeout) return "";
  return absl::DeadlineExceededError(absl::StrCat(
      "the process that has the callbacks has not answered ", hook, " within ",
      absl::FormatDuration(timeout), " in ", options_.directory));
}

absl::StatusOr<Json> ExternalCallbacks::Ask(Model& model,
                                            absl::string_view hook,
                                            const Json& event) {
  const WorkerAgreement& agreement = model.strategy()->agreement();
  absl::Status sent;
  if (agreement.is_chief()) sent = exchange_->Send(event);
  for (absl::Duration waited;; waited += kRound) {
    if (agreement.is_chief() && waited == kWarningDelay) {
      LOG(WARNING) << "waiting for the process that has the callbacks of "
                   << options_.directory << " to answer " << hook << ", for "
                   << absl::FormatDuration(
                          absl::Seconds(options_.timeout_seconds))
                   << " at most";
    }
    absl::StatusOr<std::string> text = "";
    if (!sent.ok()) {
      text = sent;
    } else if (agreement.is_chief()) {
      text = Answer(hook, waited);
    }
    ASSIGN_OR_RETURN(const std::string answer,
                     ResultFromChief(agreement, "answer of a callback", text));
    if (answer.empty()) continue;
    Json parsed = Json::parse(answer);
    ASSIGN_OR_RETURN(const std::string error, TextOf(parsed, "error"));
    if (!error.empty()) return absl::UnknownError(error);
    return parsed;
  }
}

absl::StatusOr<Logs> ExternalCallbacks::Call(Model& model,
                                             absl::string_view hook,
                                             int64_t number, const Logs& logs) {
  Json event = {
      {"hook", std::string(hook)}, {"number", number}, {"logs", JsonOf(logs)}};
  ASSIGN_OR_RETURN(const double rate, model.learning_rate());
  event["learning_rate"] = JsonOf(rate);
  ASSIGN_OR_RETURN(event["iterations"], model.iterations());
  ASSIGN_OR_RETURN(Json answer, Ask(model, hook, event));
  ASSIGN_OR_RETURN(const bool needs_weights, FlagOf(answer, "needs_weights"));
  if (needs_weights) {
    const std::string path = JoinPath(options_.directory, "weights.keras");
    RETURN_IF_ERROR(model.Save(path));
    event["weights"] = path;
    ASSIGN_OR_RETURN(answer, Ask(model, hook, event));
  }
  RETURN_IF_ERROR(Apply(model, answer));
  return LogsOf(answer);
}

absl::Status ExternalCallbacks::OnTrainBegin(Model& model) {
  RETURN_IF_ERROR(CheckOptions(options_));
  if (model.strategy()->membership() != nullptr) {
    return absl::UnimplementedError(
        "external: the chief calls the hooks, and with --min_workers any "
        "worker may become the chief; train without it");
  }
  absl::StatusOr<std::string> opened = "";
  if (model.strategy()->is_chief()) {
    exchange_.reset();
    absl::StatusOr<HookExchange> exchange =
        HookExchange::Open(options_.directory);
    if (exchange.ok()) {
      exchange_ = *std::move(exchange);
    } else {
      opened =
          absl::Status(exchange.status().code(),
                       absl::StrCat("external: ", exchange.status().message()));
    }
  }
  RETURN_IF_ERROR(ResultFromChief(model.strategy()->agreement(),
                                  "folder of callbacks", opened)
                      .status());
  return Call(model, kTrainBegin, 0, {}).status();
}

absl::Status ExternalCallbacks::OnEpochBegin(Model& model, int epoch) {
  if (!IsSent("epoch_begin")) return absl::OkStatus();
  return Call(model, "epoch_begin", epoch, {}).status();
}

absl::Status ExternalCallbacks::OnEpochEnd(Model& model, int epoch,
                                           Logs& logs) {
  if (!IsSent("epoch_end")) return absl::OkStatus();
  ASSIGN_OR_RETURN(const Logs added, Call(model, "epoch_end", epoch, logs));
  for (const auto& [name, value] : added) logs[name] = value;
  return absl::OkStatus();
}

absl::Status ExternalCallbacks::CallBatchHook(Model& model,
                                              absl::string_view hook,
                                              int64_t step, const Logs& logs) {
  if (!IsSent(hook)) return absl::OkStatus();
  const int64_t first = absl::EndsWith(hook, "_end") ? step + 1 : step;
  if (first % options_.batch_interval != 0) return absl::OkStatus();
  return Call(model, hook, step, logs).status();
}

absl::Status ExternalCallbacks::OnTrainBatchBegin(Model& model, int64_t step) {
  return CallBatchHook(model, "train_batch_begin", step, {});
}

absl::Status ExternalCallbacks::OnTrainBatchEnd(Model& model, int64_t step,
                                                const Logs& logs) {
  return CallBatchHook(model, "train_batch_end", step, logs);
}

absl::Status ExternalCallbacks::OnTestBegin(Model& model) {
  if (!IsSent("test_begin")) return absl::OkStatus();
  return Call(model, "test_begin", 0, {}).status();
}

absl::Status ExternalCallbacks::OnTestEnd(Model& model, const Logs& logs) {
  if (!IsSent("test_end")) return absl::OkStatus();
  return Call(model, "test_end", 0, logs).status();
}

absl::Status ExternalCallbacks::OnTestBatchBegin(Model& model, int64_t step) {
  return CallBatchHook(model, "test_batch_begin", step, {});
}

absl::Status ExternalCallbacks::OnTestBatchEnd(Model& model, int64_t step,
                                               const Logs& logs) {
  return CallBatchHook(model, "test_batch_end", step, logs);
}

}  // namespace muster
