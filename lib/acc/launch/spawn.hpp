// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/resource.h>

#include "acc/base/subprocess/process_launcher.hpp"
#include "acc/launch/output.hpp"
#include "acc/launch/processes.hpp"

namespace acc::launcher {

/// Executes a worker with the limit `open_files`: it leads its own session (with WorkerInput::terminal its
/// own group, in the foreground), and is bound to its CPUs and where the kernel allows to the memory of their
/// nodes. Throws as ProcessLauncher does.
Process spawn(boost::asio::io_context& loop, const WorkerStart& worker, const WorkerStreams& streams,
              const rlimit& open_files);

}  // namespace acc::launcher
