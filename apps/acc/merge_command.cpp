// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <filesystem>
#include <map>
#include <memory>
#include <regex>
#include <set>
#include <string>

#include "acc/base/blocked_signals.hpp"
#include "acc/base/error.hpp"
#include "acc/base/files.hpp"
#include "acc/base/replacement.hpp"
#include "acc/base/text.hpp"
#include "acc/plan/usage_error.hpp"
#include "acc/weights/dcp_checkpoint.hpp"
#include "acc/weights/merge.hpp"
#include "command_parsing.hpp"
#include "commands.hpp"

namespace acc::launcher {
namespace {

namespace fs = std::filesystem;

struct MergeOptions {
  std::string checkpoint = {};
  std::string output = {};
  std::string max_shard_size = {};
  bool unsafe_serialization = false;
  bool remove_checkpoint_dir = false;
};

// The kind of files that the folder has instead of safetensors files.
[[noreturn]] void refuse_folder(const fs::path& folder) {
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.is_directory() && is_dcp_checkpoint(entry.path()))
      fail(folder.string(),
           "has no safetensors files, but a checkpoint of torch.distributed in " +
               entry.path().filename().string(),
           "give that folder");
  }
  fail(folder.string(), "has no safetensors files", "give the folder of the shards");
}

volatile std::sig_atomic_t ending_signal = 0;

// The signals that end the process. While an object exists, one is only remembered, so that what was written
// so far is removed; the same one again ends the process at once. What the caller ignores stays ignored.
class EndingSignals {
 public:
  struct Received {
    int signal = 0;
  };

  EndingSignals() {
    struct sigaction action = {};
    action.sa_handler = [](int signal) { ending_signal = signal; };
    action.sa_flags = SA_RESTART | static_cast<int>(SA_RESETHAND);
    std::set<int> signals = {SIGINT, SIGTERM, SIGHUP};
    for (const int signal : ignored_of(signals)) signals.erase(signal);
    for (const int signal : signals) ::sigaction(signal, &action, &before_[signal]);
  }
  ~EndingSignals() {
    for (const auto& [signal, action] : before_) ::sigaction(signal, &action, nullptr);
  }
  EndingSignals(const EndingSignals&) = delete;
  EndingSignals& operator=(const EndingSignals&) = delete;

  // Throws Received.
  static void check() {
    if (ending_signal != 0) throw Received{ending_signal};
  }

 private:
  std::map<int, struct sigaction> before_ = {};
};

// Ends as if the signal had not been caught, which is what a shell looks at. The first process of a container
// is not ended so.
int end_by(const EndingSignals::Received& received) {
  ::raise(received.signal);
  return 128 + received.signal;
}

// Memory holds one tensor at a time.
std::vector<MergedFile> merge_dcp(const fs::path& folder, const fs::path& output, std::uint64_t max_bytes,
                                  const ReplacementCheck& check) {
  const std::vector<DcpWeight> weights = read_dcp_checkpoint(folder);
  std::vector<MergeItem> items;
  for (std::size_t i = 0; i < weights.size(); ++i) items.push_back({weights[i].info, {i, 0}});
  const std::vector<MergedFile> files = lay_out(std::move(items), max_bytes);
  const EndingSignals signals;
  write_files(
      files, output,
      [&](const MergedFile::Source& source, const TensorInfo&, const WriteBytes& write) {
        write(read_dcp_weight(folder, weights[source.file]));
      },
      check, EndingSignals::check);
  EndingSignals::check();
  return files;
}

std::vector<MergedFile> merge_shards(const fs::path& folder, const fs::path& output, std::uint64_t max_bytes,
                                     const ReplacementCheck& check) {
  const std::vector<CheckpointFile> from = read_checkpoint(folder);
  if (from.empty()) refuse_folder(folder);
  std::vector<MergedFile> files = plan_merge(from, max_bytes);
  const EndingSignals signals;
  write_merged(from, files, output, check, EndingSignals::check);
  EndingSignals::check();
  return files;
}

bool is_inside(const fs::path& path, const fs::path& folder) {
  const auto canonical = [](const fs::path& of) { return fs::weakly_canonical(absolute_path(of)); };
  const fs::path relative = canonical(path).lexically_relative(canonical(folder));
  return !relative.empty() && *relative.begin() != "..";
}

// The small files of a model beside its weights.
bool describes_model(const std::string& name) {
  static const std::regex names(
      R"((config|generation_config|(pre)?processor_config|special_tokens_map|added_tokens)\.json)"
      R"(|tokenizer.*\.(json|model|txt)|(spiece|sentencepiece.*)\.model|vocab.*\.(json|txt)|merges\.txt)"
      R"(|chat_template.*\.(json|jinja)|README\.md|LICENSE(\.md|\.txt)?|\.gitattributes)");
  return std::regex_match(name, names);
}

