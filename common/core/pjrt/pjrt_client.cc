#include "common/core/pjrt/pjrt_client.h"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/memory/memory.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "common/core/base/check.h"
#include "common/core/base/status_macros.h"
#include "common/core/pjrt/pjrt_api.h"
#include "common/core/pjrt/plugin.h"
#include "common/core/pjrt/plugin_path.h"
#include "common/core/tensor/buffer.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"
#include "common/core/tensor/tensor.h"
#include "proto/hlo.pb.h"

namespace muster {
namespace {

using pjrt::BufferType;

// The dtype that a tensor has on the host.
struct BufferTypeRow {
  BufferType type;
  DType dtype;
  // True for the element type that a tensor of the dtype has on a device.
  bool is_inverse;
};

constexpr BufferTypeRow kBufferTypes[] = {
    {BufferType::kPred, DType::kBool, true},
    {BufferType::kS32, DType::kInt32, true},
    {BufferType::kS64, DType::kInt64, true},
    {BufferType::kU8, DType::kUint8, true},
    {BufferType::kF16, DType::kFloat16, true},
    {BufferType::kF32, DType::kFloat32, true},
    {BufferType::kF64, DType::kFloat64, true},
    {BufferType::kBf16, DType::kBfloat16, true},
    {BufferType::kU32, DType::kInt32, false},
    {BufferType::kU64, DType::kInt64, false},
};

DType DTypeOnHost(BufferType type) {
  for (const BufferTypeRow& row : kBufferTypes) {
    if (row.type == type) return row.dtype;
  }
  return DType::kInvalid;
}

BufferType TypeOnDevice(DType dtype) {
  for (const BufferTypeRow& row : kBufferTypes) {
    if (row.is_inverse && row.dtype == dtype) return row.type;
  }
  return BufferType::kInvalid;
}

// Appends a field of type varint to a message of Protocol Buffers.
void AppendVarintField(int number, uint64_t value, std::string* message) {
  message->push_back(static_cast<char>(number << 3));
  for (; value >= 0x80; value >>= 7) {
    message->push_back(static_cast<char>(value | 0x80));
  }
  message->push_back(static_cast<char>(value));
}

// Returns a serialized xla.CompileOptionsProto (xla/pjrt/proto).
std::string SerializedOptions(const PjrtCompileOptions& options) {
  std::string build;  // ExecutableBuildOptionsProto.
  AppendVarintField(1, static_cast<uint64_t>(int64_t{-1}), &build);  // Device.
  AppendVarintField(4, options.replica_count, &build);
  AppendVarintField(5, options.partition_count, &build);
  if (options.partition_count > 1) AppendVarintField(6, 1, &build);  // SPMD.
  return absl::StrCat("\x1a", std::string(1, static_cast<char>(build.size())),
                      build);
}

pjrt::ClientOption ToClientOption(
    const std::pair<std::string, std::variant<int64_t, bool, std::string>>&
        option) {
  pjrt::ClientOption value = {.struct_size = sizeof(value),
                              .name = option.first.data(),
                              .name_size = option.first.size(),
                              .value_size = 1};
  if (const auto* const text = std::get_if<std::string>(&option.second)) {
    value.type = pjrt::OptionType::kString;
    value.string_value = text->data();
    value.value_size = text->size();
  } else if (const auto* const number = std::get_if<int64_t>(&option.second)) {
    value.type = pjrt::OptionType::kInt64;
    value.int64_value = *number;
  } else {
    value.type = pjrt::OptionType::kBool;
    value.bool_value = std::get<bool>(option.second);
  }
  return value;
}

}  // namespace

absl::StatusOr<std::unique_ptr<PjrtBuffer>> PjrtBuffer::Wrap(
    std::shared_ptr<const PjrtClient> client, pjrt::Buffer* buffer) {
  const PjrtPlugin& plugin = client->plugin();
  auto wrapped = absl::WrapUnique(new PjrtBuffer(std::move(client), buffer));
  pjrt::BufferElementTypeArgs type = {.buffer = buffer};
  RETURN_IF_ERROR(plugin.Call(type));
  wrapped->type_ = type.type;
  pjrt::BufferDimensionsArgs dims = {.buffer = buffer};
  RETURN_IF_ERROR(plugin.Call(dims));
  wrapped->shape_ = Shape(absl::MakeConstSpan(dims.dims, dims.dim_count));
  return wrapped;
}

PjrtBuffer::~PjrtBuffer() {
  pjrt::BufferDestroyArgs args = {.buffer = buffer_};
  client_->plugin().Call(args).IgnoreError();
}

absl::Status PjrtBuffer::Await(absl::Time deadline) const {
  pjrt::BufferReadyEventArgs args = {.buffer = buffer_};
  RETURN_IF_ERROR(client_->plugin().Call(args));
  return client_->plugin().Await(args.event, deadline, "a program's result");
}

absl::StatusOr<Tensor> PjrtBuffer::ToHost(absl::Time deadline) const {
  const DType dtype = DTypeOnHost(type_);
  if (dtype == DType::kInvalid) {
    return absl::UnimplementedError(
        absl::StrCat("tensors do not have the element type ",
                     static_cast<int>(type_), " of PJRT"));
  }
  // The copy may go on after the deadline, so it owns the memory.
  const auto memory = std::make_shared<Tensor>(dtype, shape_);
  pjrt::BufferToHostBufferArgs args = {
      .source = buffer_,
      .destination = memory->mutable_raw_data(),
      .destination_size = memory->size_bytes()};
  RETURN_IF_ERROR(client_->plugin().Call(args));
  RETURN_IF_ERROR(client_->plugin().Await(
      args.event, deadline, "a copy of a program's result", memory));
  return *memory;
}

absl::StatusOr<Tensor> PjrtBuffer::MoveToHost(
    std::unique_ptr<PjrtBuffer> buffer, absl::Time deadline) {
  const DType dtype = DTypeOnHost(buffer->type_);
  void* const address = buffer->HostAddress();
  if (address == nullptr || dtype == DType::kInvalid) {
    return buffer->ToHost(deadline);
  }
  RETURN_IF_ERROR(buffer->Await(deadline));
  const Shape shape = buffer->shape_;
  const size_t size_bytes = shape.element_count() * SizeOf(dtype);
  const std::shared_ptr<PjrtBuffer> owner = std::move(buffer);
  return Tensor(dtype, shape, Buffer::Wrap(address, size_bytes, [owner] {}));
}

void* PjrtBuffer::HostAddress() const {
  pjrt::BufferIsOnCpuArgs place = {.buffer = buffer_};
  if (!client_->plugin().Call(place).ok() || !place.is_on_cpu) return nullptr;
  pjrt::BufferUnsafePointerArgs pointer = {.buffer = buffer_};
  if (!client_->plugin().Call(pointer).ok()) return nullptr;
  const bool is_aligned = pointer.address % Buffer::kAlignmentBytes == 0;
  return is_aligned ? reinterpret_cast<void*>(pointer.address) : nullptr;
}

PjrtExecutable::~PjrtExecutable() {
  if (executable_ != nullptr) {
    pjrt::ExecutableDestroyArgs args = {.executable = executable_};
    client_->plugin().Call(args).IgnoreError();
  }
  pjrt::LoadedExecutableDestroyArgs args = {.executable = loaded_};
  client_->plugin().Call(args).IgnoreError();
}

absl::StatusOr<std::vector<std::unique_ptr<PjrtBuffer>>>
PjrtExecutable::Execute(absl::Span<const PjrtBuffer* const> arguments) const {
  const std::vector<const PjrtBuffer*> of_device(arguments.begin(),
                                                 arguments.end());
  ASSIGN_OR_RETURN(auto results, ExecuteOnAll({of_device}));
  return std::move(results[0]);
}

absl::StatusOr<std::vector<std::vector<std::unique_ptr<PjrtBuffer>>>>
PjrtExecutable::ExecuteOnAll(
    absl::Span<const std::vector<const PjrtBuffer*>> arguments) const {
  const size_t device_count = arguments.size();
  MUSTER_CHECK(device_count >= 1);
  std::vector<std::vector<pjrt::Buffer*>> inputs(device_count);
  std::vector<std::vector<pjrt::Buffer*>> outputs(
      device_count, std::vector<pjrt::Buffer*>(output_count_));
  std::vector<pjrt::Buffer* const*> input_lists;
  std::vector<pjrt::Buffer**> output_lists;
  for (size_t i = 0; i < device_count; ++i) {
    if (arguments[i].size() != arguments[0].size()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "device ", i, " has ", arguments[i].size(), " arguments, device 0 ",
          arguments[0].size(), "; expected as many for each"));
    }
    for (const PjrtBuffer* const buffer : arguments[i]) {
      inputs[i].push_back(buffer->buffer_);
    }
    input_lists.push_back(inputs[i].data());
    output_lists.push_back(outputs[i].data());
  }
  pjrt::ExecuteOptions options = {.struct_size = sizeof(options)};
  pjrt::LoadedExecutableExecuteArgs args = {
      .executable = loaded_,
      .options = &options,
      .argument_lists = input_lists.data(),
      .device_count = device_count,
      .argument_count = inputs[0].size(),
      .output_lists = output_lists.data()};
  RETURN_IF_ERROR(client_->plugin().Call(args));
  std::vector<std::vector<std::unique_ptr<PjrtBuffer>>> results(device_count);
  absl::Status status;
  for (size_t i = 0; i < device_count; ++i) {
    for (pjrt::Buffer* const buffer : outputs[i]) {
      // All are wrapped, also after an error, because all must be destroyed.
      auto wrapped = PjrtBuffer::Wrap(client_, buffer);
      status.Update(wrapped.status());
      if (wrapped.ok()) results[i].push_back(*std::move(wrapped));
    }
  }
  RETURN_IF_ERROR(status);
  return results;
}

