// SPDX-License-Identifier: Apache-2.0
// log FOLDER: logs to FOLDER/acc the same values as compare.py logs with accelerate.
#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/linspace.h>
#include <ATen/ops/zeros.h>

#include <cstdio>

#include "acc/base/error.hpp"
#include "acc/runtime/accelerator/accelerator.hpp"

int main(int /*argc*/, char** argv) try {
  acc::Accelerator accelerator({.log_with = {"tensorboard"}, .project_dir = argv[1]});
  accelerator.init_trackers("acc", {{"lr", 1e-5}, {"epochs", 3}, {"net", "yes: \"grün\"\n"}, {"amp", true}});
  for (int step = 0; step < 5; ++step) {
    accelerator.log({{"loss", 1.0 / (1 + step)}, {"train/seen", 8 * step}, {"better", step % 2 == 0}}, step);
  }
  accelerator.log({{"eval/f1", acc::TrackedGroup{{"cats", 0.1}, {"dogs", 2.0}}}, {"note", "grün"}}, 5);
  accelerator.log({{"eval/f1", acc::TrackedGroup{{"dogs", 3}}}, {"note", ""}}, 1LL << 40);
  accelerator.log({{"total", 1e30}, {"note", "no step"}});
  acc::Tracker& tensorboard = accelerator.get_tracker("tensorboard");
  const at::Tensor ramp = at::arange(11 * 2 * 3).view({11, 1, 2, 3}) / 66.0;
  tensorboard.log_images(
      {{"digits", ramp}, {"colours", (at::arange(3 * 4 * 5) * 4).view({1, 3, 4, 5}).to(at::kByte)}}, 3);
  tensorboard.log_histograms({{"weights", at::linspace(-2, 3, 100)}, {"zeros", at::zeros({5})}}, 4);
  accelerator.end_training();
} catch (const acc::Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
