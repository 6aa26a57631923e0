// SPDX-License-Identifier: Apache-2.0
// Behaviour when a device runs out of memory.
#include "acc/runtime/memory.hpp"

#include <ATen/ops/empty.h>
#include <ATen/ops/ones.h>

#include "job.hpp"
#include "support/catch.hpp"

using namespace acc::test;  // NOLINT: the job

TEST_CASE("memory: the batch size shrinks until the batch fits", "[gpu]") {
  constexpr std::int64_t kGibibyte = 1 << 30;
  constexpr std::size_t kMoreThanThereIs = 2048;
  acc::Accelerator accelerator(job_options());
  int tries = 0;
  const std::size_t fits = acc::find_executable_batch_size(
      [&](std::size_t size) {
        ++tries;
        at::empty({static_cast<std::int64_t>(size), kGibibyte},
                  at::TensorOptions(accelerator.device()).dtype(at::kByte));
        return size;
      },
      kMoreThanThereIs);
  CHECK(tries > 1);
  CHECK(fits < kMoreThanThereIs);
  // The device can still be used.
  CHECK(at::ones({4}, accelerator.device()).sum().item<double>() == 4);
  accelerator.free_memory();
}
