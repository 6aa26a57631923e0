// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/resource.h>

#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>

#include "acc/launch/exit_status.hpp"
#include "acc/launch/output.hpp"
#include "acc/launch/processes.hpp"

namespace acc {

/// A running worker. Destroying it kills it.
class SpawnedProcess {
 public:
  SpawnedProcess() = default;
  virtual ~SpawnedProcess() = default;
  SpawnedProcess(const SpawnedProcess&) = delete;
  SpawnedProcess& operator=(const SpawnedProcess&) = delete;

  virtual pid_t pid() const = 0;
  /// Stays open until it has ended.
  virtual int pidfd() const = 0;
};

/// Executes a worker: it leads its own session (with WorkerInput::terminal its own group, in the foreground),
/// dies with the calling thread, has the default signal dispositions, an empty signal mask, the limit
/// `open_files`, and no descriptor but 0, 1 and 2; bound to its CPUs, and where the kernel allows to the
/// memory of their nodes. `on_end` is called once on the loop, when it has been reaped. Throws Error{system}
/// naming the program when it cannot be executed; nothing of it is left then.
std::unique_ptr<SpawnedProcess> spawn(boost::asio::io_context& loop, const WorkerStart& worker,
                                      const WorkerStreams& streams, const rlimit& open_files,
                                      std::function<void(ExitStatus)> on_end);

}  // namespace acc
