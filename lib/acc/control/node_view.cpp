// SPDX-License-Identifier: Apache-2.0
#include "acc/control/node_view.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "acc/base/error.hpp"
#include "acc/base/json_nesting.hpp"
#include "acc/base/printable.hpp"
#include "acc/base/text.hpp"
#include "acc/control/job_table.hpp"
#include "acc/control/json_fields.hpp"

namespace acc::launcher {
namespace {

using nlohmann::json;
using std::chrono::milliseconds;

// Below what a client reads of an answer, with the quotes of the JSON in it.
constexpr std::size_t kMaxRanksBytes = std::size_t{3} << 20U;
constexpr auto kSilentAfter = std::chrono::seconds(10);
constexpr double kMaxAge = 1e9;

template <typename Type>
json or_null(const std::optional<Type>& value) {
  return value ? json(*value) : json();
}

template <typename Type>
Type value_of(const json& in) {
  if constexpr (std::integral<Type>) {
    return WholeNumber(in);
  } else {
    return in.get<Type>();
  }
}

template <typename Type>
std::optional<Type> value_or_none(const json& in, const char* name) {
  const auto field = in.find(name);
  return field == in.end() || field->is_null() ? std::nullopt : std::optional(value_of<Type>(*field));
}

json seconds_of(const std::optional<milliseconds>& time) {
  return time ? json(std::chrono::duration<double>(*time).count()) : json();
}

json gpus_to_json(const std::vector<RankGpu>& gpus) {
  json out = json::array();
  for (const RankGpu& gpu : gpus) {
    out.push_back({{"index", gpu.index},
                   {"memory_bytes", gpu.memory_bytes},
                   {"use_percent", or_null(gpu.use)},
                   {"watts", or_null(gpu.watts)}});
  }
  return out;
}

std::vector<RankGpu> gpus_from_json(const json& in) {
  std::vector<RankGpu> gpus;
  for (const json& gpu : in) {
    gpus.push_back({.index = WholeNumber(gpu.at("index")),
                    .memory_bytes = WholeNumber(gpu.at("memory_bytes")),
                    .use = value_or_none<int>(gpu, "use_percent"),
                    .watts = value_or_none<double>(gpu, "watts")});
  }
  return gpus;
}

RankUsage usage_from_json(const json& in) {
  return {.state = printable(in.at("state").get<std::string>()),
          .uptime = milliseconds(value_of<std::int64_t>(in.at("uptime_ms"))),
          .cpu_percent = value_or_none<double>(in, "cpu_percent"),
          .memory_bytes = WholeNumber(in.at("memory_bytes")),
          .processes = WholeNumber(in.at("processes")),
          .threads = WholeNumber(in.at("threads")),
          .gpus = gpus_from_json(in.at("gpus"))};
}

// A hostile node must move no cursor.
RankView printable_view(RankView rank) {
  rank.ended = printable(rank.ended);
  if (!rank.progress) return rank;
  for (std::string* text : {&rank.progress->section, &rank.progress->collective, &rank.progress->slow_in})
    *text = printable(*text);
  return rank;
}

bool may_have_rank(const NodeView& node, int rank) {
  if (node.first_rank < 0) return rank >= 0;
  return rank >= node.first_rank && rank - node.first_rank < node.workers;
}

void read_ranks(NodeView& node, const std::string& text) {
  if (is_deeply_nested(text)) throw Error({.what = "it is nested too deeply"});
  const json ranks = json::parse(text);
  std::set<int> numbers;
  for (const json& rank : ranks) {
    node.ranks.push_back(printable_view(rank_view_from_json(rank)));
    node.usage.push_back(usage_from_json(rank));
    const int number = node.ranks.back().rank;
    if (!may_have_rank(node, number) || !numbers.insert(number).second)
      throw Error({.what = "the rank is not the node's"});
  }
  if (ranks.size() > static_cast<std::size_t>(std::max(node.workers, 0))) throw Error({.what = "too many"});
}

std::string problem_of(const json& in, const NodeView& node) {
  if (const std::string problem = in.at("problem"); !problem.empty()) return printable(problem);
  if (!node.age) return "it does not answer";
  return in.at("is_left_out") ? "the answer would be too long" : "";
}

NodeView node_from_json(const json& in) {
  NodeView node{.node_rank = WholeNumber(in.at("node_rank")),
                .host = printable(in.at("host").get<std::string>()),
                .workers = WholeNumber(in.at("workers")),
                .first_rank = whole_number_in(in, "first_rank", -1)};
  if (const auto age = value_or_none<double>(in, "age_seconds"))
    node.age =
        std::chrono::round<milliseconds>(std::chrono::duration<double>(std::clamp(*age, 0.0, kMaxAge)));
  node.problem = problem_of(in, node);
  if (!node.problem.empty()) return node;
  try {
    read_ranks(node, in.at("ranks"));
  } catch (const std::exception&) {
    node.ranks.clear();
    node.usage.clear();
    node.problem = "its answer cannot be read";
  }
  return node;
}

}  // namespace

json to_json(const std::vector<RankView>& ranks, const std::vector<RankUsage>& usage) {
  json out = json::array();
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    const RankUsage& usage_of_rank = usage.at(i);
    json& rank = out.emplace_back(to_json(ranks[i]));
    rank["state"] = usage_of_rank.state;
    rank["uptime_ms"] = usage_of_rank.uptime.count();
    rank["cpu_percent"] = or_null(usage_of_rank.cpu_percent);
    rank["memory_bytes"] = usage_of_rank.memory_bytes;
    rank["processes"] = usage_of_rank.processes;
    rank["threads"] = usage_of_rank.threads;
    rank["gpus"] = gpus_to_json(usage_of_rank.gpus);
  }
  return out;
}

