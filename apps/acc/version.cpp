// SPDX-License-Identifier: Apache-2.0
#include "version.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string_view>

#include "commands.hpp"
#include "commit.hpp"

namespace acc::launcher {
namespace {

constexpr std::string_view kCommit = ACC_COMMIT;
// Empty if the runtime is not built beside it.
constexpr std::string_view kLibTorch = ACC_LIBTORCH;

std::string libc() {
#ifdef __GLIBC__
  return fmt::format("glibc {}.{}", __GLIBC__, __GLIBC_MINOR__);
#else
  return "unknown libc";
#endif
}

std::string_view short_commit() {
  constexpr std::size_t kLength = 12;
  return kCommit.substr(0, kLength);
}

}  // namespace

std::string version_text() {
  const std::string runtime =
      kLibTorch.empty() ? "without libacc" : fmt::format("with libacc for LibTorch {}", kLibTorch);
  return fmt::format("{}\ncommit {}, {} build by {} for {}, {}", kVersionLine, short_commit(), ACC_BUILD_TYPE,
                     ACC_COMPILER, libc(), runtime);
}

std::string version_json() {
  nlohmann::ordered_json facts = {{"schema", 1},
                                  {"version", ACC_VERSION},
                                  {"commit", kCommit},
                                  {"build_type", ACC_BUILD_TYPE},
                                  {"compiler", ACC_COMPILER},
                                  {"libc", libc()},
                                  {"libtorch", nullptr}};
  if (!kLibTorch.empty()) facts["libtorch"] = kLibTorch;
  return facts.dump(2);
}

std::string_view commit() {
  return kCommit;
}

std::string_view repository() {
  return ACC_REPOSITORY;
}

std::string version_and_commit() {
  return fmt::format("{} (commit {})", ACC_VERSION, short_commit());
}

}  // namespace acc::launcher
