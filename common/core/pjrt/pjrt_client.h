#ifndef COMMON_CORE_PJRT_PJRT_CLIENT_H_
#define COMMON_CORE_PJRT_PJRT_CLIENT_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "common/core/pjrt/pjrt_api.h"
#include "common/core/pjrt/plugin.h"
#include "common/core/tensor/shape.h"
#include "common/core/tensor/tensor.h"

// Programs in StableHLO on the devices of a PJRT plugin:
//
//   ASSIGN_OR_RETURN(const auto client, PjrtClient::Create("cpu"));
//   ASSIGN_OR_RETURN(const auto program, client->Compile(stablehlo));
//   ASSIGN_OR_RETURN(const auto x, client->CopyToDevice(tensor));
//   ASSIGN_OR_RETURN(const auto results, program->Execute({x.get()}));
//   ASSIGN_OR_RETURN(const Tensor y, results[0]->ToHost(deadline));
//
// The plugin is a library that another project builds (plugin_path.h). Errors
// of its functions keep the plugin's code and words.
namespace muster {

class PjrtClient;

// An array in the memory of a device. Thread-safe. Keeps the client alive.
class PjrtBuffer {
 public:
  ~PjrtBuffer();
  PjrtBuffer(const PjrtBuffer&) = delete;
  PjrtBuffer& operator=(const PjrtBuffer&) = delete;

  pjrt::BufferType type() const { return type_; }
  const Shape& shape() const { return shape_; }

  // Blocks until the elements have been computed or copied.
  //   kDeadlineExceeded  they were not in time
  //   other codes        what the program or the copy that makes them failed
  //                      with
  absl::Status Await(absl::Time deadline) const;

  // Returns a copy on the host. Unsigned 32-bit and 64-bit numbers become
  // kInt32 and kInt64 of the same bits.
  //   kUnimplemented  tensors do not have the element type
  //   other codes     as Await()
  absl::StatusOr<Tensor> ToHost(absl::Time deadline) const;

  // As ToHost(), but the tensor takes over the memory of `buffer` if the host
  // can read it. A program must not take the memory for its results.
  static absl::StatusOr<Tensor> MoveToHost(std::unique_ptr<PjrtBuffer> buffer,
                                           absl::Time deadline);

 private:
  friend class PjrtClient;
  friend class PjrtExecutable;

  PjrtBuffer(std::shared_ptr<const PjrtClient> client, pjrt::Buffer* buffer)
      : client_(std::move(client)), buffer_(buffer) {}
  // Returns the address of the elements on the host; null if they are not
  // there, or if the plugin does not say.
  void* HostAddress() const;
  static absl::StatusOr<std::unique_ptr<PjrtBuffer>> Wrap(
      std::shared_ptr<const PjrtClient> client, pjrt::Buffer* buffer);

  const std::shared_ptr<const PjrtClient> client_;
  pjrt::Buffer* const buffer_;
  pjrt::BufferType type_ = pjrt::BufferType::kInvalid;
  Shape shape_;
};

// A compiled program. Thread-safe. Keeps the client alive.
class PjrtExecutable {
 public:
  // The memory of one device that an execution takes, in bytes. 0 where the
  // plugin does not say.
  struct MemoryStats {
    int64_t arguments = 0;
    int64_t outputs = 0;
    int64_t aliased = 0;  // Of outputs that are in the memory of arguments.
    int64_t temporary = 0;
    int64_t code = 0;
  };

  ~PjrtExecutable();
  PjrtExecutable(const PjrtExecutable&) = delete;
  PjrtExecutable& operator=(const PjrtExecutable&) = delete;

  int output_count() const { return output_count_; }

  // Enqueues an execution on one device, and returns its results. They can be
  // used at once: what reads them waits. A failure of the computation is the
  // error of PjrtBuffer::ToHost() of the results. Arguments whose memory the
  // program takes for results (`tf.aliasing_output`, `jax.buffer_donor`)
  // cannot be used afterwards.
  //   kInvalidArgument  the arguments are not those of the program
  //   other codes       of the plugin
  absl::StatusOr<std::vector<std::unique_ptr<PjrtBuffer>>> Execute(
      absl::Span<const PjrtBuffer* const> arguments) const;

  // As Execute(), on all devices of a program for several: the arguments of
  // each device, of which there is at least one, and the results of each.
  absl::StatusOr<std::vector<std::vector<std::unique_ptr<PjrtBuffer>>>>
  ExecuteOnAll(
      absl::Span<const std::vector<const PjrtBuffer*>> arguments) const;

  //   kUnimplemented  the plugin does not know
  absl::StatusOr<MemoryStats> Memory() const;

  // Returns the compiled program for PjrtClient::Load(). The bytes contain code
  // for the processor or device of this machine, and depend on the version of
  // the plugin.
  //   kUnimplemented  the plugin cannot do this
  absl::StatusOr<std::string> Serialize() const;