// The files of weights, and the one that says where each tensor is.
std::set<fs::path> files_of_merge(const fs::path& folder) {
  const bool is_dcp = is_dcp_checkpoint(folder);
  std::set<fs::path> files;
  if (is_dcp) {
    for (const DcpWeight& weight : read_dcp_checkpoint(folder))
      for (const DcpChunk& chunk : weight.tensor.chunks) files.insert(folder / chunk.storage.file);
  } else {
    for (const CheckpointFile& file : read_checkpoint(folder)) files.insert(file.path);
  }
  for (const auto& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    // A process without a part of the model writes an empty .distcp file, which .metadata does not name.
    const bool is_empty_part = name.ends_with(".distcp") && entry.is_regular_file() && entry.file_size() == 0;
    const bool belongs =
        is_dcp ? name == kDcpMetadataFile || is_empty_part : name.ends_with(".safetensors.index.json");
    if (belongs) files.insert(entry.path());
  }
  return files;
}

// What the merge does not keep must not be removed.
void refuse_removal(const fs::path& folder, const fs::path& output) {
  if (is_inside(output, folder))
    fail(output.string(), "is in the folder that --remove_checkpoint_dir removes", "choose another folder");
  if (fs::is_symlink(folder.has_filename() ? folder : folder.parent_path()))
    fail(folder.string(), "is a symbolic link, which --remove_checkpoint_dir does not follow",
         "give the folder itself: " + fs::canonical(folder).string());
  const std::set<fs::path> merged = files_of_merge(folder);
  std::set<fs::path> others;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.is_directory() && !entry.is_symlink()) continue;  // its entries count
    const bool is_at_top = entry.path() == folder / entry.path().filename();
    const bool is_description =
        is_at_top && entry.is_regular_file() && describes_model(entry.path().filename().string());
    if (!is_description && !merged.contains(entry.path())) others.insert(entry.path());
  }
  if (!others.empty())
    fail(others.begin()->string(), "is not merged, but --remove_checkpoint_dir would remove it",
         "move it away, or leave out --remove_checkpoint_dir");
}

int merge(const MergeOptions& options) try {
  if (options.unsafe_serialization)
    fail("--unsafe_serialization", "acc does not write Python pickles",
         "leave it out: safetensors files are loaded everywhere");
  const fs::path folder = options.checkpoint;
  if (!fs::is_directory(folder)) fail(folder.string(), "is not a folder", "give the folder of the shards");
  if (options.remove_checkpoint_dir) refuse_removal(folder, options.output);
  const std::uint64_t max_bytes = options.max_shard_size.empty()
                                      ? UINT64_MAX
                                      : parse_byte_size(options.max_shard_size, "--max_shard_size");
  if (fs::exists(options.output) && fs::equivalent(options.output, folder))
    fail(options.output, "is the folder of the shards itself", "choose another folder");
  const auto files = read_unreplaced(paths_of_weights(folder), [&](const ReplacementCheck& check) {
    return is_dcp_checkpoint(folder) ? merge_dcp(folder, options.output, max_bytes, check)
                                     : merge_shards(folder, options.output, max_bytes, check);
  });
  if (options.remove_checkpoint_dir) fs::remove_all(fs::canonical(folder));  // "." itself cannot be removed
  for (const MergedFile& file : files) fmt::print("{}\n", (fs::path(options.output) / file.name).string());
  return 0;
} catch (const EndingSignals::Received& received) {
  return end_by(received);
}

}  // namespace

void add_merge_command(CLI::App& app, int& code) {
  const auto options = std::make_shared<MergeOptions>();
  CLI::App* command =
      app.add_subcommand("merge-weights", "Merge a sharded checkpoint into one safetensors file");
  CLI::Option* from =
      command->add_option("checkpoint_directory", options->checkpoint, "Folder of the shards")->required();
  CLI::Option* to = command->add_option("output_path", options->output, "Folder for the result")->required();
  for (CLI::Option* folder : {from, to}) refuse_empty(folder, "name a folder");
  command->add_option("--max_shard_size,--max-shard-size", options->max_shard_size,
                      "Write several files of at most this size, as in 5GB");
  command->add_flag("--remove_checkpoint_dir,--remove-checkpoint-dir", options->remove_checkpoint_dir,
                    "Remove the folder of the shards after the merge; refused if it has other data");
  command->add_flag("--unsafe_serialization,--unsafe-serialization", options->unsafe_serialization,
                    "Refused: acc does not write Python pickles");
  command->callback([options, &code] { code = merge(*options); });
}

}  // namespace acc::launcher
