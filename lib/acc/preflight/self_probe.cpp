// SPDX-License-Identifier: Apache-2.0
#include "acc/preflight/self_probe.hpp"

#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <utility>

#include "acc/base/blocking_call.hpp"
#include "acc/base/machine.hpp"
#include "acc/base/own_addresses.hpp"
#include "acc/base/text.hpp"

namespace acc::launcher {
namespace {

/// A question that may never be answered.
template <typename Answer>
class Question {
 public:
  Question(std::string source, std::function<Answer()> ask)
      : source_(std::move(source)), call_(std::move(ask)) {}

  /// Adds what it asks to `unanswered` and returns an empty answer when there is none before the deadline.
  Answer answer(std::chrono::steady_clock::time_point deadline, std::vector<std::string>& unanswered) {
    if (auto answer = call_.result(deadline)) return *std::move(answer);
    unanswered.push_back(source_);
    return {};
  }

 private:
  std::string source_;
  BlockingCall<Answer> call_;
};

struct Disk {
  std::optional<std::uint64_t> free = {};
  std::string error = {};
};

// The folder itself may be created later.
Disk ask_disk(std::filesystem::path folder) {
  std::error_code ignored;
  while (!std::filesystem::exists(folder, ignored) && folder.has_relative_path())
    folder = folder.parent_path();
  struct statvfs about = {};
  if (::statvfs(folder.c_str(), &about) != 0) return {.error = std::strerror(errno)};
  Disk disk{.free = std::uint64_t{about.f_bavail} * about.f_frsize};
  if ((about.f_flag & ST_RDONLY) != 0)
    disk.error = std::strerror(EROFS);
  else if (::access(folder.c_str(), W_OK | X_OK) != 0)
    disk.error = std::strerror(errno);
  return disk;
}

// The field of /proc/meminfo, in bytes.
std::uint64_t memory_field(std::string_view name) {
  std::ifstream file("/proc/meminfo");
  std::string word;
  while (file >> word) {
    std::uint64_t kib = 0;
    if (word == name && file >> kib) return kib * 1024;
  }
  return 0;
}

// A worker sees the devices of CUDA_VISIBLE_DEVICES.
std::vector<GpuHealth> visible(std::vector<GpuHealth> gpus, const Environment& environment) {
  Machine machine;
  for (const GpuHealth& health : gpus) machine.gpus.push_back(health.gpu);
  const std::vector<Gpu> selected = visible_gpus(machine, environment);
  // A MIG device is part of a GPU that is not known here.
  if (std::ranges::any_of(selected, [](const Gpu& gpu) { return gpu.index < 0; })) return gpus;
  std::erase_if(gpus, [&](const GpuHealth& health) {
    return std::ranges::find(selected, health.gpu) == selected.end();
  });
  return gpus;
}

}  // namespace

NodeHealth probe_self(const NodeCheckJob& job, std::chrono::milliseconds limit) {
  const auto deadline = std::chrono::steady_clock::now() + limit;
  const bool several = job.round.num_machines > 1;
  NodeHealth node{.rank = job.round.machine_rank,
                  .host = host_name(),
                  .workers = job.workers,
                  .log_folder = job.log_folder,
                  .meeting = {.name = job.meeting_host}};
  if (several && !job.environment.find("GLOO_SOCKET_IFNAME")) node.own_name = ResolvedName{.name = node.host};

  Question<GpuHealthReport> driver("the NVIDIA driver", query_gpu_health);
  Question<Disk> disk("the disk of " + job.log_folder,
                      [folder = job.log_folder] { return ask_disk(folder); });
  Question<HostLookup> meeting("the resolver for " + job.meeting_host,
                               [host = job.meeting_host] { return look_up(host); });
  std::optional<Question<HostLookup>> own_name;
  if (node.own_name)
    own_name.emplace("the resolver for " + node.host, [host = node.host] { return look_up(host); });

  if (const auto log = read_kernel_log()) node.xids = find_xids(*log);
  node.memory_bytes = memory_field("MemTotal:");
  node.free_memory_bytes = memory_field("MemAvailable:");
  GpuHealthReport gpus = driver.answer(deadline, node.unanswered);
  node.gpus = visible(std::move(gpus.gpus), job.environment);
  node.driver = std::move(gpus.driver_version);
  Disk space = disk.answer(deadline, node.unanswered);
  node.free_disk_bytes = space.free;
  node.disk_error = std::move(space.error);
  node.meeting.lookup = meeting.answer(deadline, node.unanswered);
  if (own_name) node.own_name->lookup = own_name->answer(deadline, node.unanswered);
  if (!node.meeting.lookup.addresses.empty())
    node.address = address_towards(node.meeting.lookup.addresses.front());
  return node;
}

}  // namespace acc::launcher
