// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/torch_version.hpp"

#include <ATen/Version.h>
#include <fmt/format.h>
#include <torch/version.h>

#include "acc/base/error.hpp"

namespace acc {
namespace {

std::string_view without_local_part(std::string_view version) {
  return version.substr(0, version.find('+'));
}

}  // namespace

std::string torch_version_in(std::string_view config) {
  constexpr std::string_view kName = "TORCH_VERSION=";
  const std::size_t at = config.find(kName);
  if (at == std::string_view::npos) return {};
  const std::string_view rest = config.substr(at + kName.size());
  return std::string(rest.substr(0, rest.find_first_of(", \n")));
}

void require_same_torch(std::string_view compiled, std::string_view running) {
  if (without_local_part(compiled) == without_local_part(running)) return;
  throw Error({.kind = ErrorKind::system,
               .what = fmt::format("was built for LibTorch {} but runs with {}", compiled,
                                   running.empty() ? "one of unknown version" : running),
               .where = "libacc.so",
               .hint = "build acc again with the LibTorch that is used"});
}

void require_compiled_torch() {
  static const std::string running = torch_version_in(at::show_config());
  require_same_torch(TORCH_VERSION, running);
}

}  // namespace acc
