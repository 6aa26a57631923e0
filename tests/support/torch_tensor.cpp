// SPDX-License-Identifier: Apache-2.0
#include "support/torch_tensor.hpp"

#include <ATen/ops/from_blob.h>
#include <stdlib.h>

#include <memory>
#include <stdexcept>
#include <string>

namespace acc::test {
namespace {

struct Folder {
  std::filesystem::path path;
  explicit Folder(std::filesystem::path made) : path(std::move(made)) {}
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
};

}  // namespace

at::Tensor numbers(const std::vector<double>& values, const std::vector<std::int64_t>& shape,
                   at::ScalarType type) {
  std::vector<double> copy = values;
  return at::from_blob(copy.data(), shape, at::TensorOptions(at::kDouble)).to(type, false, /*copy=*/true);
}

std::filesystem::path temporary_folder() {
  static std::vector<std::unique_ptr<Folder>> folders;
  std::string name = (std::filesystem::temp_directory_path() / "acc-test-XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("cannot make " + name);
  folders.push_back(std::make_unique<Folder>(name));
  return name;
}

}  // namespace acc::test
