#ifndef COMMON_IO_KERAS_KERAS_ARCHIVE_H_
#define COMMON_IO_KERAS_KERAS_ARCHIVE_H_

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/io/storage/disk.h"

namespace muster {

// The content of a model file of Keras 3 ("model.keras"): a zip archive of
// metadata.json, config.json, model.weights.h5, and assets of layers.
struct KerasArchive {
  // JSON, with the version of Keras as "keras_version". Not written: Muster
  // always writes the same version.
  std::string metadata = "{}";
  std::string config;   // JSON: the layers and the arguments of compile().
  std::string weights;  // HDF5: the layers' variables, and the optimizer's.
  // Files of layers by their paths below assets/:
  // "layers/string_lookup/vocabulary.txt". Not written: the config contains the
  // values of Muster's layers.
  std::map<std::string, std::string> assets;
};

// Returns the maximum size of the weights of an archive in bytes, computed from
// its other members; none if they do not determine it.
using KerasWeightsLimit =
    std::function<std::optional<int64_t>(const KerasArchive& others)>;

// The files are not trusted: see Hdf5Reader and ZipReader. The weights are
// decompressed only if they are within `limit`. If `limit` returns none, they
// may have eight times the size of the file plus 64 MiB: random numbers hardly
// compress.
//   kNotFound           no such file
//   kInvalidArgument    ReadKerasWeights() only: the file has a whole model
//   kResourceExhausted  the weights, or the other members, are too large
//   kDataLoss           damaged, or not written by Keras 3
//   others              errors of the disk
absl::StatusOr<KerasArchive> ReadKerasArchive(
    Disk* disk, absl::string_view path,
    const KerasWeightsLimit& limit = nullptr);

// Replaces the file atomically. `time` is the time of saving in the metadata.
//   kResourceExhausted  out of memory, or the disk is full; an existing file is
//                       unchanged
//   others              errors of the disk
absl::Status WriteKerasArchive(Disk* disk, absl::string_view path,
                               const KerasArchive& archive, absl::Time time);

// Reads a whole file of weights (".weights.h5"), or of Keras 2 (".h5").
//   as ReadKerasArchive()
absl::StatusOr<std::string> ReadKerasWeights(Disk* disk,
                                             absl::string_view path);

// The format that the name of a file implies.
enum class KerasFileKind {
  kNone,     // Not a file of Keras.
  kArchive,  // "*.keras"
  kWeights,  // "*.weights.h5"
  kLegacy,   // Other "*.h5" and "*.hdf5": Keras 2's, which is only read.
};
KerasFileKind KerasFileKindOf(absl::string_view path);

// As KerasFileKindOf(), but looks into files that are named "*.keras": before
// 2.13, Keras wrote HDF5 under such a name, which is kLegacy.
//   as ReadKerasArchive()
absl::StatusOr<KerasFileKind> FindKerasFileKind(Disk* disk,
                                                absl::string_view path);

}  // namespace muster

#endif  // COMMON_IO_KERAS_KERAS_ARCHIVE_H_
