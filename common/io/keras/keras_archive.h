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
  // JSON, with the version of Keras as "keras_version". Not written: files of
  // Muster are those of one version.
  std::string metadata = "{}";
  std::string config;  // JSON: the layers, and what the model is compiled with.
  std::string weights;  // HDF5: the layers' variables, and the optimizer's.
  // Files of layers by their paths below assets/:
  // "layers/string_lookup/vocabulary.txt". Not written: what Muster's layers
  // have is in the config.
  std::map<std::string, std::string> assets;
};

// Returns how many bytes the weights of an archive can have, by what its other
// members say; none if they do not say it.
using KerasWeightsLimit =
    std::function<std::optional<int64_t>(const KerasArchive& others)>;

// The files are not trusted: see Hdf5Reader and ZipReader. The weights are
// decompressed if they are within `limit`. Where it has none, they may be eight
// times as large as the file and 64 MiB: random numbers hardly compress.
//   kNotFound           no such file
//   kInvalidArgument    ReadKerasWeights() only: a whole model
//   kResourceExhausted  the weights, or the other members, are too large
//   kDataLoss           damaged, or not written by Keras 3
//   others              of the disk
absl::StatusOr<KerasArchive> ReadKerasArchive(
    Disk* disk, absl::string_view path,
    const KerasWeightsLimit& limit = nullptr);

// Replaces the file atomically. `time` is the time of saving in the metadata.
//   kResourceExhausted  no memory, or the disk is full; what was there stays
//   others              of the disk
absl::Status WriteKerasArchive(Disk* disk, absl::string_view path,
                               const KerasArchive& archive, absl::Time time);

// Reads a whole file of weights (".weights.h5"), or of Keras 2 (".h5").
//   as ReadKerasArchive()
absl::StatusOr<std::string> ReadKerasWeights(Disk* disk,
                                             absl::string_view path);

// The format that the name of a file implies.
enum class KerasFileKind {
  kNone,     // No file of Keras.
  kArchive,  // "*.keras"
  kWeights,  // "*.weights.h5"
  kLegacy,   // "*.h5" and "*.hdf5" otherwise: Keras 2's, which is only read.
};
KerasFileKind KerasFileKindOf(absl::string_view path);

// As KerasFileKindOf(), but looks into files that are named "*.keras": before
// 2.13, Keras wrote HDF5 under such a name, which is kLegacy.
//   as ReadKerasArchive()
absl::StatusOr<KerasFileKind> FindKerasFileKind(Disk* disk,
                                                absl::string_view path);

}  // namespace muster

#endif  // COMMON_IO_KERAS_KERAS_ARCHIVE_H_
