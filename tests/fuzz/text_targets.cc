// Text that people and schedulers write.
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "common/compute/programs/program.h"
#include "common/learn/train/job/job_text.h"
#include "common/learn/train/job/resolved_job.h"
#include "common/learn/train/keras/keras_model_reader.h"
#include "common/learn/train/keras/keras_object.h"
#include "common/net/cluster/address.h"
#include "common/net/cluster/slurm_cluster.h"
#include "common/net/cluster/tf_config.h"
#include "common/net/rpc/method_access.h"
#include "tests/fuzz/fuzz_target.h"

namespace muster {
namespace {

bool RunTfConfig(absl::string_view input) {
  return ParseTfConfig(input, "TF_CONFIG").ok();
}

std::vector<std::string> TfConfigSeeds() {
  return {
      R"({"cluster": {"chief": ["h0:2222"], "worker": ["h1:2222", "h2:2222"],
          "ps": ["[fd00::1]:2222"]}, "task": {"type": "worker", "index": 1},
          "environment": "cloud", "rpc_layer": "grpc"})",
      R"({"cluster": {"worker": {"0": "h0:1", "3": "h1:2"}},
          "task": {"type": "worker", "index": "3"}})",
      "{}"};
}

bool RunJob(absl::string_view input) {
  const auto text =
      ParseJobText(input, "a.job", {}, {{"job_dir", "/x"}, {"run_dir", "/y"}});
  return text.ok() && ValidateJob(text->job).ok();
}

std::vector<std::string> JobSeeds() {
  return {R"(
variables { name: "units" default: "8" description: "how many" }
model { sequential {
  layers { dense { units: ${units} activation: RELU } }
  layers { dropout { rate: 0.5 } }
  layers { dense { units: 10 kernel_regularizer { l2 { l2: 1e-4 } } } }
} }
train { synthetic { example_count: 8 feature_count: 4 class_count: 10 } }
batch_size: 4
epochs: 2
optimizer { adam {} learning_rate_schedule { cosine_decay {
  initial_learning_rate: 0.002 decay_steps: 10 } } }
loss { sparse_categorical_crossentropy { from_logits: true } }
metrics { sparse_categorical_accuracy {} }
callbacks { backup_and_restore { backup_dir: "${run_dir}/backup" } }
seed: 1
)"};
}

bool RunKerasJson(absl::string_view input) {
  const absl::StatusOr<KerasJson> json = ParseKerasJson("input", input);
  return json.ok() && LayersFromKeras(*json).ok();
}

std::vector<std::string> KerasJsonSeeds() {
  return {R"({"module":"keras","class_name":"Sequential",
"registered_name":null,"build_config":{"input_shape":[null,4]},
"config":{"name":"s","layers":[
 {"module":"keras.layers","class_name":"InputLayer","registered_name":null,
  "config":{"batch_shape":[null,4],"dtype":"float32","name":"x"}},
 {"module":"keras.layers","class_name":"Dense","registered_name":null,
  "build_config":{"input_shape":[null,4]},
  "config":{"name":"h","units":3,"activation":"relu"}}]}})",
          R"({"module":"keras.src.models.functional","class_name":"Functional",
"registered_name":"Functional","config":{"name":"f","trainable":true,"layers":[
 {"module":"keras.layers","class_name":"InputLayer","registered_name":null,
  "name":"x","config":{"batch_shape":[null,4],"dtype":"float32","name":"x"},
  "inbound_nodes":[]},
 {"module":"keras.layers","class_name":"Dense","registered_name":null,
  "name":"h","config":{"name":"h","units":3},
  "inbound_nodes":[{"args":[{"class_name":"__keras_tensor__",
   "config":{"shape":[null,4],"dtype":"float32","keras_history":["x",0,0]}}],
   "kwargs":{}}]}],
 "input_layers":[["x",0,0]],"output_layers":[["h",0,0]]}})"};
}

bool RunAddress(absl::string_view input) { return ParseHostPort(input).ok(); }

std::vector<std::string> AddressSeeds() {
  return {"h0:2222", "[fd00::1]:2222", "grpc://worker-0.job:8888"};
}

bool RunHostlist(absl::string_view input) { return ExpandHostlist(input).ok(); }

std::vector<std::string> HostlistSeeds() {
  return {"node[1-4,7],gpu-[08-12]", "h0,h1"};
}

bool RunSpiffeId(absl::string_view input) { return ParseSpiffeId(input).ok(); }

std::vector<std::string> SpiffeIdSeeds() {
  return {"spiffe://muster/mnist/worker/1", "spiffe://muster/a.b-c/operator/0"};
}

bool RunProgram(absl::string_view input) {
  const absl::StatusOr<Program> program = Program::Decode(input);
  if (!program.ok()) return false;
  const ProgramTypes& types = program->types;
  return program->InferOutputs(types.inputs, /*is_gradient=*/false).ok() &&
         Program::Decode(program->Encode()).ok();
}

std::vector<std::string> ProgramSeeds() {
  return {R"({"name": "bend", "inputs": ["float32[?,64]", "float32[64]"],
              "outputs": ["float32[?,64]"], "gradient_inputs": [0, 1],
              "gradient_outputs": 1, "variants": [
                {"inputs": ["float32[32,64]", "float32[64]"],
                 "outputs": ["float32[32,64]"], "stablehlo": "TUxJUg==",
                 "gradient_stablehlo": "TUxJUg=="}]})",
          R"({"name": "loss", "inputs": ["int32[?]", "float32[3]"],
              "outputs": ["float32[?,2]", "float32[3]"],
              "gradient_inputs": [1], "gradient_of_loss": true, "variants": [
                {"inputs": ["int32[0]", "float32[3]"],
                 "outputs": ["float32[0,2]", "float32[3]"],
                 "stablehlo": ""}]})"};
}

}  // namespace

std::vector<FuzzTarget> TextFuzzTargets() {
  return {{"tf_config", RunTfConfig, TfConfigSeeds},
          {"job", RunJob, JobSeeds},
          {"keras_json", RunKerasJson, KerasJsonSeeds},
          {"address", RunAddress, AddressSeeds},
          {"hostlist", RunHostlist, HostlistSeeds},
          {"spiffe_id", RunSpiffeId, SpiffeIdSeeds},
          {"program", RunProgram, ProgramSeeds}};
}

}  // namespace muster
