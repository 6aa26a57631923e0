// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "acc/base/nvml.hpp"
#include "acc/base/subprocess/child_answer.hpp"
#include "acc/control/job_view.hpp"
#include "acc/control/process_table.hpp"
#include "acc/launch/reporter.hpp"

namespace acc::launcher {

/// The GPUs that running ranks have a process on. Where the driver shows no process at all, as in a
/// container, all GPUs that it shows, without ranks.
GpuUseNoted gpus_of_job(const std::vector<GpuUse>& gpus, const JobView& job, const ProcessTable& processes);

/// The answer of query_gpu_use() as a line of text, and back; decode_gpu_use() throws
/// nlohmann::json::exception for anything else.
std::string encode(const std::optional<std::vector<GpuUse>>& gpus);
std::optional<std::vector<GpuUse>> decode_gpu_use(std::string_view text);

/// The job to watch, and the receiver of GpuUseNoted.
struct GpuWatchParts {
  std::function<const JobView&()> job = {};
  std::function<ProcessTable()> processes = {};
  std::function<void(const GpuUseNoted&)> note = {};
  /// Runs in a child process: a driver can block for minutes.
  std::function<std::optional<std::vector<GpuUse>>()> query = query_gpu_use;
};

/// Notes what the GPUs of this node's ranks do whenever the progress of running ranks is noted. On a machine
/// without GPUs it asks once.
class GpuWatch : public Reporter {
 public:
  GpuWatch(boost::asio::io_context& loop, GpuWatchParts parts) : parts_(std::move(parts)), answer_(loop) {}

  void report(const Event& event) override;

 private:
  void ask();
  void note(const ChildAnswer::Answer& answer);

  GpuWatchParts parts_;
  ChildAnswer answer_;
  bool has_gpus_ = true;
};

}  // namespace acc::launcher
