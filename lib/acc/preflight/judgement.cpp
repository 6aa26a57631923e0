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

std::optional<double> median_rate(const std::vector<Transfer>& transfers) {
  std::vector<double> rates;
  for (const Transfer& one : transfers)
    if (one.bytes_per_second) rates.push_back(*one.bytes_per_second);
  return upper_median(std::move(rates));
}

bool is_slow(const Transfer& transfer, double median) {
  return transfer.bytes_per_second && *transfer.bytes_per_second < kSlow * median;
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
  explicit Judge(const Observations& observations) : observations_(observations) {}

  std::vector<Finding> run() {
    judge_presence();
    judge_device_counts();
    judge_kinds();
    for (const NodeHealth& node : observations_.nodes) judge_gpus(node);
    for (const NodeHealth& node : observations_.nodes) judge_host(node);
    judge_memory();
    judge_clocks();
    judge_connections();
    judge_bandwidth();
    std::ranges::stable_sort(findings_, std::ranges::greater(), &Finding::severity);
    return std::move(findings_);
  }

 private:
  std::string name(int rank) const { return name_of(observations_, rank); }

  void add(Severity severity, Check check, std::vector<int> nodes, std::string text, std::string hint) {
    findings_.push_back({severity, check, std::move(nodes), std::move(text), std::move(hint)});
  }
  void error(Check check, int rank, const std::string& text, std::string hint) {
    add(Severity::error, check, {rank}, name(rank) + ": " + text, std::move(hint));
  }
  void warning(Check check, int rank, const std::string& text, std::string hint) {
    add(Severity::warning, check, {rank}, name(rank) + ": " + text, std::move(hint));
  }

  bool on_several_machines() const {
    const bool hosts = std::ranges::any_of(observations_.nodes, [&](const NodeHealth& node) {
      return node.host != observations_.nodes.front().host;
    });
    return hosts && std::ranges::any_of(observations_.nodes,
                                        [](const NodeHealth& node) { return !is_loopback(node.address); });
  }

  void judge_presence() {
    for (int rank = 0; rank < observations_.num_nodes; ++rank) {
      if (std::ranges::find(observations_.nodes, rank, &NodeHealth::rank) != observations_.nodes.end())
        continue;
      error(Check::presence, rank, "took no part in the preflight",
            "start acc with --preflight on every node, in the same version");
    }
    for (const int rank : observations_.silent)
      error(Check::presence, rank, "did not report what it measured",
            "see whether acc, or the machine, stands still there or is overloaded");
    for (const NodeHealth& node : observations_.nodes) {
      if (node.unanswered.empty()) continue;
      error(Check::answer, node.rank, join(node.unanswered, " and ") + " did not answer in time",
            "see whether nvidia-smi, df and getent hosts hang there too");
    }
  }

  // A node with fewer GPUs may be meant to run fewer workers.
  void judge_device_counts() {
    const auto by_gpus = [](const NodeHealth& node) { return node.gpus.size(); };
    if (observations_.nodes.empty()) return;
    const std::size_t most = by_gpus(*std::ranges::max_element(observations_.nodes, {}, by_gpus));
    const int most_workers = std::ranges::max_element(observations_.nodes, {}, &NodeHealth::workers)->workers;
    for (const NodeHealth& node : observations_.nodes) {
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
    for (const NodeHealth& node : observations_.nodes) {
      if (node.gpus.empty()) continue;
      drivers.push_back(node.driver);
      for (const GpuHealth& gpu : node.gpus)
        if (!gpu.lost) models.push_back(gpu.gpu.name);
    }
    if (drivers.empty()) return;
    const std::string driver = most_common(drivers);
    const std::string model = models.empty() ? "" : most_common(models);
    for (const NodeHealth& node : observations_.nodes) {
      if (node.gpus.empty()) continue;
      if (node.driver != driver)
        warning(Check::driver, node.rank, fmt::format("has the driver {}, others {}", node.driver, driver),
                "install the same one on all nodes");
      const auto odd_gpu = std::ranges::find_if(
          node.gpus, [&](const GpuHealth& gpu) { return !gpu.lost && gpu.gpu.name != model; });
      if (odd_gpu != node.gpus.end())
        warning(Check::devices, node.rank,
                fmt::format("GPU {} is {}, others are {}", odd_gpu->gpu.index, odd_gpu->gpu.name, model),
                "the slowest GPU sets the pace of the job");
    }
  }

  void judge_gpus(const NodeHealth& node) {
    for (const GpuHealth& health : node.gpus) {
      const std::string gpu =
          fmt::format("GPU {}{}", health.gpu.index,
                      health.gpu.pci_address.empty() ? "" : " (" + health.gpu.pci_address + ")");
      const std::string reset =
          fmt::format("reset it: `nvidia-smi --gpu-reset -i {}`, or reboot", health.gpu.index);
      if (health.lost) {
        error(Check::devices, node.rank, gpu + " does not answer its driver", "reboot the node");
        continue;
      }
      if (health.uncorrected_errors.value_or(0) > 0)
        error(Check::ecc, node.rank,
              fmt::format("{} has {} since its driver was loaded", gpu,
                          pluralize(*health.uncorrected_errors, "uncorrected memory error")),
              reset);
      if (health.needs_repair)
        error(Check::ecc, node.rank, gpu + " has no spare memory left for rows with errors",
              "leave it out, and have it replaced");
      else if (health.needs_reset)
        error(Check::ecc, node.rank, gpu + " waits for a reset to replace memory with errors", reset);
      if (!health.slowdowns.empty())
        error(Check::slowdown, node.rank,
              fmt::format("{} is slowed down by its hardware: {}", gpu, join(health.slowdowns, ", ")),
              "check the cooling and the power supply of the node");
      if (health.free_bytes &&
          static_cast<double>(*health.free_bytes) < kFreeGpu * static_cast<double>(health.gpu.memory_bytes))
        warning(Check::gpu_memory, node.rank,
                fmt::format("{} has {} of {} free", gpu, byte_size(*health.free_bytes),
                            byte_size(health.gpu.memory_bytes)),
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
    if (!node.meeting.lookup.error.empty())
      error(Check::name, node.rank,
            fmt::format("'{}' cannot be resolved: {}", node.meeting.name, node.meeting.lookup.error),
            "add the name to DNS or /etc/hosts, or give an address");
    if (!node.own_name || !on_several_machines()) return;
    const HostLookup& lookup = node.own_name->lookup;
    const std::string hint = "correct /etc/hosts, or set GLOO_SOCKET_IFNAME";
    if (!lookup.error.empty())
      warning(Check::name, node.rank,
              fmt::format("its own name '{}' cannot be resolved, so Gloo uses the loopback interface",
                          node.own_name->name),
              hint);
    else if (!lookup.addresses.empty() && std::ranges::all_of(lookup.addresses, is_loopback))
      warning(Check::name, node.rank,
              fmt::format("its own name '{}' is {}, where Gloo then waits in vain for other nodes",
                          node.own_name->name, join(lookup.addresses, ", ")),
              hint);
  }

  void judge_memory() {
    std::vector<std::uint64_t> sizes;
    for (const NodeHealth& node : observations_.nodes) sizes.push_back(node.memory_bytes);
    const auto median = upper_median(sizes);
    for (const NodeHealth& node : observations_.nodes) {
      if (static_cast<double>(node.memory_bytes) >= kSameMemory * static_cast<double>(*median)) continue;
      warning(Check::memory, node.rank,
              fmt::format("has {} of memory, others {}", byte_size(node.memory_bytes), byte_size(*median)),
              "a module may have failed, or the node is of another kind");
    }
  }

  void judge_clocks() {
    const auto offsets = clock_offsets(observations_);
    std::vector<int> off;
    for (std::size_t rank = 0; rank < offsets.size(); ++rank)
      if (std::abs(offsets[rank].value_or(0)) > kMaxClockOffset) off.push_back(static_cast<int>(rank));
    const std::string hint = "start chrony or another NTP client there";
    if (off.size() == 1 && observations_.nodes.size() == 2) {
      add(Severity::warning, Check::clock, {observations_.nodes[0].rank, observations_.nodes[1].rank},
          fmt::format("the clocks of {} and {} differ by {:.1f} s", name(observations_.nodes[0].rank),
                      name(observations_.nodes[1].rank),
                      std::abs(*offsets[static_cast<std::size_t>(off[0])])),
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
    for (const ConnectionCheck& connection : observations_.connections) {
      if (connection.error.empty()) continue;
      failed[{connection.from, connection.to}] = connection.error;
      ++failed_from[connection.from];
      ++failed_to[connection.to];
    }
    // A node that fails with all of several others is one finding.
    const int num_others = static_cast<int>(observations_.nodes.size()) - 1;
    std::set<int> mute;
    std::set<int> closed;
    for (const auto& [rank, count] : failed_from)
      if (count > 1 && count == num_others) mute.insert(rank);
    for (const auto& [rank, count] : failed_to)
      if (count > 1 && count == num_others) closed.insert(rank);
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
    std::map<int, std::vector<double>> rates_sent;
    std::map<int, std::vector<double>> rates_received;
    for (const Transfer& transfer : observations_.transfers) {
      if (!transfer.bytes_per_second) continue;
      rates_sent[transfer.from].push_back(*transfer.bytes_per_second);
      rates_received[transfer.to].push_back(*transfer.bytes_per_second);
    }
    const auto median = median_rate(observations_.transfers);
    for (const Transfer& transfer : observations_.transfers) {
      if (!transfer.bytes_per_second && !transfer.error.empty())
        add(Severity::warning, Check::bandwidth, {transfer.from, transfer.to},
            fmt::format("{} to {}: {}", name(transfer.from), name(transfer.to), transfer.error),
            "repeat the check: a node may have been busy");
    }
    if (!median) return;
    const double limit = kSlow * *median;
    for (const auto& [rank, rates_of_node] : rates_sent)
      if (all_slow(rates_of_node, limit))
        add_slow({rank}, name(rank) + ": sends", *std::ranges::max_element(rates_of_node), *median);
    for (const auto& [rank, rates_of_node] : rates_received)
      if (all_slow(rates_of_node, limit))
        add_slow({rank}, name(rank) + ": receives", *std::ranges::max_element(rates_of_node), *median);
    for (const Transfer& transfer : observations_.transfers) {
      if (!is_slow(transfer, *median)) continue;
      if (all_slow(rates_sent[transfer.from], limit) || all_slow(rates_received[transfer.to], limit))
        continue;
      add_slow({transfer.from, transfer.to},
               fmt::format("{} sends to {}", name(transfer.from), name(transfer.to)),
               *transfer.bytes_per_second, *median);
    }
  }

  const Observations& observations_;
  std::vector<Finding> findings_ = {};
};

std::optional<double> best(const Observations& observations, int Transfer::* side, int rank) {
  std::optional<double> best;
  for (const Transfer& one : observations.transfers)
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

std::vector<Finding> judge(const Observations& observations) {
  return Judge(observations).run();
}

std::set<std::pair<int, int>> slow_pairs(const Observations& observations) {
  const double median = median_rate(observations.transfers).value_or(0);
  const auto has_reported = [&](int rank) {
    return rank >= 0 && rank < observations.num_nodes && std::ranges::count(observations.silent, rank) == 0;
  };
  std::set<std::pair<int, int>> pairs;
  for (const Transfer& one : observations.transfers) {
    if (is_slow(one, median) && one.from != one.to && has_reported(one.from) && has_reported(one.to))
      pairs.insert(std::minmax(one.from, one.to));
  }
  return pairs;
}

void keep_better(std::vector<Transfer>& transfers, const std::vector<Transfer>& repeats) {
  for (const Transfer& repeat : repeats) {
    for (Transfer& one : transfers)
      if (one.from == repeat.from && one.to == repeat.to && one.bytes_per_second < repeat.bytes_per_second)
        one.bytes_per_second = repeat.bytes_per_second;
  }
}

bool has_errors(const std::vector<Finding>& findings) {
  return std::ranges::any_of(findings, [](const Finding& one) { return one.severity == Severity::error; });
}

std::string name_of(const Observations& observations, int rank) {
  const auto found = std::ranges::find(observations.nodes, rank, &NodeHealth::rank);
  if (found == observations.nodes.end()) return fmt::format("node {}", rank);
  const auto same = std::ranges::count(observations.nodes, found->host, &NodeHealth::host);
  return same == 1 ? found->host : fmt::format("{} (node {})", found->host, rank);
}

std::vector<std::optional<double>> clock_offsets(const Observations& observations) {
  std::vector<std::optional<double>> offsets(static_cast<std::size_t>(observations.num_nodes));
  if (observations.nodes.empty() || observations.connections.empty()) return offsets;
  const auto at = [&](int rank) -> std::optional<double>& {
    return offsets.at(static_cast<std::size_t>(rank));
  };
  const auto is_known = [&](int rank) { return rank >= 0 && rank < observations.num_nodes; };
  at(observations.nodes.front().rank) = 0;
  // Each pass reaches the nodes that are one connection further away.
  for (bool changed = true; changed;) {
    changed = false;
    for (const ConnectionCheck& connection : observations.connections) {
      if (!is_known(connection.from) || !is_known(connection.to)) continue;
      if (!connection.error.empty() || at(connection.from).has_value() == at(connection.to).has_value())
        continue;
      if (at(connection.from))
        at(connection.to) = *at(connection.from) + connection.clock_offset;
      else
        at(connection.from) = *at(connection.to) - connection.clock_offset;
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

std::optional<double> best_sent(const Observations& observations, int rank) {
  return best(observations, &Transfer::from, rank);
}

std::optional<double> best_received(const Observations& observations, int rank) {
  return best(observations, &Transfer::to, rank);
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