absl::StatusOr<PjrtExecutable::MemoryStats> PjrtExecutable::Memory() const {
  pjrt::ExecutableGetCompiledMemoryStatsArgs args = {.executable = executable_};
  RETURN_IF_ERROR(client_->plugin().Call(args));
  return MemoryStats{.arguments = args.argument_bytes,
                     .outputs = args.output_bytes,
                     .aliased = args.alias_bytes,
                     .temporary = args.temporary_bytes,
                     .code = args.code_bytes};
}

absl::StatusOr<std::string> PjrtExecutable::Serialize() const {
  pjrt::ExecutableSerializeArgs args = {.executable = executable_};
  RETURN_IF_ERROR(client_->plugin().Call(args));
  std::string bytes(args.bytes, args.byte_count);
  if (args.deleter != nullptr) args.deleter(args.serialized);
  return bytes;
}

absl::StatusOr<std::vector<std::string>> PjrtExecutable::CustomCalls() const {
  pjrt::ProgramSource shown = {.struct_size = sizeof(shown)};
  pjrt::ExecutableOptimizedProgramArgs args = {.executable = executable_,
                                               .program = &shown};
  RETURN_IF_ERROR(client_->plugin().Call(args));  // Sets the size.
  const absl::string_view format(shown.format, shown.format_size);
  if (format != "hlo_with_config") {
    return absl::UnimplementedError(
        absl::StrCat("the plugin shows compiled programs in the format \"",
                     format, "\"; expected \"hlo_with_config\""));
  }
  std::string code(shown.code_size, '\0');
  shown.code = code.data();
  RETURN_IF_ERROR(client_->plugin().Call(args));
  proto::HloModuleWithConfig program;
  if (!program.ParseFromString(code)) {
    return absl::DataLossError(
        "what the plugin shows as the compiled program is no HloModuleProto");
  }
  std::set<std::string> targets;
  for (const auto& computation : program.hlo_module().computations()) {
    for (const auto& instruction : computation.instructions()) {
      targets.insert(instruction.custom_call_target());
    }
  }
  targets.erase("");
  return std::vector<std::string>(targets.begin(), targets.end());
}

