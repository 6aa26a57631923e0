// SPDX-License-Identifier: Apache-2.0
// Checks what runs at the same time on a device, by its streams and LibTorch's trace.
#include <ATen/ops/arange.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>
#include <c10/core/Stream.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/sgd.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>

#include "acc/runtime/comm/cuda_plugin.hpp"
#include "acc/runtime/data/tensor_batches.hpp"
#include "job.hpp"
#include "support/catch.hpp"

using namespace acc::test;  // NOLINT: the job

namespace {

/// The complete events of the trace that this process writes while `function` runs.
std::vector<nlohmann::json> events_of(const acc::Accelerator& accelerator,
                                      const std::function<void()>& function) {
  const auto folder = shared_folder() / "trace";
  accelerator.profile({.output_trace_dir = folder}, function);
  std::ifstream file(folder / ("profile_" + std::to_string(accelerator.process_index()) + ".json"));
  std::vector<nlohmann::json> events;
  nlohmann::json trace = nlohmann::json::parse(file);
  for (auto& event : trace["traceEvents"])
    if (event.value("ph", "") == "X") events.push_back(event);
  return events;
}

bool name_has(const nlohmann::json& event, std::string_view part) {
  return event.value("name", "").find(part) != std::string::npos;
}

std::set<std::int64_t> streams_of(const std::vector<nlohmann::json>& events, std::string_view category) {
  std::set<std::int64_t> streams;
  for (const auto& event : events)
    if (event.value("cat", "") == category) streams.insert(event["args"].value("stream", std::int64_t{-1}));
  return streams;
}

}  // namespace

TEST_CASE("overlap: a copy from pinned memory runs while the device computes", "[gpu]") {
  const c10::impl::VirtualGuardImpl cuda(c10::DeviceType::CUDA);
  const at::Tensor matrix = at::randn({4096, 4096}, job().device());
  const at::Tensor host = at::ones({1 << 22}).pin_memory();
  acc::detail::cuda_table().synchronize(job().device().index());
  for (int i = 0; i < 50; ++i) matrix.matmul(matrix);
  const c10::Stream computing = cuda.getStream(job().device());
  const c10::Stream copying = cuda.getStreamFromGlobalPool(job().device());
  {
    const c10::StreamGuard guard(copying);
    host.to(job().device(), /*non_blocking=*/true);
  }
  copying.synchronize();
  CHECK_FALSE(computing.query());
  acc::detail::cuda_table().synchronize(job().device().index());
  CHECK(computing.query());
}

TEST_CASE("overlap: gradients are sent while backward still runs", "[gpu]") {
  if (job().num_processes() == 1) return;  // nothing is sent
  acc::AcceleratorOptions options = job_options();
  options.ddp.bucket_cap_mb = 4;
  acc::Accelerator accelerator(options);
  torch::nn::Sequential deep;
  for (int layer = 0; layer < 12; ++layer) deep->push_back(torch::nn::Linear(1024, 1024));
  auto [model, optimizer] =
      accelerator.prepare(deep, torch::optim::SGD(deep->parameters(), torch::optim::SGDOptions(0.01)));
  const at::Tensor x = at::randn({256, 1024}, accelerator.device());
  const auto step = [&, &model = model, &optimizer = optimizer] {
    optimizer.zero_grad();
    accelerator.backward(model(x).square().mean());
    optimizer.step();
  };
  step();  // buckets take their final order after the first backward
  step();
  const auto events = events_of(accelerator, step);

  double first_reduction = std::numeric_limits<double>::infinity();
  double last_gradient = 0;
  for (const auto& event : events) {
    const double begin = event["ts"].get<double>();
    if (name_has(event, "all_reduce") || name_has(event, "allreduce") || name_has(event, "AllReduce"))
      first_reduction = std::min(first_reduction, begin);
    if (name_has(event, "AddmmBackward"))
      last_gradient = std::max(last_gradient, begin + event.value("dur", 0.0));
  }
  REQUIRE(last_gradient > 0);
  CHECK(first_reduction < last_gradient);
}

TEST_CASE(
    "overlap: a prepared loader brings whole batches to the device, pinned ones on a stream of their own",
    "[gpu]") {
  acc::Accelerator accelerator(job_options());
  const at::Tensor rows =
      at::arange(64 * accelerator.num_processes(), at::kFloat).unsqueeze(1).expand({-1, 4096});
  auto loader = accelerator.prepare(acc::DataLoader<acc::TensorDataset<1>>(
      acc::TensorDataset<1>(rows.contiguous()), {.batch_size = 8, .num_workers = 1, .pin_memory = true}));
  const at::Tensor matrix = at::randn({2048, 2048}, accelerator.device());
  double sum = 0;
  const auto events = events_of(accelerator, [&] {
    at::Tensor total = at::zeros({1}, accelerator.device());
    for (auto& [batch] : loader) {
      CHECK(batch.device() == accelerator.device());
      matrix.matmul(matrix);
      total += batch.select(1, 0).sum();
    }
    sum = accelerator.reduce(total).item<double>();
  });
  CHECK(sum == rows.select(1, 0).sum().item<double>());

  std::vector<nlohmann::json> pinned;
  std::copy_if(events.begin(), events.end(), std::back_inserter(pinned),
               [](const nlohmann::json& event) { return name_has(event, "Memcpy HtoD (Pinned"); });
  REQUIRE_FALSE(pinned.empty());
  const std::set<std::int64_t> copying = streams_of(pinned, "gpu_memcpy");
  for (const std::int64_t stream : streams_of(events, "kernel")) CHECK_FALSE(copying.contains(stream));
}