json to_json(const NodeReports& reports) {
  json nodes = json::array();
  std::size_t bytes = 0;
  for (const NodeReport& node : reports.nodes) {
    bytes += node.ranks.size();
    const bool is_left_out = bytes > kMaxRanksBytes;
    nodes.push_back({{"node_rank", node.node_rank},
                     {"host", node.host},
                     {"workers", node.workers},
                     {"first_rank", node.first_rank},
                     {"problem", node.problem},
                     {"age_seconds", seconds_of(node.age)},
                     {"is_left_out", is_left_out},
                     {"ranks", is_left_out ? std::string() : node.ranks}});
  }
  return {{"host", reports.host},
          {"node_rank", reports.node_rank},
          {"reason", reports.reason},
          {"nodes", std::move(nodes)},
          {"world_size", reports.world_size},
          {"attempt", reports.attempt},
          {"max_restarts", reports.max_restarts}};
}

OtherNodes other_nodes_from_json(const json& reports) try {
  OtherNodes other_nodes{.host = printable(reports.at("host").get<std::string>()),
                         .node_rank = WholeNumber(reports.at("node_rank")),
                         .reason = printable(reports.at("reason").get<std::string>()),
                         .world_size = whole_number_in(reports, "world_size", 0),
                         .attempt = whole_number_in(reports, "attempt", 0),
                         .max_restarts = whole_number_in(reports, "max_restarts", 0)};
  for (const json& node : reports.at("nodes")) other_nodes.nodes.push_back(node_from_json(node));
  return other_nodes;
} catch (const json::exception&) {
  throw Error({.kind = ErrorKind::system, .what = "what a job says of its other nodes cannot be parsed"});
}

json to_json(const NodeView& node) {
  return {{"node_rank", node.node_rank},
          {"host", node.host},
          {"workers", node.workers},
          {"age_seconds", seconds_of(node.age)},
          {"problem", node.problem.empty() ? json() : json(node.problem)},
          {"ranks", to_json(node.ranks, node.usage)}};
}

std::string shown_state(const NodeView& node, const RankUsage& usage) {
  const bool is_silent = node.age && *node.age >= kSilentAfter && usage.processes > 0;
  return is_silent ? "silent " + short_duration(*node.age) : usage.state;
}

namespace {

std::string ranks_text(int count) {
  return pluralize(static_cast<std::uint64_t>(count), "rank");
}

// Ranks that neither this node has started nor another one has.
int unknown_ranks(const JobView& job, const OtherNodes& other_nodes) {
  std::int64_t unknown = job.world_size - static_cast<std::int64_t>(job.ranks.size());
  for (const NodeView& node : other_nodes.nodes) unknown -= std::max(node.workers, 0);
  return static_cast<int>(std::max<std::int64_t>(unknown, 0));
}

}  // namespace

int unstarted_ranks(const JobView& job, const OtherNodes& other_nodes) {
  const int unknown = unknown_ranks(job, other_nodes);
  if (!job.has_other_nodes()) return unknown;
  // A spare's workers have no ranks: those of the nodes in the job are all.
  const std::int64_t waiting = job.workers - static_cast<std::int64_t>(job.ranks.size());
  return static_cast<int>(std::clamp<std::int64_t>(waiting, 0, unknown));
}

std::vector<std::string> lines_of_missing(const JobView& job, const OtherNodes& other_nodes) {
  std::vector<std::string> lines;
  for (const NodeView& node : other_nodes.nodes) {
    const int missing = node.workers - static_cast<int>(node.ranks.size());
    if (missing > 0)
      lines.push_back(fmt::format("{} on {}: {}", ranks_text(missing), node.host,
                                  node.problem.empty() ? "not reported yet" : node.problem));
  }
  if (job.hosts > 0 && !other_nodes.reason.empty()) return {"its ranks are not known: " + other_nodes.reason};
  const int unstarted = unstarted_ranks(job, other_nodes);
  if (unstarted > 0)
    lines.push_back(fmt::format("{}{} {} not been started", ranks_text(unstarted),
                                job.has_other_nodes() ? " of this node" : "",
                                unstarted == 1 ? "has" : "have"));
  const int elsewhere = unknown_ranks(job, other_nodes) - unstarted;
  if (elsewhere == 0) {
    if (!other_nodes.reason.empty() && !other_nodes.nodes.empty())
      lines.push_back("ranks of other machines are as last seen: " + other_nodes.reason);
    return lines;
  }
  const std::string reason = other_nodes.reason.empty() ? "no acc runs there" : other_nodes.reason;
  lines.push_back(fmt::format("{} on other machines: {}", ranks_text(elsewhere), reason));
  return lines;
}

}  // namespace acc::launcher