absl::StatusOr<std::shared_ptr<PjrtClient>> PjrtClient::Create(
    absl::string_view plugin, const PjrtClientOptions& options) {
  const absl::Time deadline = absl::Now() + options.timeout;
  ASSIGN_OR_RETURN(const std::string path, FindPjrtPlugin(plugin));
  ASSIGN_OR_RETURN(const PjrtPlugin* const loaded,
                   PjrtPlugin::Load(path, options.timeout));
  if (options.thread_count > 0) {
    setenv("NPROC", absl::StrCat(options.thread_count).c_str(), 1);
  }
  // Shared with a creation that may outlive this call.
  const auto created = std::make_shared<pjrt::Client*>(nullptr);
  RETURN_IF_ERROR(RunWithTimeout(
      [loaded, created, given = options.options] {
        std::vector<pjrt::ClientOption> values;
        for (const auto& option : given) {
          values.push_back(ToClientOption(option));
        }
        pjrt::ClientCreateArgs args = {.options = values.data(),
                                       .option_count = values.size()};
        RETURN_IF_ERROR(loaded->Call(args));
        *created = args.client;
        return absl::OkStatus();
      },
      deadline - absl::Now(),
      absl::StrCat("a client of the PJRT plugin ", path)));
  std::shared_ptr<PjrtClient> client(new PjrtClient(loaded, *created));
  RETURN_IF_ERROR(client->ReadProperties());
  return client;
}

