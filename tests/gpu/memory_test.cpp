// SPDX-License-Identifier: Apache-2.0
// Behaviour when a device runs out of memory, and what is said of its use.
#include "acc/runtime/tensors/memory.hpp"

#include <ATen/ops/empty.h>
#include <ATen/ops/ones.h>

#include "acc/runtime/comm/record.hpp"
#include "acc/runtime/trainer/memory_tracker.hpp"
#include "job.hpp"
#include "support/catch.hpp"

using namespace acc::test;  // NOLINT: the job

TEST_CASE("memory: the error has the device's memory and the allocator's", "[gpu]") {
  const auto options = at::TensorOptions(job().device()).dtype(at::kByte);
  const at::Tensor held = at::empty({1 << 20}, options);
  const auto too_much = [&] { at::empty({std::int64_t{1} << 50}, options); };
  std::string text;
  try {
    too_much();
  } catch (const c10::Error& error) {
    text = acc::detail::describe_exception(error);
  }
  INFO(text);
  CHECK(text.starts_with(job().device().str() + ": out of memory: 1048576.00 GiB wanted; the device has "));
  CHECK(text.find(" allocated of ") != std::string::npos);
  CHECK(text.find(" its largest free block has ") != std::string::npos);
  CHECK(text.find("0.0 MiB allocated") == std::string::npos);
}

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

TEST_CASE("memory: a stage of a Trainer says what tensors took of the device", "[gpu]") {
  const auto options = at::TensorOptions(job().device()).dtype(at::kByte);
  acc::detail::MemoryTracker tracker(true);
  tracker.end_init(job().device());
  acc::Metrics metrics;
  const auto train = tracker.begin("train");
  at::empty({3 << 20}, options);
  const at::Tensor kept = at::empty({1 << 20}, options);
  tracker.end("train", metrics);
  CHECK(metrics.contains("before_init_mem_gpu"));
  CHECK(metrics.at("init_mem_gpu_alloc_delta") == 0);
  CHECK(metrics.at("train_mem_gpu_alloc_delta") == 1 << 20);
  CHECK(metrics.at("train_mem_gpu_peaked_delta") == 2 << 20);
}
