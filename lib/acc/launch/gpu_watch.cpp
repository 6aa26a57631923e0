// SPDX-License-Identifier: Apache-2.0
#include "acc/launch/gpu_watch.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "acc/base/files.hpp"

namespace acc::launcher {
namespace {

template <typename Value>
nlohmann::json json_of(const std::optional<Value>& value) {
  return value ? nlohmann::json(*value) : nlohmann::json();
}

template <typename Value>
std::optional<Value> value_in(const nlohmann::json& object, const char* field) {
  const nlohmann::json& value = object.at(field);
  return value.is_null() ? std::nullopt : std::optional(value.get<Value>());
}

// The driver knows the pids of this pid namespace, or those of the outermost one.
std::set<pid_t> pids_of(const RankView& rank, const ProcessTable& processes) {
  std::set<pid_t> pids;
  if (!rank.ended.empty()) return pids;
  pids.insert(rank.pid);
  for (const ProcessStat* process : processes.tree(rank.own_pid())) pids.insert(process->pid);
  return pids;
}

}  // namespace

GpuUseNoted gpus_of_job(const std::vector<GpuUse>& gpus, const JobView& job, const ProcessTable& processes) {
  const bool shows_processes =
      std::ranges::any_of(gpus, [](const GpuUse& gpu) { return gpu.processes && !gpu.processes->empty(); });
  GpuUseNoted noted;
  for (const GpuUse& gpu : gpus) noted.gpus.push_back({.use = gpu});
  if (!shows_processes) return noted;
  for (const RankView& rank : job.ranks) {
    const std::set<pid_t> pids = pids_of(rank, processes);
    for (GpuUseNoted::Gpu& gpu : noted.gpus) {
      const auto runs_here = [&](pid_t pid) { return pids.contains(pid); };
      if (gpu.use.processes && std::ranges::any_of(*gpu.use.processes, runs_here))
        gpu.ranks.push_back(rank.rank);
    }
  }
  std::erase_if(noted.gpus, [](const GpuUseNoted::Gpu& gpu) { return gpu.ranks.empty(); });
  return noted;
}

std::string encode(const std::optional<std::vector<GpuUse>>& gpus) {
  if (!gpus) return "null";
  nlohmann::json array = nlohmann::json::array();
  for (const GpuUse& gpu : *gpus)
    array.push_back({{"index", gpu.index},
                     {"percent", json_of(gpu.percent)},
                     {"memory_bytes", json_of(gpu.memory_bytes)},
                     {"watts", json_of(gpu.watts)},
                     {"joules", json_of(gpu.joules)},
                     {"uuid", gpu.uuid},
                     {"processes", json_of(gpu.processes)}});
  return array.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::optional<std::vector<GpuUse>> decode_gpu_use(std::string_view text) {
  const nlohmann::json array = nlohmann::json::parse(text);
  if (array.is_null()) return std::nullopt;
  std::vector<GpuUse> gpus;
  for (const nlohmann::json& gpu : array)
    gpus.push_back({.index = gpu.at("index"),
                    .percent = value_in<int>(gpu, "percent"),
                    .memory_bytes = value_in<std::uint64_t>(gpu, "memory_bytes"),
                    .watts = value_in<double>(gpu, "watts"),
                    .joules = value_in<double>(gpu, "joules"),
                    .uuid = gpu.at("uuid"),
                    .processes = value_in<std::vector<pid_t>>(gpu, "processes")});
  return gpus;
}

void GpuWatch::report(const Event& event) {
  const auto* noted = std::get_if<ProgressNoted>(&event);
  if (noted == nullptr || !has_gpus_ || answer_.is_waiting()) return;
  // Of ranks that have ended the GPUs are free.
  if (std::ranges::any_of(noted->ranks, [](const auto& rank) { return rank.cpu_time.has_value(); })) ask();
}

void GpuWatch::ask() {
  // A driver that takes longer is asked again with the next note.
  constexpr auto kLimit = std::chrono::seconds(20);
  answer_.ask([&](int to) { write_all(to, encode(parts_.query())); }, kLimit,
              [this](const ChildAnswer::Answer& answer) { note(answer); });
}

void GpuWatch::note(const ChildAnswer::Answer& answer) try {
  if (!answer.problem.empty()) return;
  const auto gpus = decode_gpu_use(answer.text);
  if (!gpus) return;
  has_gpus_ = !gpus->empty();
  const GpuUseNoted noted = gpus_of_job(*gpus, parts_.job(), parts_.processes());
  if (!noted.gpus.empty()) parts_.note(noted);
} catch (const nlohmann::json::exception&) {  // NOLINT: the child was killed; asked again with the next note
}

}  // namespace acc::launcher
