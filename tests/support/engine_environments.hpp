// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>

#include "acc/base/environment.hpp"

namespace acc::test {

inline std::ifstream open_engine_file(const std::string& name) {
  std::ifstream in(ACC_TEST_DATA "/engines/" + name);
  if (!in) throw std::runtime_error("no recording " + name);
  return in;
}

/// The recorded environment of one task, from a file of lines `[task] NAME=value`; without a task from one of
/// lines `NAME=value`.
inline Environment engine_environment(const std::string& file, int task = -1) {
  const std::string mark = task < 0 ? "" : "[" + std::to_string(task) + "] ";
  std::ifstream in = open_engine_file(file);
  Environment environment;
  for (std::string line; std::getline(in, line);) {
    const std::size_t equals = line.find('=');
    if (!line.starts_with(mark) || equals == std::string::npos) continue;
    environment.set(line.substr(mark.size(), equals - mark.size()), line.substr(equals + 1));
  }
  if (environment.empty()) throw std::runtime_error("no such task in " + file);
  return environment;
}

/// The recorded environment on a node in which mpirun, Hydra's mpiexec or srun (`section`: `mpirun`, `hydra`,
/// `srun`) started one task inside an allocation of Slurm. The recording has some variables only; the job's
/// id, which every process there has, is added.
inline Environment engine_inside_slurm(const std::string& section, const std::string& node) {
  std::ifstream in = open_engine_file("mpi_inside_slurm.txt");
  std::string current = "mpirun";
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("== ")) current = line.substr(3);
    if (current != section || !line.starts_with(node + ": ")) continue;
    Environment environment = {{"SLURM_JOB_ID", "7"}};
    std::istringstream words(line.substr(node.size() + 2));
    for (std::string word; words >> word;) {
      const std::size_t equals = word.find('=');
      environment.set(word.substr(0, equals), word.substr(equals + 1));
    }
    return environment;
  }
  throw std::runtime_error("no recording of " + section + " on " + node);
}

/// The environment, where the variables of `over` replace its own.
inline Environment with(Environment environment, const Environment& over) {
  environment.overlay(over);
  return environment;
}

}  // namespace acc::test
