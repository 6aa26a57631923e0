// SPDX-License-Identifier: Apache-2.0
#include "acc/launch/state_flush.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>
#include <system_error>

#include "acc/base/error.hpp"
#include "acc/base/files.hpp"
#include "acc/formats/checksums.hpp"

namespace acc::launcher {
namespace {

namespace fs = std::filesystem;

constexpr const char* kUnfinished = "was not written before the job had to end";

// Beside the folder that it becomes. The library removes what a killed process has left.
fs::path unfinished_copy(const fs::path& folder) {
  return folder.parent_path() / ("." + folder.filename().string() + ".acc-copy");
}

// What only memory needs: a folder on a disk is as the library itself writes it.
bool is_of_memory(const std::string& name) {
  return name == "snapshot.json" || (name.starts_with("checksums_") && name.ends_with(".json"));
}

// A disk that does not say so has to be written to, which gives the better error.
bool is_there(const fs::path& path) {
  std::error_code error;
  return fs::exists(path, error);
}

// Links the files of a snapshot, so that they stay when the training removes it. Returns false if it has done
// that already.
bool link_files(const fs::path& snapshot, const fs::path& links) {
  std::error_code error;
  fs::remove_all(links, error);
  fs::copy(snapshot, links, fs::copy_options::recursive | fs::copy_options::create_hard_links, error);
  if (!is_there(snapshot)) return false;
  if (error) throw_errno(snapshot, "cannot be read", error.value());
  return true;
}

// Errors name the file by its name in the folder, whatever that is called now.
std::string without_folder(const std::string& text, const fs::path& folder) {
  const std::string prefix = (folder / "").string();
  return text.starts_with(prefix) ? text.substr(prefix.size()) : text;
}

/// Copies a snapshot to the folder that it becomes, whole or not at all.
class FolderCopy {
 public:
  FolderCopy(fs::path snapshot, fs::path disk, const std::function<bool()>& is_interrupted)
      : snapshot_(std::move(snapshot)),
        disk_(std::move(disk)),
        copy_(unfinished_copy(disk_)),
        is_interrupted_(is_interrupted) {}
  ~FolderCopy() {
    std::error_code error;
    fs::remove_all(copy_, error);
  }
  FolderCopy(const FolderCopy&) = delete;
  FolderCopy& operator=(const FolderCopy&) = delete;

  void run() {
    std::error_code error;
    fs::remove_all(copy_, error);
    create(copy_);
    for (const auto& entry : fs::recursive_directory_iterator(snapshot_)) {
      const fs::path name = entry.path().lexically_relative(snapshot_);
      if (entry.is_directory())
        create(copy_ / name);
      else if (!is_of_memory(name.string()))
        copy_file(name);
    }
    publish();
  }

 private:
  void create(const fs::path& folder) const {
    std::error_code error;
    fs::create_directories(folder, error);
    if (error) throw_errno(disk_, "cannot be created", error.value());
  }

  [[noreturn]] void refuse(const fs::path& name) const {
    throw_errno(disk_ / name, "cannot be written", errno);
  }

