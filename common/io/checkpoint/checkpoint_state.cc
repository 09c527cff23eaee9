#include "common/io/checkpoint/checkpoint_state.h"

#include <cstdint>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "common/core/base/hashes.h"
#include "common/core/base/nesting_depth.h"
#include "common/core/base/status_macros.h"
#include "common/io/storage/object_url.h"
#include "google/protobuf/text_format.h"
#include "proto/checkpoint.pb.h"

namespace muster {
namespace {

// Allows for thousands of checkpoints with long names.
constexpr int64_t kStateBytesMax = 16 << 20;

constexpr absl::string_view kChecksumLine =
    "# crc32c of what follows; remove this line when you edit it: ";

std::string RelativePath(absl::string_view folder, absl::string_view path) {
  const std::string inside = JoinPath(folder, "");
  absl::string_view relative = path;
  if (!inside.empty() && absl::ConsumePrefix(&relative, inside)) {
    return std::string(relative);
  }
  return std::string(path);
}

std::string ResolvePath(absl::string_view folder, absl::string_view path) {
  return path[0] == '/' || IsObjectUrl(path) ? std::string(path)
                                             : JoinPath(folder, path);
}

double ToSeconds(absl::Time time) {
  const int64_t whole = absl::ToUnixSeconds(time);
  return whole + absl::ToDoubleSeconds(time - absl::FromUnixSeconds(whole));
}

absl::Time FromSeconds(double seconds) {
  return absl::UnixEpoch() + absl::Seconds(seconds);
}

// Removes the comment with the checksum. An error if the checksum is wrong.
absl::Status ConsumeChecksum(absl::string_view path, absl::string_view* text) {
  if (!absl::ConsumePrefix(text, kChecksumLine)) return absl::OkStatus();
  const size_t line_end = text->find('\n');
  uint32_t checksum = 0;
  if (line_end == absl::string_view::npos ||
      !absl::SimpleHexAtoi(text->substr(0, line_end), &checksum)) {
    return absl::DataLossError(
        absl::StrCat(path, ": the checksum in its first line is damaged"));
  }
  text->remove_prefix(line_end + 1);
  if (Crc32c(*text) == checksum) return absl::OkStatus();
  return absl::DataLossError(
      absl::StrCat(path,
                   " is damaged: it does not match the checksum in its first "
                   "line. If it was edited, remove that line"));
}

}  // namespace

std::string CheckpointStatePath(absl::string_view folder) {
  return JoinPath(folder, "checkpoint");
}

absl::Status WriteCheckpointState(Disk* disk, absl::string_view folder,
                                  const CheckpointState& state) {
  proto::CheckpointState encoded;
  for (const CheckpointState::Checkpoint& checkpoint : state.checkpoints) {
    encoded.add_all_model_checkpoint_paths(
        RelativePath(folder, checkpoint.prefix));
    encoded.add_all_model_checkpoint_timestamps(ToSeconds(checkpoint.written));
  }
  if (!state.checkpoints.empty()) {
    encoded.set_model_checkpoint_path(
        *encoded.all_model_checkpoint_paths().rbegin());
  }
  encoded.set_last_preserved_timestamp(ToSeconds(state.last_preserved));
  std::string text;
  google::protobuf::TextFormat::PrintToString(encoded, &text);
  return ReplaceFile(
      disk, CheckpointStatePath(folder),
      absl::StrFormat("%s0x%08x\n%s", kChecksumLine, Crc32c(text), text));
}

absl::StatusOr<CheckpointState> ReadCheckpointState(Disk* disk,
                                                    absl::string_view folder) {
  const std::string path = CheckpointStatePath(folder);
  ASSIGN_OR_RETURN(const std::string content,
                   ReadFile(disk, path, kStateBytesMax));
  absl::string_view text = content;
  RETURN_IF_ERROR(ConsumeChecksum(path, &text));
  proto::CheckpointState encoded;
  google::protobuf::TextFormat::Parser parser;
  // A newer TensorFlow may write other fields.
  parser.AllowUnknownField(true);
  parser.SetRecursionLimit(kNestingDepthMax);
  if (!parser.ParseFromString(std::string(text), &encoded)) {
    return absl::DataLossError(
        absl::StrCat(path, " is not a valid checkpoint state"));
  }
  if (encoded.model_checkpoint_path().empty()) {
    return absl::DataLossError(absl::StrCat(path, " lists no checkpoint"));
  }
  CheckpointState state;
  const int timed_count = encoded.all_model_checkpoint_timestamps_size();
  state.last_preserved = FromSeconds(encoded.last_preserved_timestamp());
  for (int i = 0; i < encoded.all_model_checkpoint_paths_size(); ++i) {
    const std::string& listed = encoded.all_model_checkpoint_paths(i);
    if (listed.empty()) continue;
    state.checkpoints.push_back(
        {.prefix = ResolvePath(folder, listed),
         .written =
             i < timed_count
                 ? FromSeconds(encoded.all_model_checkpoint_timestamps(i))
                 : state.last_preserved});
  }
  // Manual edits usually change this field only.
  const std::string prefix =
      ResolvePath(folder, encoded.model_checkpoint_path());
  while (!state.checkpoints.empty() &&
         state.checkpoints.back().prefix != prefix) {
    state.skipped_prefixes.push_back(state.checkpoints.back().prefix);
    state.checkpoints.pop_back();
  }
  if (state.checkpoints.empty()) {
    state.checkpoints.push_back(
        {.prefix = prefix, .written = state.last_preserved});
  }
  return state;
}

}  // namespace muster
