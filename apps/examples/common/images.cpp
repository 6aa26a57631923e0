// SPDX-License-Identifier: Apache-2.0
#include "images.hpp"

#include <ATen/ops/tensor.h>

#include <string>

#include "acc/base/files.hpp"
#include "acc/data.hpp"

namespace {

namespace fs = std::filesystem;

fs::path own_digits() {
  const fs::path installed = acc::program_folder() / ".." / "share" / "acc" / "mnist";
  return fs::exists(installed) ? installed : fs::path(ACC_MNIST_DATA);
}

at::Tensor read(const fs::path& folder, const std::string& name) {
  return acc::read_idx(fs::exists(folder / name) ? folder / name : folder / (name + ".gz"));
}

Images load_mnist(const fs::path& folder, const std::string& part) {
  const at::Tensor images = read(folder, part + "-images-idx3-ubyte");
  const at::Tensor labels = read(folder, part + "-labels-idx1-ubyte");
  // Mean and deviation of MNIST's pixels.
  return {images.unsqueeze(1).to(at::kFloat).div_(255).sub_(0.1307).div_(0.3081), labels.to(at::kLong)};
}

Images load_cifar10(const fs::path& folder, bool train) {
  const acc::LabelledImages all = acc::read_cifar10(folder, train);
  // Means and deviations of CIFAR-10's colours.
  const at::Tensor mean = at::tensor({0.4914, 0.4822, 0.4465}, at::kFloat).view({3, 1, 1});
  const at::Tensor deviation = at::tensor({0.2470, 0.2435, 0.2616}, at::kFloat).view({3, 1, 1});
  return {all.images.to(at::kFloat).div_(255).sub_(mean).div_(deviation), all.labels};
}

}  // namespace

std::pair<torch::Tensor, torch::Tensor> Images::get_batch(c10::ArrayRef<std::size_t> indices) {
  return {acc::take_rows(images_, indices), acc::take_rows(labels_, indices)};
}

Data load_data(const fs::path& folder) {
  const fs::path source = folder.empty() ? own_digits() : folder;
  if (fs::exists(source / "data_batch_1.bin"))
    return {.train = load_cifar10(source, true), .test = load_cifar10(source, false)};
  return {.train = load_mnist(source, "train"), .test = load_mnist(source, "t10k")};
}
