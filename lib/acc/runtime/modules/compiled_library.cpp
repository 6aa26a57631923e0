// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/modules/compiled_library.hpp"

#include <ATen/core/grad_mode.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <torch/csrc/inductor/aoti_runner/model_container_runner_cpu.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <utility>

#include "acc/base/environment.hpp"
#include "acc/base/error.hpp"
#include "acc/base/files.hpp"
#include "acc/formats/zip_archive.hpp"

namespace acc::detail {
namespace {

namespace fs = std::filesystem;
using Runner = torch::inductor::AOTIModelContainerRunnerCpu;

constexpr std::string_view kRemedy = "free space there, or set TMPDIR to a folder that can be written";

std::string cause_of(const std::exception& error) {
  const std::string text = error.what();
  return text.substr(0, text.find('\n'));
}

// LibTorch loads files only. It has them for as long as it takes to load them, in a folder of this user
// alone; what is in memory needs them no longer.
class ExtractedFiles {
 public:
  ExtractedFiles() {
    const Environment environment = Environment::of_process();
    fs::path parent = temporary_folder(environment).value_or("");
    if (parent.empty()) parent = environment.get("TMPDIR").empty() ? "/tmp" : environment.get("TMPDIR");
    std::string pattern = (parent / "acc-compiled-XXXXXX").string();
    if (::mkdtemp(pattern.data()) == nullptr) fail(parent, errno);
    folder_ = pattern;
  }
  ~ExtractedFiles() {
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
  }
  ExtractedFiles(const ExtractedFiles&) = delete;
  ExtractedFiles& operator=(const ExtractedFiles&) = delete;

  fs::path add(std::string_view name, std::string_view content) const {
    fs::path file = folder_ / name;
    const Descriptor made(::open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, S_IRWXU));
    if (!made || !write_all(made.get(), content)) fail(folder_.parent_path(), errno);
    return file;
  }

 private:
  [[noreturn]] static void fail(const fs::path& folder, int number) {
    throw Error({.kind = ErrorKind::system,
                 .what = fmt::format("the code of a compiled model cannot be written there for loading: {}",
                                     std::strerror(number)),
                 .where = folder.string(),
                 .hint = std::string(kRemedy)});
  }

  fs::path folder_ = {};
};

// The files of a library which the loader reads: the code, and a list of operators that it calls by name.
std::unique_ptr<Runner> load_entries(const fs::path& file, const std::string& name) {
  const MappedFile mapped(file);
  const std::string folder = fmt::format("/data/aotinductor/{}/", name);
  const ExtractedFiles extracted;
  fs::path code;
  for (const auto& [entry, content] : read_zip({mapped.data(), mapped.size()})) {
    const std::size_t begin = entry.find(folder);
    if (begin == std::string_view::npos || content.data() == nullptr) continue;
    const std::string_view entry_name = entry.substr(begin + folder.size());
    if (entry_name.find('/') != std::string_view::npos) continue;
    if (entry_name.ends_with(".so")) code = extracted.add(entry_name, content);
    if (entry_name.ends_with(".json")) extracted.add(entry_name, content);
  }
  if (code.empty())
    throw Error({.kind = ErrorKind::config, .what = fmt::format("lacks the library '{}'", name)});
  return std::make_unique<Runner>(code.string());
}

std::unique_ptr<Runner> load(const fs::path& file, const std::string& name) {
  try {
    return load_entries(file, name);
  } catch (const Error& error) {
    Problem problem = error.problems().front();
    if (problem.where.empty()) problem.where = file.string();
    throw Error(error.kind(), {std::move(problem)});
  } catch (const std::exception& error) {
    throw Error({.kind = ErrorKind::system,
                 .what = fmt::format("cannot be loaded: {}", cause_of(error)),
                 .where = file.string()});
  }
}

}  // namespace

CompiledLibrary::CompiledLibrary(const fs::path& file, const std::string& name,
                                 const std::map<std::string, std::string>& constants,
                                 const NamedTensors& tensors)
    : name_(name), runner_(load(file, name)) {
  const auto refuse_constant = [&](std::string what) {
    throw Error({.kind = ErrorKind::config, .what = std::move(what), .where = file.string()});
  };
  const auto types = runner_->getConstantNamesToDtypes();
  for (const auto& [symbol, original] : runner_->getConstantNamesToOriginalFQNs()) {
    const auto constant = constants.find(original);
    if (constant == constants.end())
      refuse_constant(fmt::format("lacks the tensor '{}' of its library", original));
    const at::Tensor& tensor = tensors.at(constant->second);
    if (types.at(symbol) != static_cast<std::int32_t>(tensor.scalar_type()))
      refuse_constant(fmt::format("has '{}' of {}, which its code does not take", constant->second,
                                  c10::toString(tensor.scalar_type())));
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
  for (auto& [symbol, constant] : constants_) {
    const bool is_known = constant.data == constant.tensor.const_data_ptr() && handles_.contains(symbol);
    if (is_known && constant.tensor.sizes() == constant.sizes) continue;
    is_current_ = false;
    follow(constant, symbol);
  }
  try {
    if (!is_current_) {
      runner_->update_constant_buffer(handles_, /*use_inactive=*/false, /*validate_full_updates=*/true,
                                      /*user_managed=*/true);
      is_current_ = true;
    }
    return runner_->run(inputs);
  } catch (const std::exception& error) {
    throw Error(
        {.kind = ErrorKind::system, .what = fmt::format("the {} step failed: {}", name_, cause_of(error))});
  }
}

}  // namespace acc::detail
