// SPDX-License-Identifier: Apache-2.0
// Runs the cases if this process has a CUDA device; otherwise prints the reason and exits with 77, which
// CTest shows as skipped.
#define CATCH_CONFIG_RUNNER
#include <cstdio>

#include "acc/base/environment.hpp"
#include "acc/base/worker_env.hpp"
#include "acc/runtime/comm/cuda_plugin.hpp"
#include "job.hpp"
#include "support/catch.hpp"
#include "support/skip.hpp"

int main(int argc, char** argv) {
  const acc::WorkerEnv worker = acc::read_worker_env(acc::Environment::of_process());
  const acc::detail::CudaDevices devices = acc::detail::find_cuda_devices(acc::detail::cuda_plugin());
  const int needed = acc::test::devices_are_shared() ? 1 : worker.local_world_size;
  if (devices.count < needed) {
    std::printf("%d CUDA devices, %d needed. %s\n", devices.count, needed, devices.why_none.c_str());
    acc::test::skip("too few CUDA devices");
    return acc::test::kSkipped;
  }
  return Catch::Session().run(argc, argv);
}
