// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <fstream>
#include <set>
#include <vector>

#include "acc/base/engine_readers.hpp"
#include "acc/base/text.hpp"

namespace acc::engines {
namespace {

void require_one_host(std::size_t hosts, std::string_view variable, Engine& engine) {
  if (hosts < 2) return;
  engine.problem = {
      .what = fmt::format("this is a script of {} job {} ({} hosts in {}). Only this host would run. Write: "
                          "mpirun -npernode 1 acc launch …",
                          engine.name, shorten(engine.job), hosts, variable),
      .hint = "for this host alone --engine none"};
}

}  // namespace

// A script runs on the first of the job's hosts; LSB_MCPU_HOSTS is `host slots host slots`.
void read_lsf(const Environment& environment, Engine& engine) {
  std::vector<std::string> words;
  for (const std::string& word : split(environment.get("LSB_MCPU_HOSTS"), ' ')) {
    if (!word.empty()) words.push_back(word);
  }
  require_one_host(words.size() / 2, "LSB_MCPU_HOSTS", engine);
}

// PBS_NODEFILE has a line for each process. pbsdsh starts copies without telling their number; on hosts other
// than the first that file may be missing.
void read_pbs(const Environment& environment, Engine& engine) {
  std::set<std::string> hosts;
  std::ifstream in(environment.get("PBS_NODEFILE"));
  for (std::string line; std::getline(in, line);) {
    if (!trim(line).empty()) hosts.emplace(trim(line));
  }
  require_one_host(hosts.size(), "PBS_NODEFILE", engine);
  const Number node = read_number(environment, "PBS_NODENUM");
  if (hosts.empty() && node && node->value > 0)
    engine.problem = incomplete(engine, assignment(environment, "PBS_NODENUM"), "the hosts in PBS_NODEFILE");
}

void read_grid_engine(const Environment& environment, Engine& engine) {
  const Number hosts = read_number(environment, "NHOSTS");
  if (hosts) require_one_host(static_cast<std::size_t>(hosts->value), "NHOSTS", engine);
}

}  // namespace acc::engines