  // Returns the names of the functions of the plugin that the compiled program
  // calls (the targets of its custom calls), sorted. Only for results of
  // PjrtClient::Compile().
  //   kUnimplemented  the plugin does not show the compiled program, or shows
  //                   it in a format that is not HLO
  //   kDataLoss       what the plugin shows is no program
  absl::StatusOr<std::vector<std::string>> CustomCalls() const;

 private:
  friend class PjrtClient;

  PjrtExecutable(std::shared_ptr<const PjrtClient> client,
                 pjrt::LoadedExecutable* loaded)
      : client_(std::move(client)), loaded_(loaded) {}

  const std::shared_ptr<const PjrtClient> client_;
  pjrt::LoadedExecutable* const loaded_;
  pjrt::Executable* executable_ = nullptr;
  int output_count_ = 0;
};

struct PjrtClientOptions {
  // How long the plugin may take to start, and to create the client.
  absl::Duration timeout = absl::Minutes(2);
  // Threads of a client on CPUs; 0: the plugin chooses. The plugin reads the
  // environment variable NPROC, which this option sets: create clients before
  // other threads read the environment.
  int thread_count = 0;
  // Options of the plugin, such as {"cpu_device_count", 4}.
  std::vector<std::pair<std::string, std::variant<int64_t, bool, std::string>>>
      options = {};
};

struct PjrtCompileOptions {
  int replica_count = 1;
  // Devices that share one replica of the program, as its shardings say.
  int partition_count = 1;
  // How long the compilation may take. A compilation that takes longer goes on
  // in a thread of the process.
  absl::Duration timeout = absl::Minutes(10);
};

// A client of a plugin: its devices, and what is in their memory. Thread-safe.
class PjrtClient : public std::enable_shared_from_this<PjrtClient> {
 public:
  // `plugin` is a name or a path, as for FindPjrtPlugin().
  //   kNotFound, kInvalidArgument  as FindPjrtPlugin()
  //   kDeadlineExceeded            the plugin or the client did not start in
  //                                time
  //   other codes                  as PjrtPlugin::Load(); or the plugin refused
  //                                to create a client
  static absl::StatusOr<std::shared_ptr<PjrtClient>> Create(
      absl::string_view plugin, const PjrtClientOptions& options = {});

  ~PjrtClient();
  PjrtClient(const PjrtClient&) = delete;
  PjrtClient& operator=(const PjrtClient&) = delete;

  const PjrtPlugin& plugin() const { return *plugin_; }
  const std::string& platform_name() const { return platform_name_; }  // "cpu"
  const std::string& platform_version() const { return platform_version_; }
  int device_count() const { return static_cast<int>(devices_.size()); }

  // Returns what the plugin calls the device.
  absl::StatusOr<std::string> DeviceName(int device) const;

  // Copies `tensor`, which is on the host, to the memory of the device. The
  // copy may read the memory of the tensor at any time until the buffer is
  // destroyed, so the elements must not change until then. `type` is the
  // element type, of the size of the tensor's; kInvalid means that of the
  // tensor's dtype.
  //   kInvalidArgument  the tensor has strings, or `type` another size
  absl::StatusOr<std::unique_ptr<PjrtBuffer>> CopyToDevice(
      const Tensor& tensor, int device = 0,
      pjrt::BufferType type = pjrt::BufferType::kInvalid) const;

  // Compiles a StableHLO module: text of MLIR, bytecode, or a portable
  // artifact.
  //   kDeadlineExceeded  the compilation took too long
  //   other codes        the plugin refused the program; its words name the op
  absl::StatusOr<std::unique_ptr<PjrtExecutable>> Compile(
      absl::string_view stablehlo,
      const PjrtCompileOptions& options = {}) const;

  // Loads what PjrtExecutable::Serialize() returned for the same plugin and
  // kind of device. The bytes are trusted: the code in them is run.
  //   kDeadlineExceeded  loading took longer than `timeout`
  //   other codes        the plugin refused the bytes
  absl::StatusOr<std::unique_ptr<PjrtExecutable>> Load(
      absl::string_view serialized,
      absl::Duration timeout = absl::Minutes(10)) const;

 private:
  friend class PjrtBuffer;
  friend class PjrtExecutable;

  PjrtClient(const PjrtPlugin* plugin, pjrt::Client* client)
      : plugin_(plugin), client_(client) {}
  absl::Status ReadProperties();
  // Runs `make`, which sets the program that is returned. `what` is being done,
  // for errors.
  using MakeExecutable =
      std::function<absl::Status(pjrt::LoadedExecutable** loaded)>;
  absl::StatusOr<std::unique_ptr<PjrtExecutable>> MakeWithTimeout(
      MakeExecutable make, absl::Duration timeout,
      absl::string_view what) const;

  const PjrtPlugin* const plugin_;
  pjrt::Client* const client_;
  std::string platform_name_;
  std::string platform_version_;
  std::vector<pjrt::Device*> devices_;
};

}  // namespace muster

#endif  // COMMON_CORE_PJRT_PJRT_CLIENT_H_
