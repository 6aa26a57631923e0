// SPDX-License-Identifier: Apache-2.0
// A worker that fails in the way that its argument names, on its device or, but for memory and asserts, the
// CPU:
//
//   out-of-memory   rank 1 asks for more memory than there is, the others wait for it
//   lost            rank 1 is killed in the middle of an all-reduce
//   leaves          rank 1 ends there as if it had succeeded, the others report which rank they lost
//   stopped         rank 1 stops in the middle of an all-reduce, for which the others wait ten seconds
//   hangs           the same, and they wait for as long as they may
//   differs         rank 1 calls a broadcast where the others reduce
//   asserts         rank 1 reads behind the end of a table, which the device notices
//
// Ends with 77 and a line where a device is missing.
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string_view>

#include "acc/runtime/comm/cuda_plugin.hpp"
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

// In the fourth all-reduce rank 1 fails: the others have begun, and wait for its part.
void lose_a_rank(acc::Accelerator& accelerator, const std::function<void()>& fail) {
  for (int round = 0;; ++round) {
    if (round == 3 && accelerator.process_index() == 1) fail();
    // Without the comparison of arguments that comes before Accelerator::reduce, over Gloo.
    at::Tensor values = at::ones({1 << 20}, accelerator.device());
    accelerator.process_group()->all_reduce(values, acc::ReduceOp::sum);
    const double sum = values.sum().item<double>();
    if (accelerator.is_main_process()) std::fprintf(stderr, "round %d: %g\n", round, sum);
  }
}

void call_something_else(acc::Accelerator& accelerator) {
  at::Tensor values = at::ones({1 << 20}, accelerator.device());
  if (accelerator.process_index() == 1) {
    accelerator.process_group()->broadcast(values, 0);
  } else {
    accelerator.process_group()->all_reduce(values, acc::ReduceOp::sum);
  }
  std::fprintf(stderr, "rank %d has %g\n", accelerator.process_index(), values.sum().item<double>());
  accelerator.wait_for_everyone();
}

void fail_on_the_device(acc::Accelerator& accelerator) {
  if (accelerator.process_index() == 1) {
    const at::Tensor table = at::ones({4}, accelerator.device());
    const at::Tensor behind = at::full({1}, 7, table.options().dtype(at::kLong));
    std::fprintf(stderr, "read %g\n", table.index_select(0, behind).item<double>());
  }
  accelerator.wait_for_everyone();
}

acc::AcceleratorOptions options_for(std::string_view mode) {
  acc::AcceleratorOptions options = acc::test::job_options();
  if (mode == "stopped" || mode == "differs") options.process_group.timeout = std::chrono::seconds(10);
  return options;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view mode = argc == 2 ? argv[1] : "";
  const bool needs_device = mode == "out-of-memory" || mode == "asserts";
  if (needs_device && acc::detail::find_cuda_devices(acc::detail::cuda_plugin()).count == 0) {
    acc::test::skip("too few CUDA devices");
    return acc::test::kSkipped;
  }
  acc::Accelerator accelerator(options_for(mode));
  if (mode == "out-of-memory") {
    run_out_of_memory(accelerator);
  } else if (mode == "lost") {
    lose_a_rank(accelerator, [] { std::raise(SIGKILL); });
  } else if (mode == "leaves") {
    lose_a_rank(accelerator, [] { std::_Exit(0); });
  } else if (mode == "stopped" || mode == "hangs") {
    lose_a_rank(accelerator, [] { std::raise(SIGSTOP); });
  } else if (mode == "differs") {
    call_something_else(accelerator);
  } else if (mode == "asserts") {
    fail_on_the_device(accelerator);
  }
  std::fprintf(stderr, "usage: acc-gpu-worker out-of-memory|lost|leaves|stopped|hangs|differs|asserts\n");
  return 2;
}
