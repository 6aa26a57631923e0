// SPDX-License-Identifier: Apache-2.0
#include "acc/control/job_view.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>

#include "acc/base/error.hpp"
#include "acc/base/text.hpp"
#include "acc/control/json_fields.hpp"

namespace acc::launcher {
namespace {

using nlohmann::json;

constexpr std::size_t kMaxName = 24;

constexpr std::array<std::pair<StreamDestination::Kind, const char*>, 4> kKinds = {
    {{StreamDestination::Kind::passed, "passed"},
     {StreamDestination::Kind::discarded, "discarded"},
     {StreamDestination::Kind::memory, "memory"},
     {StreamDestination::Kind::file, "file"}}};

json stream_to_json(const StreamDestination& destination) {
  json out = {{"kept", nullptr}};
  for (const auto& [kind, name] : kKinds) {
    if (kind == destination.kind) out["kept"] = name;
  }
  const std::string& file = destination.file.native();
  if (!file.empty()) out["file"] = file;
  // In JSON a name that is not UTF-8 is another name.
  const auto is_beyond_ascii = [](char c) { return static_cast<unsigned char>(c) >= 0x80; };
  if (std::ranges::any_of(file, is_beyond_ascii)) out["file_bytes"] = to_characters(file);
  return out;
}

StreamDestination destination_from_json(const json& in) {
  StreamDestination destination{.file = in.contains("file_bytes")
                                            ? to_bytes(in.at("file_bytes").get<std::string>())
                                            : in.value("file", "")};
  for (const auto& [kind, name] : kKinds) {
    if (in.at("kept") == name) destination.kind = kind;
  }
  return destination;
}

std::int64_t unix_milliseconds(std::chrono::system_clock::time_point time) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(time.time_since_epoch()).count();
}

std::chrono::system_clock::time_point time_from_json(const json& in) {
  // Beyond it the clock's own type overflows.
  constexpr std::int64_t kLatest = 9'000'000'000'000;
  const std::int64_t time = WholeNumber(in);
  return std::chrono::system_clock::time_point(
      std::chrono::milliseconds(std::clamp<std::int64_t>(time, 0, kLatest)));
}

json import_to_json(const std::optional<ImportView>& importing) {
  if (!importing) return nullptr;
  json out = {{"pid", importing->pid},
              {"module", importing->module},
              {"started", unix_milliseconds(importing->started)}};
  if (importing->pid_inside != 0) out["pid_inside"] = importing->pid_inside;
  return out;
}

std::optional<ImportView> import_from_json(const json& in) {
  if (in.is_null()) return std::nullopt;
  return ImportView{.pid = WholeNumber(in.at("pid")),
                    .pid_inside = whole_number_in(in, "pid_inside", 0),
                    .module = in.at("module"),
                    .started = time_from_json(in.at("started"))};
}

// Names the script rather than its interpreter: `python -u train.py`, `python -m pkg.train`.
std::string naming_word(const std::vector<std::string>& command) {
  if (command.empty()) return "job";
  std::string program = std::filesystem::path(command.front()).filename();
  if (!program.starts_with("python")) return program;
  for (std::size_t i = 1; i < command.size(); ++i) {
    if (!command[i].starts_with('-')) return std::filesystem::path(command[i]).filename();
  }
  return program;
}

[[noreturn]] void fail_unreadable() {
  throw Error({.kind = ErrorKind::system,
               .what = "the reply of a job cannot be parsed",
               .hint = "it may have been started by another version of acc"});
}

RankView rank_from_json(const json& in) {
  return {.rank = WholeNumber(in.at("rank")),
          .local_rank = WholeNumber(in.at("local_rank")),
          .pid = WholeNumber(in.at("pid")),
          .pid_inside = whole_number_in(in, "pid_inside", 0),
          .ended = in.at("ended"),
          .out = destination_from_json(in.at("stdout")),
          .err = destination_from_json(in.at("stderr")),
          .progress = progress_from_json(in.value("progress", json()))};
}

}  // namespace

std::string to_string(const ImportView& importing) {
  return importing.module.empty() ? "starting Python" : "importing " + importing.module;
}

json to_json(const RankView& rank) {
  json out = {{"rank", rank.rank},
              {"local_rank", rank.local_rank},
              {"pid", rank.pid},
              {"ended", rank.ended},
              {"stdout", stream_to_json(rank.out)},
              {"stderr", stream_to_json(rank.err)},
              {"progress", to_json(rank.progress)}};
  if (rank.pid_inside != 0) out["pid_inside"] = rank.pid_inside;
  return out;
}

