// SPDX-License-Identifier: Apache-2.0
#include "acc/launch/spawn.hpp"

#include "acc/launch/binding_masks.hpp"

namespace acc::launcher {

Process spawn(boost::asio::io_context& loop, const WorkerStart& worker, const WorkerStreams& streams,
              const rlimit& open_files) {
  const BindingMasks binding(worker.binding);
  const bool foreground = worker.input == WorkerInput::terminal;
  const ProcessLauncher launcher = {.environment = worker.environment,
                                    .in = streams.in.get(),
                                    .out = streams.out.get(),
                                    .err = streams.err.get(),
                                    .place = foreground ? ProcessPlace::foreground : ProcessPlace::session,
                                    .open_files = open_files,
                                    .before_exec = [&binding] { return binding.apply(); }};
  return launcher(loop.get_executor(), worker.program, worker.arguments);
}

}  // namespace acc::launcher
