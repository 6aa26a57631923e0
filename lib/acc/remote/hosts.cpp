// SPDX-License-Identifier: Apache-2.0
#include "acc/remote/hosts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <limits>
#include <unordered_map>
#include <utility>

#include "acc/base/engine.hpp"
#include "acc/base/error.hpp"
#include "acc/base/files.hpp"
#include "acc/base/host_list.hpp"
#include "acc/base/host_name.hpp"
#include "acc/base/text.hpp"
#include "acc/plan/usage_error.hpp"

namespace acc::launcher {
namespace {

constexpr int kMaxSlots = 100'000;
// More than any cluster has, since each line of a file may be a range.
constexpr std::size_t kMaxHosts = 200'000;

// `node1` of `me@node1`.
std::string without_user(const std::string& name) {
  return name.substr(name.rfind('@') + 1);
}

// ssh would take a leading dash for an option.
void check_name(const std::string& name, const std::string& where) {
  const std::string host = without_user(name);
  const bool valid =
      !host.empty() && !name.starts_with('-') && !host.starts_with('-') &&
      std::ranges::all_of(name, [](unsigned char c) {
        return std::isgraph(c) != 0 &&
               std::string_view("'\"\\`$;&|<>()").find(static_cast<char>(c)) == std::string_view::npos;
      });
  if (!valid)
    fail(where, fmt::format("'{}' is not the name of a host", shorten(name)), "as in node1 or user@node1");
}

int parse_slots(std::string_view text, const std::string& name, const std::string& where) {
  const auto number = parse_integer(text);
  if (!number || *number < 1 || *number > kMaxSlots) {
    fail(where, fmt::format("'{}' is not a number of workers for {}", shorten(text), shorten(name)),
         number == 0 ? "leave a host without workers out" : "at least 1");
  }
  return static_cast<int>(*number);
}

// `host` or `host:4`. An address of IPv6 has more colons, and no number behind it.
JobHost parse_host(const std::string& word, const std::string& where) {
  JobHost host = {.name = word, .origin = where};
  if (std::ranges::count(word, ':') == 1) {
    const std::size_t colon = word.find(':');
    host.name = word.substr(0, colon);
    host.slots = parse_slots(word.substr(colon + 1), host.name, where);
  }
  check_name(host.name, where);
  return host;
}

// One acc runs on each host, so a name stands for one node.
class UniqueHosts {
 public:
  void add(JobHost host) {
    const std::string bare = without_user(host.name);
    const auto [first, is_new] = origins_.emplace(bare, host.origin);
    if (!is_new) {
      fail(host.origin,
           fmt::format("{} is named twice{}", shorten(bare),
                       first->second == host.origin ? "" : ", first at " + first->second),
           fmt::format("one line with its workers, as in {}:4", shorten(bare)));
    }
    if (hosts_.size() == kMaxHosts) fail(host.origin, "there are too many hosts");
    hosts_.push_back(std::move(host));
  }

  std::vector<JobHost> take() { return std::move(hosts_); }

