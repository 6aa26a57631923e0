// SPDX-License-Identifier: Apache-2.0
#include "acc/config/contradictions.hpp"

#include <fmt/format.h>

#include <optional>
#include <string_view>

namespace acc::launcher {
namespace {

std::optional<std::int64_t> number(const FileConfig& config, std::string_view key) {
  const auto found = config.values.find(key);
  if (found == config.values.end() || !found->second.is_number_integer()) return std::nullopt;
  return found->second.get<std::int64_t>();
}

std::string place(const FileConfig& config, std::string_view key) {
  const auto line = config.positions.find(key);
  return line == config.positions.end() ? config.path.string()
                                        : fmt::format("{}:{}", config.path.string(), line->second);
}

}  // namespace

std::vector<Problem> contradictions(const FileConfig& config) {
  std::vector<Problem> problems;
  const std::int64_t machines = number(config, "num_machines").value_or(1);
  const auto processes = number(config, "num_processes");
  if (processes && *processes % machines != 0) {
    problems.push_back(
        {fmt::format("num_processes {} cannot be shared evenly by num_machines {}", *processes, machines),
         place(config, "num_processes"), "num_processes counts over all machines"});
  }
  const auto rank = number(config, "machine_rank");
  if (rank && *rank >= machines) {
    problems.push_back({fmt::format("machine_rank {} is not below num_machines {}", *rank, machines),
                        place(config, "machine_rank"), "ranks count from 0"});
  }
  if (machines > 1 && !config.values.contains("main_process_ip")) {
    problems.push_back({fmt::format("num_machines {} need main_process_ip", machines),
                        place(config, "num_machines"), "the address of machine 0"});
  }
  return problems;
}

}  // namespace acc::launcher
