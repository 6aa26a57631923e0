// SPDX-License-Identifier: Apache-2.0
#include "acc/preflight/judgement.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "acc/base/own_addresses.hpp"
#include "acc/base/text.hpp"

namespace acc::launcher {
namespace {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20U;
constexpr std::uint64_t kMinDisk = 64 * kMiB;
constexpr std::uint64_t kEnoughDisk = 1024 * kMiB;
constexpr double kMaxClockOffset = 1;
// Of the median: below, a transfer is an outlier; below, the whole job would wait for it.
constexpr double kSlow = 0.5;
constexpr double kCrawls = 0.1;
// Of the memory of a GPU: less is free when another program uses it.
constexpr double kFreeGpu = 0.9;
// Of the memory of the other nodes.
constexpr double kSameMemory = 0.9;

template <typename Value>
std::optional<Value> upper_median(std::vector<Value> values) {
  if (values.empty()) return std::nullopt;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

// The value that most nodes have; of several the one that came first.
template <typename Value>
Value most_common(const std::vector<Value>& values) {
  std::map<Value, int> counts;
  for (const Value& value : values) ++counts[value];
  return *std::ranges::max_element(values, {}, [&](const Value& value) { return counts[value]; });
}

/// The findings of one set of observations, while they are collected.
class Judge {
 public:
  explicit Judge(const Observations& seen) : seen_(seen) {}

  std::vector<Finding> run() {
    judge_presence();
    judge_device_counts();
    judge_kinds();
    for (const NodeHealth& node : seen_.nodes) judge_gpus(node);
    for (const NodeHealth& node : seen_.nodes) judge_host(node);
    judge_memory();
    judge_clocks();
    judge_connections();
    judge_bandwidth();
    std::ranges::stable_sort(found_, std::ranges::greater(), &Finding::severity);
    return std::move(found_);
  }

 private:
  std::string name(int rank) const { return name_of(seen_, rank); }

  void add(Severity severity, Check check, std::vector<int> nodes, std::string text, std::string hint) {
    found_.push_back({severity, check, std::move(nodes), std::move(text), std::move(hint)});
  }
  void error(Check check, int rank, const std::string& text, std::string hint) {
    add(Severity::error, check, {rank}, name(rank) + ": " + text, std::move(hint));
  }
  void warning(Check check, int rank, const std::string& text, std::string hint) {
    add(Severity::warning, check, {rank}, name(rank) + ": " + text, std::move(hint));
  }

  bool on_several_machines() const {
    const bool hosts = std::ranges::any_of(
        seen_.nodes, [&](const NodeHealth& node) { return node.host != seen_.nodes.front().host; });
    return hosts && std::ranges::any_of(seen_.nodes,
                                        [](const NodeHealth& node) { return !is_loopback(node.address); });
  }

  void judge_presence() {
    for (int rank = 0; rank < seen_.num_nodes; ++rank) {
      if (std::ranges::find(seen_.nodes, rank, &NodeHealth::rank) != seen_.nodes.end()) continue;
      error(Check::presence, rank, "took no part in the preflight",
            "start acc with --preflight on every node, in the same version");
    }
    for (const int rank : seen_.silent)
      error(Check::presence, rank, "did not report what it measured",
            "see whether acc, or the machine, stands still there or is overloaded");
    for (const NodeHealth& node : seen_.nodes) {
      if (node.unanswered.empty()) continue;
      error(Check::answer, node.rank, join(node.unanswered, " and ") + " did not answer in time",
            "see whether nvidia-smi, df and getent hosts hang there too");
    }
  }

  // A node with fewer GPUs may be meant to run fewer workers.
  void judge_device_counts() {
    const auto by_gpus = [](const NodeHealth& node) { return node.gpus.size(); };
    if (seen_.nodes.empty()) return;
    const std::size_t most = by_gpus(*std::ranges::max_element(seen_.nodes, {}, by_gpus));
    const int most_workers = std::ranges::max_element(seen_.nodes, {}, &NodeHealth::workers)->workers;
    for (const NodeHealth& node : seen_.nodes) {
      const std::size_t count = node.gpus.size();
      // Its driver may not have answered.
      const bool unknown = node.driver.empty() && !node.unanswered.empty();
      const bool meant = node.workers < most_workers && static_cast<std::size_t>(node.workers) <= count;
      if (count == most || meant || unknown) continue;
      const std::string what = node.driver.empty() ? "no NVIDIA driver" : pluralize(count, "GPU");
      error(Check::devices, node.rank, fmt::format("has {}, others have {}", what, most),
            "see `nvidia-smi -L` and the kernel log there; leave the node out, or start fewer workers on it");
    }
  }

  void judge_kinds() {
    std::vector<std::string> drivers;
    std::vector<std::string> models;
    for (const NodeHealth& node : seen_.nodes) {
      if (node.gpus.empty()) continue;
      drivers.push_back(node.driver);
      for (const GpuHealth& gpu : node.gpus)
        if (!gpu.lost) models.push_back(gpu.gpu.name);
    }
    if (drivers.empty()) return;
    const std::string driver = most_common(drivers);
    const std::string model = models.empty() ? "" : most_common(models);
    for (const NodeHealth& node : seen_.nodes) {
      if (node.gpus.empty()) continue;
      if (node.driver != driver)
        warning(Check::driver, node.rank, fmt::format("has the driver {}, others {}", node.driver, driver),
                "install the same one on all nodes");
      const auto other = std::ranges::find_if(
          node.gpus, [&](const GpuHealth& gpu) { return !gpu.lost && gpu.gpu.name != model; });
      if (other != node.gpus.end())
        warning(Check::devices, node.rank,
                fmt::format("GPU {} is {}, others are {}", other->gpu.index, other->gpu.name, model),
                "the slowest GPU sets the pace of the job");
    }
  }

  void judge_gpus(const NodeHealth& node) {
    for (const GpuHealth& one : node.gpus) {
      const std::string gpu = fmt::format(
          "GPU {}{}", one.gpu.index, one.gpu.pci_address.empty() ? "" : " (" + one.gpu.pci_address + ")");
      const std::string reset =
          fmt::format("reset it: `nvidia-smi --gpu-reset -i {}`, or reboot", one.gpu.index);
      if (one.lost) {
        error(Check::devices, node.rank, gpu + " does not answer its driver", "reboot the node");
        continue;
      }
      if (one.uncorrected_errors.value_or(0) > 0)
        error(Check::ecc, node.rank,
              fmt::format("{} has {} since its driver was loaded", gpu,
                          pluralize(*one.uncorrected_errors, "uncorrected memory error")),
              reset);
      if (one.needs_repair)
        error(Check::ecc, node.rank, gpu + " has no spare memory left for rows with errors",
              "leave it out, and have it replaced");
      else if (one.needs_reset)
        error(Check::ecc, node.rank, gpu + " waits for a reset to replace memory with errors", reset);
      if (!one.slowdowns.empty())
        error(Check::slowdown, node.rank,
              fmt::format("{} is slowed down by its hardware: {}", gpu, join(one.slowdowns, ", ")),
              "check the cooling and the power supply of the node");
      if (one.free_bytes &&
          static_cast<double>(*one.free_bytes) < kFreeGpu * static_cast<double>(one.gpu.memory_bytes))
        warning(Check::gpu_memory, node.rank,
                fmt::format("{} has {} of {} free", gpu, byte_size(*one.free_bytes),
                            byte_size(one.gpu.memory_bytes)),
                "`nvidia-smi` and `acc ps` show who uses it");
    }
    if (!node.xids) return;
    for (const Xid& xid : *node.xids) {
      if (!is_fault(xid)) continue;
      warning(Check::xid, node.rank, fmt::format("the kernel log has {}", to_string(xid)),
              "NVIDIA's page on Xid errors says what it means; reset the GPU if that was not done since");
    }
  }

  void judge_host(const NodeHealth& node) {
    if (!node.disk_error.empty()) {
      error(Check::disk, node.rank, fmt::format("{}: {}", node.log_folder, node.disk_error),
            "choose another folder with --log-dir");
    } else if (!node.log_folder.empty() && node.free_disk_bytes && *node.free_disk_bytes < kEnoughDisk) {
      add(*node.free_disk_bytes < kMinDisk ? Severity::error : Severity::warning, Check::disk, {node.rank},
          fmt::format("{}: only {} free in {}", name(node.rank), byte_size(*node.free_disk_bytes),
                      node.log_folder),
          "remove files, or choose another folder with --log-dir");
    }
    if (!node.meeting.found.error.empty())
      error(Check::name, node.rank,
            fmt::format("'{}' cannot be resolved: {}", node.meeting.name, node.meeting.found.error),
            "add the name to DNS or /etc/hosts, or give an address");
    if (!node.own_name || !on_several_machines()) return;
    const HostLookup& own = node.own_name->found;
    const std::string hint = "correct /etc/hosts, or set GLOO_SOCKET_IFNAME";
    if (!own.error.empty())
      warning(Check::name, node.rank,
              fmt::format("its own name '{}' cannot be resolved, so Gloo uses the loopback interface",
                          node.own_name->name),
              hint);
    else if (!own.addresses.empty() && std::ranges::all_of(own.addresses, is_loopback))
      warning(Check::name, node.rank,
              fmt::format("its own name '{}' is {}, where Gloo then waits in vain for other nodes",
                          node.own_name->name, join(own.addresses, ", ")),
              hint);
  }

  void judge_memory() {
    std::vector<std::uint64_t> sizes;
    for (const NodeHealth& node : seen_.nodes) sizes.push_back(node.memory_bytes);
    const auto median = upper_median(sizes);
    for (const NodeHealth& node : seen_.nodes) {
      if (static_cast<double>(node.memory_bytes) >= kSameMemory * static_cast<double>(*median)) continue;
      warning(Check::memory, node.rank,
              fmt::format("has {} of memory, others {}", byte_size(node.memory_bytes), byte_size(*median)),
              "a module may have failed, or the node is of another kind");
    }
  }

  void judge_clocks() {
    const auto offsets = clock_offsets(seen_);
    std::vector<int> off;
    for (std::size_t rank = 0; rank < offsets.size(); ++rank)
      if (std::abs(offsets[rank].value_or(0)) > kMaxClockOffset) off.push_back(static_cast<int>(rank));
    const std::string hint = "start chrony or another NTP client there";
    if (off.size() == 1 && seen_.nodes.size() == 2) {
      add(Severity::warning, Check::clock, {seen_.nodes[0].rank, seen_.nodes[1].rank},
          fmt::format("the clocks of {} and {} differ by {:.1f} s", name(seen_.nodes[0].rank),
                      name(seen_.nodes[1].rank), std::abs(*offsets[static_cast<std::size_t>(off[0])])),
          hint);
      return;
    }
    for (const int rank : off) {
      const double offset = *offsets[static_cast<std::size_t>(rank)];
      warning(Check::clock, rank,
              fmt::format("its clock is {:.1f} s {} the others", std::abs(offset),
                          offset > 0 ? "ahead of" : "behind"),
              hint);
    }
  }

  void judge_connections() {
    const std::string hint =
        "open the ports between the nodes: the workers connect to each other at ports that the kernel "
        "chooses";
    std::map<std::pair<int, int>, std::string> failed;
    std::map<int, int> failed_from;
    std::map<int, int> failed_to;
    for (const ConnectionCheck& one : seen_.connections) {
      if (one.error.empty()) continue;
      failed[{one.from, one.to}] = one.error;
      ++failed_from[one.from];
      ++failed_to[one.to];
    }
    // A node that fails with all of several others is one finding.
    const int others = static_cast<int>(seen_.nodes.size()) - 1;
    std::set<int> mute;
    std::set<int> closed;
    for (const auto& [rank, count] : failed_from)
      if (count > 1 && count == others) mute.insert(rank);
    for (const auto& [rank, count] : failed_to)
      if (count > 1 && count == others) closed.insert(rank);
    for (const int rank : closed) error(Check::connection, rank, "no other node can connect to it", hint);
    for (const int rank : mute) error(Check::connection, rank, "it can connect to no other node", hint);
    for (const auto& [pair, reason] : failed) {
      const auto [from, to] = pair;
      if (mute.contains(from) || closed.contains(to) || mute.contains(to) || closed.contains(from)) continue;
      const bool both = failed.contains({to, from});
      if (both && from > to) continue;
      add(Severity::error, Check::connection, {from, to},
          both ? fmt::format("{} and {} cannot connect to each other: {}", name(from), name(to), reason)
               : fmt::format("{} cannot connect to {}: {}", name(from), name(to), reason),
          hint);
    }
  }

  // Whether all of several transfers are slow.
  static bool all_slow(const std::vector<double>& rates, double limit) {
    return rates.size() > 1 && *std::ranges::max_element(rates) < limit;
  }

  void add_slow(std::vector<int> nodes, const std::string& text, double rate, double median) {
    add(rate < kCrawls * median ? Severity::error : Severity::warning, Check::bandwidth, std::move(nodes),
        fmt::format("{} at {}, the median is {}", text, bit_rate(rate), bit_rate(median)),
        "check cable, port and speed of the network interface (`ethtool`), and what else uses it");
  }

  void judge_bandwidth() {
    std::vector<double> rates;
    std::map<int, std::vector<double>> sent;
    std::map<int, std::vector<double>> received;
    for (const Transfer& one : seen_.transfers) {
      if (!one.bytes_per_second) continue;
      rates.push_back(*one.bytes_per_second);
      sent[one.from].push_back(*one.bytes_per_second);
      received[one.to].push_back(*one.bytes_per_second);
    }
    const auto median = upper_median(rates);
    for (const Transfer& one : seen_.transfers) {
      if (!one.bytes_per_second && !one.error.empty())
        add(Severity::warning, Check::bandwidth, {one.from, one.to},
            fmt::format("{} to {}: {}", name(one.from), name(one.to), one.error),
            "repeat the check: a node may have been busy");
    }
    if (!median) return;
    const double limit = kSlow * *median;
    for (const auto& [rank, all] : sent)
      if (all_slow(all, limit))
        add_slow({rank}, name(rank) + ": sends", *std::ranges::max_element(all), *median);
    for (const auto& [rank, all] : received)
      if (all_slow(all, limit))
        add_slow({rank}, name(rank) + ": receives", *std::ranges::max_element(all), *median);
    for (const Transfer& one : seen_.transfers) {
      if (!one.bytes_per_second || *one.bytes_per_second >= limit) continue;
      if (all_slow(sent[one.from], limit) || all_slow(received[one.to], limit)) continue;
      add_slow({one.from, one.to}, fmt::format("{} sends to {}", name(one.from), name(one.to)),
               *one.bytes_per_second, *median);
    }
  }

  const Observations& seen_;
  std::vector<Finding> found_ = {};
};

std::optional<double> best(const Observations& seen, int Transfer::* side, int rank) {
  std::optional<double> best;
  for (const Transfer& one : seen.transfers)
    if (one.*side == rank && one.bytes_per_second) best = std::max(best.value_or(0), *one.bytes_per_second);
  return best;
}

}  // namespace

const char* to_string(Check check) {
  constexpr std::array<const char*, 14> kNames = {"presence", "answer", "devices",    "driver",   "ecc",
                                                  "slowdown", "xid",    "gpu_memory", "memory",   "clock",
                                                  "disk",     "name",   "connection", "bandwidth"};
  return kNames.at(static_cast<std::size_t>(check));
}

std::vector<Finding> judge(const Observations& seen) {
  return Judge(seen).run();
}

bool has_errors(const std::vector<Finding>& findings) {
  return std::ranges::any_of(findings, [](const Finding& one) { return one.severity == Severity::error; });
}

std::string name_of(const Observations& seen, int rank) {
  const auto found = std::ranges::find(seen.nodes, rank, &NodeHealth::rank);
  if (found == seen.nodes.end()) return fmt::format("node {}", rank);
  const auto same = std::ranges::count(seen.nodes, found->host, &NodeHealth::host);
  return same == 1 ? found->host : fmt::format("{} (node {})", found->host, rank);
}

std::vector<std::optional<double>> clock_offsets(const Observations& seen) {
  std::vector<std::optional<double>> offsets(static_cast<std::size_t>(seen.num_nodes));
  if (seen.nodes.empty() || seen.connections.empty()) return offsets;
  const auto at = [&](int rank) -> std::optional<double>& {
    return offsets.at(static_cast<std::size_t>(rank));
  };
  at(seen.nodes.front().rank) = 0;
  // Each pass reaches the nodes that are one connection further away.
  for (bool changed = true; changed;) {
    changed = false;
    for (const ConnectionCheck& one : seen.connections) {
      if (!one.error.empty() || at(one.from).has_value() == at(one.to).has_value()) continue;
      if (at(one.from))
        at(one.to) = *at(one.from) + one.clock_offset;
      else
        at(one.from) = *at(one.to) - one.clock_offset;
      changed = true;
    }
  }
  std::vector<double> known;
  for (const auto& offset : offsets)
    if (offset) known.push_back(*offset);
  const double median = *upper_median(known);
  for (auto& offset : offsets)
    if (offset) *offset -= median;
  return offsets;
}

std::optional<double> best_sent(const Observations& seen, int rank) {
  return best(seen, &Transfer::from, rank);
}

std::optional<double> best_received(const Observations& seen, int rank) {
  return best(seen, &Transfer::to, rank);
}

std::string bit_rate(double bytes_per_second) {
  double rate = 8 * bytes_per_second;
  for (const char* unit : {"bit/s", "kbit/s", "Mbit/s", "Gbit/s"}) {
    if (rate < 999.5) return fmt::format("{:.3g} {}", rate, unit);
    rate /= 1000;
  }
  return fmt::format("{:.3g} Tbit/s", rate);
}

std::string byte_size(std::uint64_t bytes) {
  auto size = static_cast<double>(bytes);
  for (const char* unit : {"B", "KiB", "MiB", "GiB", "TiB"}) {
    if (size < 1024) return fmt::format("{:.4g} {}", size, unit);
    size /= 1024;
  }
  return fmt::format("{:.4g} PiB", size);
}

}  // namespace acc::launcher
