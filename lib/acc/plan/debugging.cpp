// SPDX-License-Identifier: Apache-2.0
#include "acc/plan/debugging.hpp"

#include <fmt/format.h>

#include "acc/base/text.hpp"
#include "acc/plan/program.hpp"
#include "acc/plan/usage_error.hpp"
#include "acc/plan/worker_environment.hpp"

namespace acc::launcher {
namespace {

// `0:gdb --args` or `all:valgrind`.
RankWrap parse_wrap(const std::string& text, const std::string& where) {
  const std::size_t colon = text.find(':');
  const std::string rank = text.substr(0, colon);
  const auto number = parse_integer(rank);
  if (colon == std::string::npos || (rank != "all" && (!number || *number < 0 || *number > 1'000'000)))
    fail(where, "'" + text + "' is not RANK:WORDS", "as in '0:gdb --args' or 'all:valgrind'");
  RankWrap wrap{.words = split_words(text.substr(colon + 1), where)};
  if (wrap.words.empty()) fail(where, "'" + text + "' names no program", "as in '0:gdb --args'");
  if (rank != "all") wrap.rank = static_cast<int>(*number);
  return wrap;
}

// Another launcher would be the only rank.
void check_own_workers(const LaunchPlan& plan, const std::string& flag, const std::string& limit) {
  if (plan.delegated) fail(flag, plan.worker_command.front() + " starts the workers, and " + limit);
}

void add_wraps(const LaunchInputs& inputs, const Settings& settings, LaunchPlan& plan) {
  for (const std::string& text : settings[key::wrap_rank]) {
    check_own_workers(plan, settings.origin(key::wrap_rank), "acc can wrap none of them");
    RankWrap wrap = parse_wrap(text, settings.origin(key::wrap_rank));
    // How many ranks several nodes have is known when they have met: then the agent warns.
    const int world_size = expected_round(plan).world_size;
    if (plan.rendezvous.max_nodes == 1 && wrap.rank.value_or(0) >= world_size)
      fail(settings.origin(key::wrap_rank), missing_rank_text(*wrap.rank, world_size));
    const WorkerProgram program =
        find_program({.words = wrap.words, .no_python = true}, inputs.environment, inputs.file_kind);
    if (program.problem) plan.problems.push_back(*program.problem);
    wrap.program = program.file;
    plan.wraps.push_back(std::move(wrap));
  }
}

// Elsewhere a node gets its ranks when the nodes have met, and the terminal is lent before.
bool has_fixed_ranks(const LaunchPlan& plan) {
  return plan.rendezvous.max_nodes == 1 || plan.rendezvous.backend == RendezvousKind::static_;
}

void attach_rank(const Settings& settings, LaunchPlan& plan) {
  const auto rank = settings[key::attach];
  if (!rank) return;
  check_own_workers(plan, settings.origin(key::attach), "none of them can get the terminal");
  if (!has_fixed_ranks(plan)) {
    fail(settings.origin(key::attach), "which node has a rank is known only when the nodes have met",
         "use the static rendezvous, with a --node-rank for each node");
  }
  const Round round = expected_round(plan);
  if (*rank >= round.world_size)
    fail(settings.origin(key::attach), missing_rank_text(*rank, round.world_size));
  const int local_rank = static_cast<int>(*rank) - round.first_rank;
  if (local_rank < 0 || local_rank >= plan.nproc_per_node) return;
  plan.attach = static_cast<int>(*rank);
  // Only the attached rank may use the terminal.
  StreamMap& redirects = plan.output.redirects;
  redirects.default_streams = Streams::both;
  for (auto& [other, streams] : redirects.of_rank) streams = Streams::both;
  redirects.of_rank[local_rank] = Streams::none;
  if (plan.hang.timeout.count() == 0) return;
  plan.hang.timeout = {};
  plan.notes.push_back("with " + settings.origin(key::attach) + " hang detection is off");
}

}  // namespace

std::string missing_rank_text(std::int64_t rank, int world_size) {
  return fmt::format("there is no rank {}: the job has {}", rank,
                     pluralize(static_cast<std::uint64_t>(world_size), "worker"));
}

void plan_debugging(const LaunchInputs& inputs, const Settings& settings, LaunchPlan& plan) {
  add_wraps(inputs, settings, plan);
  attach_rank(settings, plan);
  if (plan.attach && plan.pid_namespace) {
    fail(settings.origin(key::pid_namespace), "a process in a pid namespace cannot get the terminal",
         "leave out " + settings.origin(key::attach));
  }
}

const RankWrap* wrap_of(const LaunchPlan& plan, int rank) {
  const RankWrap* match = nullptr;
  for (const RankWrap& wrap : plan.wraps) {
    if (wrap.rank == rank || (!wrap.rank && (match == nullptr || !match->rank))) match = &wrap;
  }
  return match;
}

std::vector<std::string> wrapped_command(const LaunchPlan& plan, int rank, int local_rank) {
  std::vector<std::string> command = worker_command(plan, local_rank);
  const RankWrap* wrap = wrap_of(plan, rank);
  if (wrap == nullptr) return command;
  // The wrapper may search PATH differently, so it gets the file that was found.
  command.front() = plan.program.string();
  command.insert(command.begin(), wrap->words.begin(), wrap->words.end());
  return command;
}

const std::filesystem::path& worker_program(const LaunchPlan& plan, int rank) {
  const RankWrap* wrap = wrap_of(plan, rank);
  return wrap == nullptr ? plan.program : wrap->program;
}

std::vector<std::string> split_words(std::string_view text, const std::string& where) {
  std::vector<std::string> words;
  bool in_word = false;
  char quote = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char letter = text[i];
    if (quote == 0 && (letter == ' ' || letter == '\t')) {
      in_word = false;
      continue;
    }
    if (!in_word) words.emplace_back();
    in_word = true;
    if (letter == '\\' && quote != '\'' && i + 1 < text.size()) {
      words.back() += text[++i];
    } else if (quote == 0 && (letter == '\'' || letter == '"')) {
      quote = letter;
    } else if (letter == quote) {
      quote = 0;
    } else {
      words.back() += letter;
    }
  }
  if (quote != 0) fail(where, fmt::format("'{}' has a {} without its end", text, quote));
  return words;
}

}  // namespace acc::launcher
