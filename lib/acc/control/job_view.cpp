// SPDX-License-Identifier: Apache-2.0
#include "acc/control/job_view.hpp"

#include <array>
#include <cctype>
#include <utility>

#include "acc/base/error.hpp"

namespace acc::launcher {
namespace {

using nlohmann::json;

constexpr std::size_t kMostName = 24;

constexpr std::array<std::pair<StreamPlace::Kind, const char*>, 4> kKinds = {
    {{StreamPlace::Kind::passed, "passed"},
     {StreamPlace::Kind::discarded, "discarded"},
     {StreamPlace::Kind::memory, "memory"},
     {StreamPlace::Kind::file, "file"}}};

json to_json(const StreamPlace& place) {
  json out = {{"kept", nullptr}};
  for (const auto& [kind, name] : kKinds) {
    if (kind == place.kind) out["kept"] = name;
  }
  if (!place.file.empty()) out["file"] = place.file.string();
  return out;
}

StreamPlace place_from_json(const json& in) {
  StreamPlace place{.file = in.value("file", "")};
  for (const auto& [kind, name] : kKinds) {
    if (in.at("kept") == name) place.kind = kind;
  }
  return place;
}

std::int64_t unix_milliseconds(std::chrono::system_clock::time_point time) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(time.time_since_epoch()).count();
}

// The script of an interpreter tells more than the interpreter: `python -u train.py`, `python -m pkg.train`.
std::string telling_word(const std::vector<std::string>& command) {
  if (command.empty()) return "job";
  const std::string program = std::filesystem::path(command.front()).filename();
  if (!program.starts_with("python")) return program;
  for (std::size_t i = 1; i < command.size(); ++i) {
    if (!command[i].starts_with('-')) return std::filesystem::path(command[i]).filename();
  }
  return program;
}

[[noreturn]] void fail_unreadable() {
  throw Error({.kind = ErrorKind::system,
               .what = "a job's answer cannot be read",
               .hint = "it may have been started by another version of acc"});
}

RankView rank_from_json(const json& in) {
  return {.rank = in.at("rank"),
          .local_rank = in.at("local_rank"),
          .pid = in.at("pid"),
          .pid_inside = in.value("pid_inside", 0),
          .ended = in.at("ended"),
          .out = place_from_json(in.at("stdout")),
          .err = place_from_json(in.at("stderr"))};
}

}  // namespace

json to_json(const RankView& rank) {
  json out = {{"rank", rank.rank},   {"local_rank", rank.local_rank}, {"pid", rank.pid},
              {"ended", rank.ended}, {"stdout", to_json(rank.out)},   {"stderr", to_json(rank.err)}};
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
          {"started", unix_milliseconds(job.started)},
          {"command", job.command},
          {"folder", job.folder.string()},
          {"ranks", ranks}};
}

JobView job_view_from_json(const json& in) try {
  JobView job{.id = in.at("job"),
              .pid = in.at("pid"),
              .agent = in.at("agent"),
              .run_id = in.at("run_id"),
              .attempt = in.at("attempt"),
              .max_restarts = in.at("max_restarts"),
              .world_size = in.at("world_size"),
              .started = std::chrono::system_clock::time_point(
                  std::chrono::milliseconds(in.at("started").get<std::int64_t>())),
              .command = in.at("command"),
              .folder = in.at("folder").get<std::string>()};
  for (const json& rank : in.at("ranks")) job.ranks.push_back(rank_from_json(rank));
  return job;
} catch (const json::exception&) {
  fail_unreadable();
}

RankView rank_view_from_json(const json& in) try {
  return rank_from_json(in);
} catch (const json::exception&) {
  fail_unreadable();
}

std::string job_id(const std::vector<std::string>& command, pid_t pid) {
  std::string name;
  for (const char letter : std::filesystem::path(telling_word(command)).stem().string()) {
    const bool plain =
        std::isalnum(static_cast<unsigned char>(letter)) != 0 || letter == '_' || letter == '.';
    name += plain ? letter : '-';
  }
  if (name.size() > kMostName) name.resize(kMostName);
  return name + "-" + std::to_string(pid);
}

}  // namespace acc::launcher