PjrtClient::~PjrtClient() {
  pjrt::ClientDestroyArgs args = {.client = client_};
  plugin_->Call(args).IgnoreError();
}

absl::Status PjrtClient::ReadProperties() {
  pjrt::ClientPlatformNameArgs name = {.client = client_};
  RETURN_IF_ERROR(plugin_->Call(name));
  platform_name_.assign(name.name, name.name_size);
  pjrt::ClientPlatformVersionArgs version = {.client = client_};
  RETURN_IF_ERROR(plugin_->Call(version));
  platform_version_.assign(version.version, version.version_size);
  pjrt::ClientAddressableDevicesArgs devices = {.client = client_};
  RETURN_IF_ERROR(plugin_->Call(devices));
  devices_.assign(devices.devices, devices.devices + devices.device_count);
  if (!devices_.empty()) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat(
      "the PJRT plugin ", plugin_->path(), " has no device on this machine"));
}

absl::StatusOr<std::string> PjrtClient::DeviceName(int device) const {
  MUSTER_CHECK(device >= 0 && device < device_count());
  pjrt::DeviceGetDescriptionArgs description = {.device = devices_[device]};
  RETURN_IF_ERROR(plugin_->Call(description));
  pjrt::DeviceDescriptionToStringArgs text = {.description =
                                                  description.description};
  RETURN_IF_ERROR(plugin_->Call(text));
  return std::string(text.text, text.text_size);
}

