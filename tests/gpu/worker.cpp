// SPDX-License-Identifier: Apache-2.0
// A worker that fails on its device in the way that its argument names:
//
//   out-of-memory   rank 1 asks for more memory than there is, the others wait for it
//   lost            rank 1 is killed in the middle of an all-reduce, the others report which rank they lost
//
// Ends with 77 and a line where there is no device.
#include <ATen/ops/empty.h>
#include <ATen/ops/ones.h>

#include <csignal>
#include <cstdio>
#include <string_view>

#include "acc/base/error.hpp"
#include "acc/runtime/cuda/plugin.hpp"
#include "job.hpp"
#include "support/skip.hpp"

namespace {

void run_out_of_memory(acc::Accelerator& accelerator) {
  if (accelerator.process_index() == 1) {
    std::vector<at::Tensor> held;
    for (;;)
      held.push_back(
          at::empty({std::int64_t{1} << 33}, at::TensorOptions(accelerator.device()).dtype(at::kByte)));
  }
  accelerator.wait_for_everyone();
}

void lose_a_rank(acc::Accelerator& accelerator) {
  const at::Tensor values = at::ones({1 << 24}, accelerator.device());
  for (int round = 0;; ++round) {
    // The others have begun the all-reduce when this process is killed, and wait for its part.
    if (round == 3 && accelerator.process_index() == 1) std::raise(SIGKILL);
    accelerator.reduce(values);
  }
}

}  // namespace

int main(int argc, char** argv) try {
  const std::string_view mode = argc == 2 ? argv[1] : "";
  if (acc::detail::find_cuda_devices(acc::detail::cuda_plugin()).count == 0) {
    acc::test::skip("too few CUDA devices");
    return acc::test::kSkipped;
  }
  acc::Accelerator accelerator(acc::test::job_options());
  if (mode == "out-of-memory") {
    run_out_of_memory(accelerator);
  } else if (mode == "lost") {
    lose_a_rank(accelerator);
  }
  std::fprintf(stderr, "usage: acc-gpu-worker out-of-memory|lost\n");
  return 2;
} catch (const std::exception& error) {
  std::fprintf(stderr, "acc-gpu-worker: %s\n", error.what());
  return 1;
}
