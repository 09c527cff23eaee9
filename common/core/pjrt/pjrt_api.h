#ifndef COMMON_CORE_PJRT_PJRT_API_H_
#define COMMON_CORE_PJRT_PJRT_API_H_

#include <cstddef>
#include <cstdint>

#include "absl/strings/string_view.h"

// Declares the part of PJRT's C API that Muster calls, so that building and
// running without plugins require no header of theirs. Names and meanings are
// the API's; `PJRT_` is left out. Pointers are owned as the API says.
//
// A plugin is a library with the function `const ApiTable* GetPjrtApi()`. All
// other functions are in the ApiTable, at fixed positions: later versions
// append functions to the table, and fields to the arguments. Each function
// takes one struct of arguments, which has its own size in its first field.
//
// Source: PJRT C API 0.90 (xla/pjrt/c/pjrt_c_api.h).
namespace muster::pjrt {

struct Error;
struct Event;
struct Client;
struct Device;
struct DeviceDescription;
struct Executable;
struct LoadedExecutable;
struct SerializedExecutable;
struct Buffer;

struct ApiVersion {
  size_t struct_size;
  void* extensions;
  int major_version;
  int minor_version;
};

using AnyFunction = void (*)();

// The fixed part of the table. The functions follow, as many as struct_size has
// room for.
struct ApiTable {
  size_t struct_size;
  void* extensions;
  ApiVersion version;
};

// PJRT_Error_Code, whose values are those of absl::StatusCode.
using ErrorCode = int;

// PJRT_Buffer_Type. Numbers that are not listed are of types that tensors do
// not have.
enum class BufferType : int {
  kInvalid = 0,
  kPred = 1,
  kS8 = 2,
  kS16 = 3,
  kS32 = 4,
  kS64 = 5,
  kU8 = 6,
  kU16 = 7,
  kU32 = 8,
  kU64 = 9,
  kF16 = 10,
  kF32 = 11,
  kF64 = 12,
  kBf16 = 13,
};

// PJRT_HostBufferSemantics.
enum class HostBufferSemantics : int {
  // The plugin may read the memory until done_with_host_buffer.
  kImmutableZeroCopy = 2,
};

// PJRT_NamedValue_Type.
enum class OptionType : int { kString = 0, kInt64 = 1, kBool = 4 };

struct ClientOption {
  size_t struct_size;
  void* extensions;
  const char* name;
  size_t name_size;
  OptionType type;
  union {
    const char* string_value;
    int64_t int64_value;
    bool bool_value;
  };
  size_t value_size;  // 1, or the size of the string.
};

struct ProgramSource {
  size_t struct_size;
  void* extensions;
  const char* code;
  size_t code_size;
  const char* format;
  size_t format_size;
};

struct ExecuteOptions {
  size_t struct_size;
  void* extensions;
  void** send_callbacks;
  void** receive_callbacks;
  size_t send_count;
  size_t receive_count;
  int launch_id;
  const int64_t* non_donatable_inputs;
  size_t non_donatable_input_count;
  void* context;
  const char* call_location;
  size_t task_count;
  int* task_ids;
  int64_t* incarnation_ids;
};

// A function: its position in the table, and its name in messages.
struct FunctionId {
  int index;
  absl::string_view name;
};

// The arguments of each function. Fields after `// Out:` are results.

struct ErrorDestroyArgs {
  static constexpr FunctionId kFunction = {0, "PJRT_Error_Destroy"};
  size_t struct_size;
  void* extensions;
  Error* error;
};

struct ErrorMessageArgs {
  static constexpr FunctionId kFunction = {1, "PJRT_Error_Message"};
  size_t struct_size;
  void* extensions;
  const Error* error;
  // Out:
  const char* message;
  size_t message_size;
};

struct ErrorGetCodeArgs {
  static constexpr FunctionId kFunction = {2, "PJRT_Error_GetCode"};
  size_t struct_size;
  void* extensions;
  const Error* error;
  // Out:
  ErrorCode code;
};

struct PluginInitializeArgs {
  static constexpr FunctionId kFunction = {3, "PJRT_Plugin_Initialize"};
  size_t struct_size;
  void* extensions;
};

struct EventDestroyArgs {
  static constexpr FunctionId kFunction = {5, "PJRT_Event_Destroy"};
  size_t struct_size;
  void* extensions;
  Event* event;
};

struct EventOnReadyArgs {
  static constexpr FunctionId kFunction = {9, "PJRT_Event_OnReady"};
  size_t struct_size;
  void* extensions;
  Event* event;
  // The callback owns `error`, which is null if the event has none.
  void (*callback)(Error* error, void* argument);
  void* argument;
};

struct ClientCreateArgs {
  static constexpr FunctionId kFunction = {10, "PJRT_Client_Create"};
  size_t struct_size;
  void* extensions;
  const ClientOption* options;
  size_t option_count;
  void* get_callback;
  void* get_argument;
  void* put_callback;
  void* put_argument;
  // Out:
  Client* client;
  // In:
  void* try_get_callback;
  void* try_get_argument;
};

struct ClientDestroyArgs {
  static constexpr FunctionId kFunction = {11, "PJRT_Client_Destroy"};
  size_t struct_size;
  void* extensions;
  Client* client;
};

struct ClientPlatformNameArgs {
  static constexpr FunctionId kFunction = {12, "PJRT_Client_PlatformName"};
  size_t struct_size;
  void* extensions;
  Client* client;
  // Out:
  const char* name;
  size_t name_size;
};

struct ClientPlatformVersionArgs {
  static constexpr FunctionId kFunction = {14, "PJRT_Client_PlatformVersion"};
  size_t struct_size;
  void* extensions;
  Client* client;
  // Out:
  const char* version;
  size_t version_size;
};

struct ClientAddressableDevicesArgs {
  static constexpr FunctionId kFunction = {16,
                                           "PJRT_Client_AddressableDevices"};
  size_t struct_size;
  void* extensions;
  Client* client;
  // Out:
  Device* const* devices;
  size_t device_count;
};

struct ClientCompileArgs {
  static constexpr FunctionId kFunction = {20, "PJRT_Client_Compile"};
  size_t struct_size;
  void* extensions;
  Client* client;
  const ProgramSource* program;
  const char* options;  // A serialized xla.CompileOptionsProto.
  size_t options_size;
  // Out:
  LoadedExecutable* executable;
};

struct ClientBufferFromHostBufferArgs {
  static constexpr FunctionId kFunction = {22,
                                           "PJRT_Client_BufferFromHostBuffer"};
  size_t struct_size;
  void* extensions;
  Client* client;
  const void* data;
  BufferType type;
  const int64_t* dims;
  size_t dim_count;
  const int64_t* byte_strides;
  size_t byte_stride_count;
  HostBufferSemantics semantics;
  Device* device;
  void* memory;
  void* layout;
  // Out:
  Event* done_with_host_buffer;
  Buffer* buffer;
};

struct DeviceDescriptionToStringArgs {
  static constexpr FunctionId kFunction = {28,
                                           "PJRT_DeviceDescription_ToString"};
  size_t struct_size;
  void* extensions;
  DeviceDescription* description;
  // Out:
  const char* text;
  size_t text_size;
};

struct DeviceGetDescriptionArgs {
  static constexpr FunctionId kFunction = {29, "PJRT_Device_GetDescription"};
  size_t struct_size;
  void* extensions;
  Device* device;
  // Out:
  DeviceDescription* description;
};

struct ExecutableDestroyArgs {
  static constexpr FunctionId kFunction = {40, "PJRT_Executable_Destroy"};
  size_t struct_size;
  void* extensions;
  Executable* executable;
};

struct ExecutableNumOutputsArgs {
  static constexpr FunctionId kFunction = {44, "PJRT_Executable_NumOutputs"};
  size_t struct_size;
  void* extensions;
  Executable* executable;
  // Out:
  size_t output_count;
};

struct ExecutableOptimizedProgramArgs {
  static constexpr FunctionId kFunction = {48,
                                           "PJRT_Executable_OptimizedProgram"};
  size_t struct_size;
  void* extensions;
  Executable* executable;
  // Out, in the caller's memory. The plugin sets `code_size` and `format`, and
  // writes to `code` if it is not null.
  ProgramSource* program;
};

struct ExecutableSerializeArgs {
  static constexpr FunctionId kFunction = {49, "PJRT_Executable_Serialize"};
  size_t struct_size;
  void* extensions;
  const Executable* executable;
  // Out:
  const char* bytes;  // Until `deleter` is called for `serialized`.
  size_t byte_count;
  SerializedExecutable* serialized;
  void (*deleter)(SerializedExecutable* serialized);
};

struct LoadedExecutableDestroyArgs {
  static constexpr FunctionId kFunction = {50, "PJRT_LoadedExecutable_Destroy"};
  size_t struct_size;
  void* extensions;
  LoadedExecutable* executable;
};

struct LoadedExecutableGetExecutableArgs {
  static constexpr FunctionId kFunction = {
      51, "PJRT_LoadedExecutable_GetExecutable"};
  size_t struct_size;
  void* extensions;
  LoadedExecutable* loaded_executable;
  // Out:
  Executable* executable;
};

struct LoadedExecutableExecuteArgs {
  static constexpr FunctionId kFunction = {55, "PJRT_LoadedExecutable_Execute"};
  size_t struct_size;
  void* extensions;
  LoadedExecutable* executable;
  ExecuteOptions* options;
  Buffer* const* const* argument_lists;  // One list for each device.
  size_t device_count;
  size_t argument_count;
  Buffer** const* output_lists;    // Out, in the caller's memory.
  Event** device_complete_events;  // Out; null: none are wanted.
  Device* device;
};

struct ExecutableDeserializeAndLoadArgs {
  static constexpr FunctionId kFunction = {
      56, "PJRT_Executable_DeserializeAndLoad"};
  size_t struct_size;
  void* extensions;
  Client* client;
  const char* bytes;
  size_t byte_count;
  // Out:
  LoadedExecutable* executable;
  // In:
  const char* compile_options;  // Null: those of the serialized executable.
  size_t compile_options_size;
};

struct BufferDestroyArgs {
  static constexpr FunctionId kFunction = {58, "PJRT_Buffer_Destroy"};
  size_t struct_size;
  void* extensions;
  Buffer* buffer;
};

struct BufferElementTypeArgs {
  static constexpr FunctionId kFunction = {59, "PJRT_Buffer_ElementType"};
  size_t struct_size;
  void* extensions;
  Buffer* buffer;
  // Out:
  BufferType type;
};

struct BufferDimensionsArgs {
  static constexpr FunctionId kFunction = {60, "PJRT_Buffer_Dimensions"};
  size_t struct_size;
  void* extensions;
  Buffer* buffer;
  // Out:
  const int64_t* dims;
  size_t dim_count;
};

struct BufferToHostBufferArgs {
  static constexpr FunctionId kFunction = {70, "PJRT_Buffer_ToHostBuffer"};
  size_t struct_size;
  void* extensions;
  Buffer* source;
  void* layout;
  void* destination;
  size_t destination_size;
  // Out:
  Event* event;
};

struct BufferReadyEventArgs {
  static constexpr FunctionId kFunction = {72, "PJRT_Buffer_ReadyEvent"};
  size_t struct_size;
  void* extensions;
  Buffer* buffer;
  // Out:
  Event* event;
};

struct BufferIsOnCpuArgs {
  static constexpr FunctionId kFunction = {71, "PJRT_Buffer_IsOnCpu"};
  size_t struct_size;
  void* extensions;
  Buffer* buffer;
  // Out:
  bool is_on_cpu;
};

struct BufferUnsafePointerArgs {
  static constexpr FunctionId kFunction = {73, "PJRT_Buffer_UnsafePointer"};
  size_t struct_size;
  void* extensions;
  Buffer* buffer;
  // Out:
  uintptr_t address;
};

struct ExecutableGetCompiledMemoryStatsArgs {
  static constexpr FunctionId kFunction = {
      96, "PJRT_Executable_GetCompiledMemoryStats"};
  size_t struct_size;
  void* extensions;
  Executable* executable;
  // Out:
  int64_t code_bytes;
  int64_t argument_bytes;
  int64_t output_bytes;
  int64_t alias_bytes;
  int64_t temporary_bytes;
  int64_t host_code_bytes;
  int64_t host_argument_bytes;
  int64_t host_output_bytes;
  int64_t host_alias_bytes;
  int64_t host_temporary_bytes;
  int64_t peak_bytes;
  int64_t total_bytes;
};

}  // namespace muster::pjrt

#endif  // COMMON_CORE_PJRT_PJRT_API_H_