absl::StatusOr<std::unique_ptr<PjrtBuffer>> PjrtClient::CopyToDevice(
    const Tensor& tensor, int device, BufferType type) const {
  MUSTER_CHECK(device >= 0 && device < device_count());
  if (type == BufferType::kInvalid) type = TypeOnDevice(tensor.dtype());
  const DType on_host = DTypeOnHost(type);
  if (on_host == DType::kInvalid || SizeOf(on_host) != SizeOf(tensor.dtype())) {
    return absl::InvalidArgumentError(
        absl::StrCat("a tensor ", tensor.type().ToString(),
                     " cannot be an array of the element type ",
                     static_cast<int>(type), " of PJRT"));
  }
  const absl::Span<const int64_t> dims = tensor.shape().dims();
  pjrt::ClientBufferFromHostBufferArgs args = {
      .client = client_,
      .data = tensor.raw_data(),
      .type = type,
      .dims = dims.data(),
      .dim_count = dims.size(),
      .semantics = pjrt::HostBufferSemantics::kImmutableZeroCopy,
      .device = devices_[device]};
  RETURN_IF_ERROR(plugin_->Call(args));
  // Keeps the memory until the plugin does not read it any more.
  plugin_->WhenReady(args.done_with_host_buffer,
                     [tensor](const absl::Status&) {});
  return PjrtBuffer::Wrap(shared_from_this(), args.buffer);
}

absl::StatusOr<std::unique_ptr<PjrtExecutable>> PjrtClient::MakeWithTimeout(
    MakeExecutable make, absl::Duration timeout, absl::string_view what) const {
  const auto self = shared_from_this();
  // Shared with a call of `make` that may outlive this one, whose result is
  // then destroyed.
  struct Made {
    ~Made() {
      if (loaded == nullptr) return;
      pjrt::LoadedExecutableDestroyArgs args = {.executable = loaded};
      client->plugin().Call(args).IgnoreError();
    }
    std::shared_ptr<const PjrtClient> client;
    pjrt::LoadedExecutable* loaded = nullptr;
  };
  const auto made = std::make_shared<Made>();
  made->client = self;
  RETURN_IF_ERROR(RunWithTimeout(
      [made, make = std::move(make)] { return make(&made->loaded); }, timeout,
      what));
  pjrt::LoadedExecutable* const loaded = std::exchange(made->loaded, nullptr);
  auto executable = absl::WrapUnique(new PjrtExecutable(self, loaded));
  pjrt::LoadedExecutableGetExecutableArgs get = {.loaded_executable = loaded};
  RETURN_IF_ERROR(plugin_->Call(get));
  executable->executable_ = get.executable;
  pjrt::ExecutableNumOutputsArgs outputs = {.executable = get.executable};
  RETURN_IF_ERROR(plugin_->Call(outputs));
  executable->output_count_ = static_cast<int>(outputs.output_count);
  return executable;
}

absl::StatusOr<std::unique_ptr<PjrtExecutable>> PjrtClient::Compile(
    absl::string_view stablehlo, const PjrtCompileOptions& options) const {
  return MakeWithTimeout(
      [self = shared_from_this(), code = std::string(stablehlo),
       serialized =
           SerializedOptions(options)](pjrt::LoadedExecutable** loaded) {
        constexpr absl::string_view kFormat = "mlir";
        const pjrt::ProgramSource program = {.struct_size = sizeof(program),
                                             .code = code.data(),
                                             .code_size = code.size(),
                                             .format = kFormat.data(),
                                             .format_size = kFormat.size()};
        pjrt::ClientCompileArgs args = {.client = self->client_,
                                        .program = &program,
                                        .options = serialized.data(),
                                        .options_size = serialized.size()};
        RETURN_IF_ERROR(self->plugin_->Call(args));
        *loaded = args.executable;
        return absl::OkStatus();
      },
      options.timeout, "the compilation of a program");
}

absl::StatusOr<std::unique_ptr<PjrtExecutable>> PjrtClient::Load(
    absl::string_view serialized, absl::Duration timeout) const {
  return MakeWithTimeout(
      [self = shared_from_this(),
       bytes = std::string(serialized)](pjrt::LoadedExecutable** loaded) {
        pjrt::ExecutableDeserializeAndLoadArgs args = {
            .client = self->client_,
            .bytes = bytes.data(),
            .byte_count = bytes.size()};
        RETURN_IF_ERROR(self->plugin_->Call(args));
        *loaded = args.executable;
        return absl::OkStatus();
      },
      timeout, "loading a compiled program");
}

}  // namespace muster