 private:
  std::vector<JobHost> hosts_ = {};
  std::unordered_map<std::string, std::string> origins_ = {};
};

// A line of a host file for one host, which may be one of a range.
JobHost parse_line(const std::string& name, const std::vector<std::string>& words, const std::string& where) {
  JobHost host = parse_host(name, where);
  std::optional<int> max_slots;
  for (auto word = words.begin() + 1; word != words.end(); ++word) {
    const std::size_t equals = word->find('=');
    const std::string key = word->substr(0, equals);
    const std::string value = equals == std::string::npos ? "" : word->substr(equals + 1);
    if (key == "slots") {
      if (host.slots) fail(where, fmt::format("the workers of {} are given twice", shorten(host.name)));
      host.slots = parse_slots(value, host.name, where);
    } else if (key == "max_slots" || key == "max-slots") {
      max_slots = parse_slots(value, host.name, where);
    } else {
      fail(where, fmt::format("'{}' after the host is not known", shorten(*word)),
           "slots=N is; ports, users and keys belong in ~/.ssh/config");
    }
  }
  if (max_slots && host.slots && *max_slots < *host.slots)
    fail(where, fmt::format("slots={} is above max_slots={}", *host.slots, *max_slots));
  return host;
}

// Until the hosts have answered where the nodes meet: what only ssh understands, as some of its aliases, is
// not the name of a machine.
std::string provisional_address(const JobHost& first) {
  return parse_host_name(without_user(first.name)).value_or("localhost");
}

}  // namespace

std::vector<JobHost> parse_hosts(std::string_view list, std::string_view where) {
  UniqueHosts unique;
  for (const std::string& word : expand_host_list(list, where))
    unique.add(parse_host(word, std::string(where)));
  std::vector<JobHost> hosts = unique.take();
  if (hosts.empty()) fail(std::string(where), "names no host", "as in --hosts node1,node2:4");
  return hosts;
}

std::vector<JobHost> parse_hostfile(std::string_view text, const std::string& file) {
  // Windows' editors begin a file of UTF-8 with it.
  constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  UniqueHosts unique;
  std::vector<Problem> problems;
  int number = 0;
  for (const std::string& line : split(text, '\n')) {
    const std::string where = fmt::format("{}:{}", file, ++number);
    const std::vector<std::string> words = split_words(std::string_view(line).substr(0, line.find('#')));
    if (words.empty()) continue;
    try {
      const std::vector<std::string> names = expand_host_list(words.front(), where);
      if (names.empty()) fail(where, "names no host", "as in node1 slots=4");
      for (const std::string& name : names) unique.add(parse_line(name, words, where));
    } catch (const Error& error) {
      problems.insert(problems.end(), error.problems().begin(), error.problems().end());
    }
  }
  std::vector<JobHost> hosts = unique.take();
  if (hosts.empty() && problems.empty())
    problems.push_back(
        {.what = "names no host", .where = file, .hint = "a line for each, as in node1 slots=4"});
  if (!problems.empty()) throw Error(ErrorKind::usage, problems);
  return hosts;
}

std::string hosts_flag(const Settings& settings) {
  return settings.given(key::hosts) ? settings.origin(key::hosts) : settings.origin(key::hostfile);
}

std::vector<JobHost> hosts_of(const Settings& settings) {
  const bool listed = settings.given(key::hosts);
  if (listed && settings.given(key::hostfile)) {
    fail("",
         fmt::format("{} and {} both name the hosts", settings.origin(key::hosts),
                     settings.origin(key::hostfile)),
         "give one of them");
  }
  if (listed) return parse_hosts(settings[key::hosts], settings.origin(key::hosts));
  if (!settings.given(key::hostfile)) return {};
  const std::string file = settings[key::hostfile];
  require_file_name(file, settings.origin(key::hostfile));
  return parse_hostfile(read_file(file), file);
}

std::optional<int> total_slots(const std::vector<JobHost>& hosts, const std::string& flag) {
  std::int64_t sum = 0;
  for (const JobHost& host : hosts) {
    if (!host.slots) return std::nullopt;
    sum += *host.slots;
  }
  if (sum > std::numeric_limits<int>::max()) fail(flag, fmt::format("{} workers are too many", sum));
  return static_cast<int>(sum);
}

HostAllocation allocation_of_host(const std::vector<JobHost>& hosts, int rank, const std::string& flag,
                                  std::optional<int> all_slots) {
  const JobHost& host = hosts.at(static_cast<std::size_t>(rank));
  const int count = static_cast<int>(hosts.size());
  const std::string list = fmt::format("{} ({})", flag, pluralize(hosts.size(), "host"));
  const std::string origin = fmt::format("{}, number {} of {}", host.name, rank + 1, flag);
  HostAllocation result;
  result.engine = {
      .family = EngineFamily::hosts,
      .name = flag,
      .rank = EngineValue<int>{rank, origin},
      .size = EngineValue<int>{count, list},
      .node_rank = EngineValue<int>{rank, origin},
      .num_nodes = EngineValue<int>{count, list},
      .node = host.name,
      .master_addr = EngineValue<std::string>{provisional_address(hosts.front()), "first of " + flag}};
  if (host.slots) result.slots = {*host.slots, fmt::format("{}:{} of {}", host.name, *host.slots, flag)};
  if (all_slots) result.all_slots = {*all_slots, fmt::format("all workers of {}", flag)};
  return result;
}

void check_hosts(const LaunchInputs& inputs, const Settings& settings, const std::vector<JobHost>& hosts) {
  const std::string flag = hosts_flag(settings);
  const std::string choice = settings[key::engine];
  if (settings.given(key::engine) && choice != "none" && choice != "auto") {
    fail("",
         fmt::format("{} {} and {} both say what starts acc on each node", settings.origin(key::engine),
                     choice, flag),
         "give one of them");
  }
  for (const SettingKey<bool> other : {key::srun, key::standalone}) {
    if (!settings[other]) continue;
    fail("", fmt::format("{} and {} contradict each other", settings.origin(other), flag),
         "give one of them");
  }
  if (settings.given(key::attach)) {
    fail(settings.origin(key::attach), fmt::format("the terminal cannot be given to a worker of {}", flag),
         "start the job without it, and attach a debugger on the host");
  }
  if (choice == "none") return;
  const Engine engine = find_engine(inputs.environment);
  if (!engine.has_others()) return;
  fail("",
       fmt::format("{} started {} copies of this command, and each would start the job on the {} hosts of {}",
                   full_name(engine), engine.size->value, hosts.size(), flag),
       fmt::format("drop {}, or start acc once", flag));
}

}  // namespace acc::launcher
