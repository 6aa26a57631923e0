// SPDX-License-Identifier: Apache-2.0
// Lists of hosts: --hosts, a host file, and Slurm's lists and counts. Each host has a name that ssh takes for
// one, once, and a number of workers or none; and it can be the node of a job.
#include <set>

#include "acc/base/host_list.hpp"
#include "acc/base/text.hpp"
#include "acc/plan/command_line.hpp"
#include "acc/remote/hosts.hpp"
#include "fuzz/promise.hpp"

namespace {

void check(const std::optional<std::vector<acc::launcher::JobHost>>& hosts) {
  if (!hosts) return;
  fuzz::require(!hosts->empty(), "a list names a host");
  std::set<std::string> names;
  for (const auto& host : *hosts) {
    fuzz::require(!host.name.empty() && host.name.front() != '-', "a host is not an option of ssh",
                  host.name);
    fuzz::require(host.name.find_first_of(" \t\n'\"`$;&|<>()\\") == std::string::npos,
                  "a host means nothing to a shell", host.name);
    fuzz::require(names.insert(host.name).second, "a host is named once", host.name);
    fuzz::require(!host.slots || *host.slots > 0, "a host has workers", host.name);
  }
}

void check_node(const std::optional<std::vector<acc::launcher::JobHost>>& hosts) {
  if (!hosts) return;
  const auto slots = fuzz::value_or_error([&] { return total_slots(*hosts, "--hosts"); });
  if (!slots) return;
  const int last = static_cast<int>(hosts->size()) - 1;
  const auto node = allocation_of_host(*hosts, last, "--hosts", *slots);
  fuzz::require(node.engine.node == hosts->back().name && node.engine.rank->value == last,
                "a node has its name and its rank", hosts->back().name);
}

// As flags of a command, beside others.
void check_flags(std::string_view text) {
  // A list in brackets can be of a million names, which takes long, and a path can be that of a device.
  constexpr std::size_t kMax = 200;
  if (text.size() > kMax || text.find_first_of("[/") != std::string_view::npos) return;
  const std::vector<std::string> words = acc::split(text, '\n');
  fuzz::value_or_error([&] {
    const acc::launcher::LaunchInputs inputs = {
        .command_line = acc::launcher::parse_command_line(words, acc::launcher::Dialect::launch)};
    const acc::launcher::Settings settings(inputs);
    const auto hosts = acc::launcher::hosts_of(settings);
    if (!hosts.empty()) check_hosts(inputs, settings, hosts);
    return hosts;
  });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text = fuzz::text_of(data, size);
  const auto listed = fuzz::value_or_error([&] { return acc::launcher::parse_hosts(text, "--hosts"); });
  check(listed);
  check_node(listed);
  check(fuzz::value_or_error([&] { return acc::launcher::parse_hostfile(text, "hosts"); }));
  check_flags(text);
  fuzz::value_or_error([&] { return acc::expand_counts(text, "SLURM_TASKS_PER_NODE"); });
  return 0;
}
