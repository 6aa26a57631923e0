// SPDX-License-Identifier: Apache-2.0
// Lists of hosts: --hosts, a host file, and Slurm's lists and counts. Each host has a name that ssh takes for
// one, once, and a number of workers or none.
#include <set>

#include "acc/base/host_list.hpp"
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

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text = fuzz::text_of(data, size);
  check(fuzz::value_or_error([&] { return acc::launcher::parse_hosts(text, "--hosts"); }));
  check(fuzz::value_or_error([&] { return acc::launcher::parse_hostfile(text, "hosts"); }));
  fuzz::value_or_error([&] { return acc::expand_counts(text, "SLURM_TASKS_PER_NODE"); });
  return 0;
}
