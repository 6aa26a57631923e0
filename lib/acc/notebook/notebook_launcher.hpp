// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "acc/notebook/result_text.hpp"
#include "acc/notebook/tensor_result.hpp"

namespace acc {

/// The arguments of notebook_launcher, with accelerate's names and defaults. What is not listed here is as in
/// `acc launch` on this machine, without a config file.
struct NotebookLauncherOptions {
  /// Workers on this machine; must be given.
  std::optional<int> num_processes = {};
  /// no, fp16, bf16 or fp8: the default of each worker's Accelerator and Trainer.
  std::string mixed_precision = "no";
  /// The port on which all meet; absent: a free one, with several nodes 29500.
  std::optional<std::uint16_t> use_port = {};
  /// The address of node 0.
  std::string master_addr = "127.0.0.1";
  int node_rank = 0;  ///< The rank of this node, from 0.
  /// Each node calls notebook_launcher with its own node_rank.
  int num_nodes = 1;
  /// static, c10d or etcd, as torchrun's flags.
  std::string rdzv_backend = "static";
  std::string rdzv_endpoint = {};  ///< `host[:port]`, where the nodes meet.
  /// key=value,key=value
  std::string rdzv_conf = {};
  std::string rdzv_id = "none";  ///< The name of the run, the same on all nodes.
  /// How often all workers are started again after one has failed.
  int max_restarts = 0;
  /// The prefix of lines that `tee` shows, as torchrun's flag.
  std::string log_line_prefix_template = {};

  // The next are flags of `acc launch`.

  /// Where error files and, by `redirects` and `tee`, the output of each worker stay.
  std::string log_dir = {};
  /// The streams that go to files instead of the caller's output, or (`tee`) to both: 0, 1 (stdout), 2
  /// (stderr) or 3, or a list by local rank as in 0:1,1:3.
  std::string redirects = {};
  std::string tee = {};  ///< Streams that are also shown, as torchrun's flag.
  /// Stay on the CPU where there are GPUs.
  bool cpu = false;
  /// Threads of each worker for operations on the CPU; absent: its share of the cores.
  std::optional<int> num_cpu_threads_per_process = {};
  /// Between SIGTERM or the interrupt and SIGKILL, for workers that stay.
  std::chrono::milliseconds shutdown_timeout = std::chrono::seconds(30);
};

namespace detail {

/// Calls the function of a worker; its result as text.
using WorkerFunction = std::function<std::string()>;

/// Runs `function` in the workers and returns their results by local rank. Throws as notebook_launcher.
std::vector<std::string> launch_workers(const WorkerFunction& function,
                                        const NotebookLauncherOptions& options);

/// The same without the line that says on what the training runs: on the CPU and over loopback alone.
std::vector<std::string> launch_debug_workers(const WorkerFunction& function, int num_processes);

template <class Launch, class Function, class... Arguments>
auto launch_and_read(const Launch& launch, Function& function, std::tuple<Arguments...>& arguments) {
  using Result = std::decay_t<decltype(std::apply(function, std::move(arguments)))>;
  if constexpr (std::is_void_v<Result>) {
    launch([&]() -> std::string {
      std::apply(function, std::move(arguments));
      return {};
    });
  } else {
    static_assert(SentAsResult<Result>,
                  "a worker returns nothing, a number, a string, a tensor or a vector of these; with "
                  "acc/objects.hpp any type that nlohmann's JSON library converts");
    std::vector<Result> results;
    for (const std::string& text :
         launch([&] { return ResultText<Result>::write(std::apply(function, std::move(arguments))); }))
      results.push_back(ResultText<Result>::read(text));
    return results;
  }
}

}  // namespace detail

/// Calls `function(arguments...)` in `num_processes` workers, and returns what each of this machine returned,
/// by rank: accelerate's notebook_launcher. Workers are copies (forks) of this process: they have its
/// variables, loaded libraries and open files, and what they change stays with them. The launcher of `acc
/// launch` runs them, in a process beside this one: ranks, restarts, several nodes and logs are the same. The
/// function runs in a new thread, where an Accelerator, a Trainer or a process group may be made.
///
/// Also a single worker is a process of its own, so that it can be interrupted. An interrupt (SIGINT) ends
/// all workers; this process's own handler is called then, and Error{system} thrown. When this process ends,
/// however it does, the workers end too.
///
/// Throws Error{system} with the rank and text of the worker that failed first, after all have ended; and
/// before any is started Error{usage} for wrong options, inside a worker, and where a fork cannot train: this
/// process has used CUDA, has a live Accelerator or PartialState, or is in another notebook_launcher.
/// With ACCELERATE_DEBUG_MODE=true a dry start of the workers comes first.
///
///     acc::notebook_launcher(train, std::tuple{2e-3, 3}, {.num_processes = 2});
template <class Function, class... Arguments>
auto notebook_launcher(Function function, std::tuple<Arguments...> arguments,
                       const NotebookLauncherOptions& options = {}) {
  return detail::launch_and_read(
      [&](const detail::WorkerFunction& worker) { return detail::launch_workers(worker, options); }, function,
      arguments);
}

/// The same for a function without arguments.
template <class Function>
auto notebook_launcher(Function function, const NotebookLauncherOptions& options = {}) {
  return acc::notebook_launcher(std::move(function), std::tuple<>(), options);
}

/// notebook_launcher for tests: on the CPU, over loopback, without a word on standard output.
template <class Function, class... Arguments>
auto debug_launcher(Function function, std::tuple<Arguments...> arguments, int num_processes = 2) {
  return detail::launch_and_read(
      [&](const detail::WorkerFunction& worker) {
        return detail::launch_debug_workers(worker, num_processes);
      },
      function, arguments);
}

/// The same for a function without arguments.
template <class Function>
auto debug_launcher(Function function, int num_processes = 2) {
  return acc::debug_launcher(std::move(function), std::tuple<>(), num_processes);
}

}  // namespace acc
