// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/parallel/data_parallel.hpp"

#include <ATen/ThreadLocalState.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <fmt/format.h>
#include <torch/csrc/autograd/variable.h>
#include <torch/cuda.h>
#include <torch/nn/module.h>

#include <algorithm>
#include <exception>
#include <iterator>
#include <thread>

#include "acc/base/error.hpp"

namespace acc::detail {
namespace {

using Tensors = std::vector<at::Tensor>;

Tensors to_device(const Tensors& tensors, at::Device device) {
  Tensors moved;
  for (const at::Tensor& tensor : tensors) moved.push_back(tensor.to(device));
  return moved;
}

// The part of the inputs for each device. There are fewer parts than devices if the batch is small.
std::vector<Tensors> scatter(const Tensors& inputs, const DataParallelOptions& options) {
  std::vector<Tensors> parts;
  for (const at::Tensor& input : inputs) {
    const Tensors chunks = input.chunk(static_cast<std::int64_t>(options.device_ids.size()), options.dim);
    if (parts.empty()) parts.resize(chunks.size());
    if (parts.size() != chunks.size()) {
      throw Error({.what = fmt::format("inputs cannot be split alike along dimension {}: one gives {} parts, "
                                       "another {}",
                                       options.dim, parts.size(), chunks.size()),
                   .where = "DataParallel"});
    }
    for (std::size_t i = 0; i < chunks.size(); ++i) parts[i].push_back(chunks[i].to(options.device_ids[i]));
  }
  return parts;
}

std::shared_ptr<torch::nn::Module> clone_of(const torch::nn::Module& module, at::Device device) {
  try {
    return module.clone(device);
  } catch (const c10::Error& error) {
    throw Error(
        {.what = fmt::format("cannot be copied to {}: {}", device.str(), error.what_without_backtrace()),
         .where = module.name(),
         .hint = "DataParallel needs a torch::nn::Cloneable"});
  }
}

// A copy of the module whose parameters depend on the module's, so that gradients flow back and add up there.
std::shared_ptr<torch::nn::Module> replicate(const torch::nn::Module& module, at::Device device) {
  std::shared_ptr<torch::nn::Module> replica = clone_of(module, device);
  if (!at::GradMode::is_enabled()) return replica;
  const auto replica_parameters = replica->named_parameters();
  for (const auto& item : module.named_parameters()) {
    if (!item.value().requires_grad()) continue;
    const at::Tensor copy = item.value().to(device, item.value().scalar_type(), /*non_blocking=*/false,
                                            /*copy=*/true);
    const at::Tensor& parameter = replica_parameters[item.key()];
    parameter.set_data(copy.detach());
    torch::autograd::impl::set_gradient_edge(parameter, torch::autograd::impl::gradient_edge(copy));
  }
  return replica;
}

void copy_buffers(const torch::nn::Module& from, const torch::nn::Module& to) {
  const at::NoGradGuard no_grad;
  const auto kept = to.named_buffers();
  for (const auto& item : from.named_buffers()) kept[item.key()].copy_(item.value());
}

// Makes each call on its own thread, with the caller's no_grad and autocast state. Rethrows the first
// exception when all calls have ended.
Tensors parallel_apply(std::size_t count, const std::function<at::Tensor(std::size_t)>& call) {
  Tensors results(count);
  std::vector<std::exception_ptr> failures(count);
  const at::ThreadLocalState state;
  const auto run = [&](std::size_t i) {
    const at::ThreadLocalStateGuard guard(state);
    try {
      results[i] = call(i);
    } catch (...) {
      failures[i] = std::current_exception();
    }
  };
  {
    std::vector<std::jthread> threads;
    for (std::size_t i = 1; i < count; ++i) threads.emplace_back(run, i);
    run(0);
  }
  for (const std::exception_ptr& failure : failures) {
    if (failure) std::rethrow_exception(failure);
  }
  return results;
}

std::vector<at::Device> cuda_devices() {
  std::vector<at::Device> devices;
  const at::DeviceIndex count = torch::cuda::device_count();
  for (at::DeviceIndex i = 0; i < count; ++i) devices.emplace_back(at::kCUDA, i);
  return devices;
}

void require_device(at::Device device) {
  const at::DeviceIndex devices = torch::cuda::device_count();
  if (!device.is_cuda() || std::max(device.index(), at::DeviceIndex{0}) < devices) return;
  throw Error({.what = fmt::format("does not exist: there are {} CUDA devices", devices),
               .where = "DataParallel, " + device.str()});
}

}  // namespace

DeviceGroup::DeviceGroup(DataParallelOptions options) : options_(std::move(options)) {
  if (options_.device_ids.empty()) options_.device_ids = cuda_devices();
  for (const at::Device device : options_.device_ids) require_device(device);
  if (options_.output_device) require_device(*options_.output_device);
}

at::Tensor DeviceGroup::forward(torch::nn::Module& module, const std::vector<at::Tensor>& inputs,
                                const Forward& forward) const {
  if (options_.device_ids.empty()) return forward(module, inputs);
  const at::Device first = options_.device_ids.front();
  const at::Device output_device = options_.output_device.value_or(first);
  module.to(first);
  const std::vector<Tensors> parts = options_.device_ids.size() > 1
                                         ? scatter(inputs, options_)
                                         : std::vector<Tensors>{to_device(inputs, first)};
  if (parts.size() == 1) return forward(module, parts.front()).to(output_device);

  std::vector<std::shared_ptr<torch::nn::Module>> replicas;
  for (std::size_t i = 0; i < parts.size(); ++i)
    replicas.push_back(replicate(module, options_.device_ids[i]));
  Tensors outputs =
      parallel_apply(parts.size(), [&](std::size_t i) { return forward(*replicas[i], parts[i]); });
  copy_buffers(*replicas.front(), module);
  // Numbers become a vector, as in Python.
  for (at::Tensor& output : outputs) {
    if (output.dim() == 0) output = output.reshape({1});
  }
  return at::cat(to_device(outputs, output_device), outputs.front().dim() == 1 ? 0 : options_.dim);
}

}  // namespace acc::detail
