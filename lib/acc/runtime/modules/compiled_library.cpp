// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/modules/compiled_library.hpp"

#include <ATen/core/grad_mode.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/csrc/inductor/aoti_package/model_package_loader.h>

#include <algorithm>

#include "acc/base/error.hpp"
#include "acc/base/text.hpp"

namespace acc::detail {
namespace {

std::unique_ptr<torch::inductor::AOTIModelPackageLoader> load(const std::filesystem::path& file,
                                                              const std::string& name) {
  try {
    return std::make_unique<torch::inductor::AOTIModelPackageLoader>(file.string(), name);
  } catch (const std::exception& error) {
    const std::string text = error.what();
    throw Error({.kind = ErrorKind::system,
                 .what = fmt::format("cannot be loaded: {}", text.substr(0, text.find('\n'))),
                 .where = file.string()});
  }
}

}  // namespace

CompiledLibrary::CompiledLibrary(const std::filesystem::path& file, const std::string& name,
                                 const std::map<std::string, std::string>& constants,
                                 const NamedTensors& tensors)
    : loader_(load(file, name)) {
  for (const std::string& symbol : loader_->get_constant_fqns()) {
    const auto constant = constants.find(symbol);
    if (constant == constants.end()) {
      throw Error({.kind = ErrorKind::config,
                   .what = fmt::format("lacks the tensor '{}' of its library", symbol),
                   .where = file.string()});
    }
    const at::Tensor& tensor = tensors.at(constant->second);
    constants_.emplace(symbol,
                       Constant{constant->second, tensor, tensor.scalar_type(), tensor.sizes().vec()});
  }
}

CompiledLibrary::~CompiledLibrary() = default;

void CompiledLibrary::follow(Constant& constant, const std::string& symbol) {
  const at::Tensor& tensor = constant.tensor;
  if (!tensor.device().is_cpu() || tensor.scalar_type() != constant.type || !tensor.is_contiguous() ||
      tensor.sizes() != constant.sizes) {
    throw Error({.what = fmt::format(
                     "is now [{}] of {} on {}, and the step was compiled for [{}] of {} on the "
                     "CPU, contiguous",
                     fmt::join(tensor.sizes(), ", "), c10::toString(tensor.scalar_type()),
                     tensor.device().str(), fmt::join(constant.sizes, ", "), c10::toString(constant.type)),
                 .where = constant.name,
                 .hint = "do not convert, move or resize a compiled model"});
  }
  constant.data = tensor.const_data_ptr();
  handles_.insert_or_assign(symbol, tensor.detach());
}

std::vector<at::Tensor> CompiledLibrary::run(const std::vector<at::Tensor>& inputs) {
  const at::NoGradGuard no_grad;
  bool replaced = handles_.size() != constants_.size();
  for (auto& [symbol, constant] : constants_) {
    const bool is_known = constant.data == constant.tensor.const_data_ptr() && handles_.contains(symbol);
    if (is_known && constant.tensor.sizes() == constant.sizes) continue;
    follow(constant, symbol);
    replaced = true;
  }
  if (replaced) {
    loader_->load_constants(handles_, /*use_inactive=*/false, /*check_full_update=*/true,
                            /*user_managed=*/true);
  }
  return loader_->run(inputs);
}

}  // namespace acc::detail