json to_json(const JobView& job) {
  json ranks = json::array();
  for (const RankView& rank : job.ranks) ranks.push_back(to_json(rank));
  return {{"schema", 1},
          {"job", job.id},
          {"pid", job.pid},
          {"agent", job.agent},
          {"run_id", job.run_id},
          {"attempt", job.attempt},
          {"max_restarts", job.max_restarts},
          {"world_size", job.world_size},
          {"workers", job.workers},
          {"started", unix_milliseconds(job.started)},
          {"command", job.command},
          {"folder", job.folder.string()},
          {"rendezvous", job.rendezvous},
          {"stops_alone", job.stops_alone},
          {"hosts", job.hosts},
          {"importing", import_to_json(job.importing)},
          {"ranks", ranks}};
}

JobView job_view_from_json(const json& in) try {
  JobView job{.id = in.at("job"),
              .pid = WholeNumber(in.at("pid")),
              .agent = WholeNumber(in.at("agent")),
              .run_id = in.at("run_id"),
              .attempt = WholeNumber(in.at("attempt")),
              .max_restarts = WholeNumber(in.at("max_restarts")),
              .world_size = WholeNumber(in.at("world_size")),
              .workers = whole_number_in(in, "workers", 0),
              .started = time_from_json(in.at("started")),
              .command = in.at("command"),
              .folder = in.at("folder").get<std::string>(),
              .rendezvous = in.value("rendezvous", ""),
              .hosts = whole_number_in(in, "hosts", 0),
              .importing = import_from_json(in.value("importing", json()))};
  for (const json& rank : in.at("ranks")) job.ranks.push_back(rank_from_json(rank));
  const bool is_older = !job.rendezvous.empty() && !in.contains("stops_alone");
  job.stops_alone = is_older ? "this node runs an older acc" : in.value("stops_alone", "");
  return job;
} catch (const json::exception&) {
  fail_unreadable();
}

RankView rank_view_from_json(const json& in) try {
  return rank_from_json(in);
} catch (const json::exception&) {
  fail_unreadable();
}

std::string stop_text(const JobView& job, std::optional<int> exit_code) {
  const std::string code = exit_code ? fmt::format(" with exit code {}", *exit_code) : "";
  if (job.rendezvous.empty()) return fmt::format("{} has ended{}", job.id, code);
  if (job.stops_alone.empty())
    return fmt::format("{} has ended here{}, and ends on its other nodes", job.id, code);
  return fmt::format("{} has ended here{}, and may go on on other nodes, since {}: acc stop ends it on each",
                     job.id, code, job.stops_alone);
}

std::string job_id(const std::vector<std::string>& command, pid_t pid) {
  std::string name;
  for (const char letter : std::filesystem::path(naming_word(command)).stem().string()) {
    const bool plain =
        std::isalnum(static_cast<unsigned char>(letter)) != 0 || letter == '_' || letter == '.';
    // Of the bytes of a letter of UTF-8, the first stands for it.
    if ((static_cast<unsigned char>(letter) & 0xC0U) != 0x80U) name += plain ? letter : '-';
  }
  // A name that begins with a dot would be hidden, and one of dashes alone says nothing.
  name.erase(0, name.find_first_not_of(".-"));
  if (name.empty()) name = "job";
  if (name.size() > kMaxName) name.resize(kMaxName);
  return name + "-" + std::to_string(pid);
}

namespace {

// The unit in which old output is dropped, and the longest message to a reader.
constexpr std::size_t kMaxPiece = std::size_t{4} << 10U;

}  // namespace

void OutputRing::append(StreamName stream, std::string_view bytes) {
  if (bytes.size() > kKept) {
    end_ += bytes.size() - kKept;
    bytes.remove_prefix(bytes.size() - kKept);
    pieces_.clear();
  }
  while (!bytes.empty()) {
    if (pieces_.empty() || pieces_.back().stream != stream || pieces_.back().bytes.size() >= kMaxPiece)
      pieces_.push_back({stream, end_, {}});
    std::string& last = pieces_.back().bytes;
    const std::size_t size = std::min(bytes.size(), kMaxPiece - last.size());
    last += bytes.substr(0, size);
    end_ += size;
    bytes.remove_prefix(size);
  }
  while (end_ - begin() > kKept + kMaxPiece) pieces_.pop_front();
}

OutputRing::Piece OutputRing::read(std::uint64_t position) const {
  for (const Piece& piece : pieces_) {
    if (piece.begin + piece.bytes.size() <= position) continue;
    const std::size_t skipped = position > piece.begin ? position - piece.begin : 0;
    return {piece.stream, piece.begin + skipped, piece.bytes.substr(skipped)};
  }
  return {.begin = end_};
}

}  // namespace acc::launcher
