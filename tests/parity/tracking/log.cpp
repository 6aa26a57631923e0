// SPDX-License-Identifier: Apache-2.0
// log FOLDER: logs below FOLDER/acc what compare.py logs through accelerate.
#include <cstdio>

#include "acc/base/error.hpp"
#include "acc/runtime/accelerator.hpp"

int main(int /*argc*/, char** argv) try {
  acc::Accelerator accelerator({.log_with = {"tensorboard"}, .project_dir = argv[1]});
  accelerator.init_trackers("acc", {{"lr", 1e-5}, {"epochs", 3}, {"net", "yes: \"grün\"\n"}, {"amp", true}});
  for (int step = 0; step < 5; ++step) {
    accelerator.log({{"loss", 1.0 / (1 + step)}, {"train/seen", 8 * step}, {"better", step % 2 == 0}}, step);
  }
  accelerator.log({{"eval/f1", acc::TrackedGroup{{"cats", 0.1}, {"dogs", 2.0}}}, {"note", "grün"}}, 5);
  accelerator.log({{"eval/f1", acc::TrackedGroup{{"dogs", 3}}}, {"note", ""}}, 1LL << 40);
  accelerator.log({{"total", 1e30}, {"note", "no step"}});
  accelerator.end_training();
} catch (const acc::Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