  void copy_file(const fs::path& name) const {
    constexpr std::size_t kPiece = std::size_t{16} << 20U;
    const MappedFile content(snapshot_ / name);
    const std::string_view text(content.data(), content.size());
    const Descriptor file(::open((copy_ / name).c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
    if (!file) refuse(name);
    for (std::size_t offset = 0; offset < text.size(); offset += kPiece) {
      if (is_interrupted_())
        throw Error({.kind = ErrorKind::system, .what = kUnfinished, .where = disk_.string()});
      if (!write_all(file.get(), text.substr(offset, kPiece))) refuse(name);
      // The disk begins now, so that little is left for fsync(), which cannot be interrupted.
      ::sync_file_range(file.get(), static_cast<off64_t>(offset), kPiece, SYNC_FILE_RANGE_WRITE);
    }
    if (::fsync(file.get()) != 0) refuse(name);
  }

  // Fails where another folder has got the name meanwhile, unless it is empty.
  void publish() const {
    for (const auto& entry : fs::recursive_directory_iterator(copy_))
      if (entry.is_directory()) sync_folder(entry.path());
    sync_folder(copy_);
    if (::rename(copy_.c_str(), disk_.c_str()) != 0) throw_errno(disk_, "cannot be created", errno);
    sync_folder(disk_.parent_path());
  }

  fs::path snapshot_;
  fs::path disk_;
  fs::path copy_;
  const std::function<bool()>& is_interrupted_;
};

// Why a snapshot cannot be used; empty: it is whole.
std::string damage_of(const SavedState& state, const fs::path& links) {
  const std::string damage = damage_in(links);
  return damage.empty() ? "" : state.folder.filename().string() + ": " + without_folder(damage, links);
}

std::vector<StateFolder> folders_of(const std::vector<SavedState>& states) {
  std::vector<StateFolder> folders;
  for (const SavedState& state : states) {
    try {
      folders.push_back(
          {.number = state.number, .disk = without_trailing_slash(read_snapshot_record(state.folder).disk)});
    } catch (const Error&) {  // named when its turn comes
    }
  }
  return folders;
}

/// Flushes the states of a training, of which others may be saved and removed meanwhile.
class Flush {
 public:
  Flush(const fs::path& memory, const SavedStates& states, Workers workers,
        const std::function<bool()>& is_interrupted)
      : links_(memory / ".acc-flush"), states_(states), workers_(workers), is_interrupted_(is_interrupted) {}
  ~Flush() {
    std::error_code error;
    fs::remove_all(links_, error);
  }
  Flush(const Flush&) = delete;
  Flush& operator=(const Flush&) = delete;

  // Absent where the training has removed a state that was to be flushed, or that says where it belongs.
  std::optional<FlushResult> run() const {
    FlushResult result;
    const std::vector<SavedState> all = states_.all();
    const std::vector<SavedState> states = newer_than_disk(all, is_there);
    if (workers_ == Workers::running && !has_own_folder(folders_of(states))) {
      if (states_.all() != all) return {};
      return result;
    }
    for (const SavedState& state : states) {
      if (!link_files(state.folder, links_)) return {};
      const std::string damage = damage_of(state, links_);
      if (damage.empty()) return flush(state, std::move(result));
      result.damaged.push_back(damage);
    }
    if (!states.empty()) result.problem = "all states in memory are damaged";
    return result;
  }

 private:
  FlushResult flush(const SavedState& state, FlushResult result) const {
    // Older libraries noted it as the program wrote it.
    result.folder = without_trailing_slash(read_snapshot_record(links_).disk);
    if (!result.folder.is_absolute()) refuse_file(state.folder, "does not name its folder on a disk");
    try {
      if (is_there(result.folder)) refuse_file(result.folder, "exists already");
      FolderCopy(links_, result.folder, is_interrupted_).run();
      states_.add_on_disk(state.number, result.folder);
    } catch (const std::exception& error) {
      result.problem = error.what();
    }
    return result;
  }

  fs::path links_;
  const SavedStates& states_;
  Workers workers_;
  const std::function<bool()>& is_interrupted_;
};

// What no engine sends: those that end a job signal all its processes, and this one is to go on then.
int interruption() {
  return SIGRTMIN + 1;
}

volatile std::sig_atomic_t interruption_received = 0;

// In the child.
void flush_until_interrupted(const fs::path& memory, Workers workers, int to) {
  sigset_t others = {};
  ::sigfillset(&others);
  ::sigdelset(&others, interruption());
  ::sigprocmask(SIG_SETMASK, &others, nullptr);
  ::signal(interruption(), [](int) { interruption_received = 1; });
  write_all(to, encode(flush_newest_state(memory, workers, [] { return interruption_received != 0; })));
}

}  // namespace

std::string encode(const FlushResult& result) {
  const nlohmann::json fields = {
      {"folder", result.folder.string()}, {"damaged", result.damaged}, {"problem", result.problem}};
  return fields.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

FlushResult decode_flush_result(std::string_view text) {
  const auto fields = nlohmann::json::parse(text);
  return {.folder = fields.at("folder").get<std::string>(),
          .damaged = fields.at("damaged"),
          .problem = fields.at("problem")};
}

FlushResult result_of(const ChildAnswer::Answer& answer, bool interrupted) try {
  return decode_flush_result(answer.text);
} catch (const nlohmann::json::exception&) {
  if (interrupted) return {.problem = std::string("it ") + kUnfinished};
  return {.problem = answer.problem.empty() ? "the process that copied it was killed" : answer.problem};
}

std::vector<SavedState> newer_than_disk(const std::vector<SavedState>& states,
                                        const std::function<bool(const fs::path&)>& exists) {
  std::int64_t newest_on_disk = -1;
  for (const SavedState& state : states)
    if (!state.in_memory && exists(state.folder)) newest_on_disk = std::max(newest_on_disk, state.number);
  std::vector<SavedState> newer;
  std::ranges::copy_if(states, std::back_inserter(newer), [&](const SavedState& state) {
    return state.in_memory && state.number > newest_on_disk;
  });
  return newer;
}

bool has_own_folder(const std::vector<StateFolder>& states) {
  // A number between them is that of a save to the disk, which may not have ended.
  return states.size() > 1 && states[0].number == states[1].number + 1 && states[0].disk != states[1].disk;
}

FlushResult flush_newest_state(const fs::path& memory, Workers workers,
                               const std::function<bool()>& is_interrupted) try {
  constexpr int kTries = 100;
  const std::vector<SavedStates> trainings = states_of_trainings(memory);
  if (trainings.empty()) return {};
  const Flush flush(memory, trainings.back(), workers, is_interrupted);
  for (int tries = 0; tries < kTries; ++tries)
    if (auto result = flush.run()) return *result;
  return {.problem = "the training replaces its states faster than they can be read"};
} catch (const std::exception& error) {
  return {.problem = error.what()};
}

bool StateFlush::begin(Workers workers) {
  // Beyond that a disk counts as one that does not answer.
  constexpr auto kLimit = std::chrono::hours(1);
  if (states_of_trainings(memory_).empty()) return false;
  interrupted_ = false;
  child_.ask([=, this](int to) { flush_until_interrupted(memory_, workers, to); }, kLimit,
             [this](const ChildAnswer::Answer& answer) { done_(result_of(answer, interrupted_)); });
  return true;
}

void StateFlush::interrupt() {
  // Enough to remove what was written.
  constexpr auto kLimit = std::chrono::seconds(2);
  interrupted_ = true;
  child_.interrupt(interruption(), kLimit);
}

}  // namespace acc::launcher
