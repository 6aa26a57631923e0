// SPDX-License-Identifier: Apache-2.0
// stop_run EVERY: trains without data until it is asked to end. Each rank prints its process, then with which
// step it left its loop.
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "acc/accelerator.hpp"
#include "acc/error.hpp"

namespace {

// At once: the workers of a machine may share a pipe.
void say(const std::string& line) {
  if (::write(STDOUT_FILENO, line.data(), line.size()) < 0) std::_Exit(99);
}

}  // namespace

int main(int argc, char** argv) try {
  const std::int64_t every = argc > 1 ? std::atol(argv[1]) : 1;
  acc::Accelerator accelerator;
  const std::string rank = "rank " + std::to_string(accelerator.process_index());
  std::int64_t step = 0;
  while (!accelerator.should_stop(every)) {
    if (step++ == 0) say(rank + " is process " + std::to_string(::getpid()) + "\n");
  }
  if (!accelerator.should_stop(every)) return 3;
  say(rank + " left after step " + std::to_string(step) + "\n");
  return 0;
} catch (const acc::Error& error) {
  std::fprintf(stderr, "%s: %s\n", argv[0], error.what());
  return acc::exit_code(error.kind());
}
